//! The certificates in the PEM files by which etcds and their clients know each other.

use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

pub(super) use super::client::unusable;
use super::client::{Error, read_pem};

/// Every certificate in a file.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read_pem(path)?).collect();
    found.map_err(|error| unusable(path, &error.to_string()))
}
