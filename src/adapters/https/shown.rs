//! The certificate that a BMC showed in its TLS handshake, in the form that an operator needs.

use std::sync::PoisonError;

use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::tls::{self, Shown};

/// The facts about a BMC's certificate that an operator needs: the end of its validity, and its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The end of the certificate's validity in seconds since 1970; `None` where it cannot be read.
    pub ends: Option<u64>,
    /// The SHA-256 fingerprint of the certificate, in the form of the option `ssl_fingerprint`.
    pub fingerprint: String,
}

/// Returns the end of a certificate's validity in seconds since 1970; `None` if `der` is no certificate.
pub fn end(der: &[u8]) -> Option<u64> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    u64::try_from(certificate.validity().not_after.timestamp()).ok()
}

/// Returns the certificate that the BMC showed last; `None` if it has shown none yet.
pub(crate) fn certificate(shown: &Shown) -> Option<Certificate> {
    let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    let der = shown.as_ref()?;
    Some(Certificate { ends: end(der), fingerprint: tls::display(tls::fingerprint(der)) })
}
