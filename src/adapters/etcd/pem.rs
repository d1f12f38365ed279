//! The PEM files of certificates by which etcds and their clients trust each other.

use std::io::ErrorKind;
use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use zeroize::Zeroizing;

use super::error::Error;
use crate::os::wiped;

/// The size in bytes of the largest PEM file that is read. Usual files are much smaller.
pub const PEM_LIMIT: u64 = 4 * 1024 * 1024;

/// Reads every certificate of the PEM file `path`.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read_pem(path)?).collect();
    found.map_err(|error| unusable(path, &error.to_string()))
}

/// Reads the whole PEM file `path`. The buffer is overwritten when it is dropped, because the file may contain a key.
pub(super) fn read_pem(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    wiped::read_at_most(path, PEM_LIMIT)
        .map_err(|source| Error::Certificate { path: path.display().to_string(), source })
}

/// Returns the error for the file `path`, with unusable contents for the reason `why`.
pub(super) fn unusable(path: &Path, why: &str) -> Error {
    let source = std::io::Error::new(ErrorKind::InvalidData, why);
    Error::Certificate { path: path.display().to_string(), source }
}
