//! The certificates in the PEM files by which etcds and their clients know each other.

use std::io::ErrorKind;
use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use zeroize::Zeroizing;

use super::error::Error;
use crate::os::wiped;

/// Many times what a file of certificates is.
pub const PEM_LIMIT: u64 = 4 * 1024 * 1024;

/// Every certificate in a file.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read_pem(path)?).collect();
    found.map_err(|error| unusable(path, &error.to_string()))
}

/// A whole file, which is wiped when it is dropped: it may be a key.
pub(super) fn read_pem(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    wiped::read_at_most(path, PEM_LIMIT)
        .map_err(|source| Error::Certificate { path: path.display().to_string(), source })
}

/// Why what a file holds is of no use.
pub(super) fn unusable(path: &Path, why: &str) -> Error {
    let source = std::io::Error::new(ErrorKind::InvalidData, why);
    Error::Certificate { path: path.display().to_string(), source }
}
