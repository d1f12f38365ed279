//! The certificates in the PEM files by which etcds and their clients know each other.

use std::io::{Error as IoError, ErrorKind};
use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::client::{Error, read_pem};

/// Every certificate in a file.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read_pem(path)?).collect();
    found.map_err(|error| unusable(path, &error.to_string()))
}

/// Why what a file holds is of no use.
pub(super) fn unusable(path: &Path, why: &str) -> Error {
    Error::Certificate { path: path.display().to_string(), source: IoError::new(ErrorKind::InvalidData, why) }
}
