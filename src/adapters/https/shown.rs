//! The certificate that a BMC showed in its TLS handshake, as somebody who looks after it wants to know it.

use std::sync::PoisonError;

use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::tls::{self, Shown};

/// A certificate in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// In seconds since 1970; `None` where it cannot be read.
    pub ends: Option<u64>,
    /// SHA-256, as `ssl_fingerprint` takes it.
    pub fingerprint: String,
}

/// When a certificate ends, in seconds since 1970; `None` where it is none.
pub fn end(der: &[u8]) -> Option<u64> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    u64::try_from(certificate.validity().not_after.timestamp()).ok()
}

/// What was shown last, if anything was.
pub(crate) fn certificate(shown: &Shown) -> Option<Certificate> {
    let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    let der = shown.as_ref()?;
    Some(Certificate { ends: end(der), fingerprint: tls::display(tls::fingerprint(der)) })
}
