//! Judges a chain of certificates as etcd, or a client of etcd, does at a given time.

use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::Certificate;
use crate::adapters::https::tls;

/// The use for which a certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use<'a> {
    /// A server presents the certificate to a client that connects to this address or DNS name.
    Server(&'a str),
    /// A client presents the certificate to a server.
    Client,
}

/// Checks that programs accept `chain` for the use `wanted` at the time `now` if they trust the CAs in `bundle`. The chain has the leaf
/// first.
pub fn is_trusted(chain: &[Certificate], bundle: &[Certificate], wanted: Use<'_>, now: u64) -> Result<(), String> {
    let ders = |certificates: &[Certificate]| certificates.iter().map(der).collect::<Vec<_>>();
    is_der_trusted(&ders(chain), &ders(bundle), wanted, now)
}

/// Checks DER certificates as [`is_trusted`] does. Unreadable certificates in `bundle` are skipped.
pub fn is_der_trusted(
    chain: &[CertificateDer<'static>],
    bundle: &[CertificateDer<'static>],
    wanted: Use<'_>,
    now: u64,
) -> Result<(), String> {
    let Some((leaf, intermediates)) = chain.split_first() else { return Err("there is no certificate".to_owned()) };
    let at = UnixTime::since_unix_epoch(Duration::from_secs(now));
    let answer = match wanted {
        Use::Server(name) => {
            let name =
                ServerName::try_from(name).map_err(|_| format!("{name} is neither an address nor a DNS name"))?;
            let verifier = tls::verifier(tls::Trust::Listed(bundle.to_vec()));
            verifier.verify_server_cert(leaf, intermediates, &name, &[], at).map(drop)
        }
        Use::Client => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(bundle.iter().cloned());
            let (roots, provider) = (Arc::new(roots), Arc::new(ring::default_provider()));
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            let verifier = verifier.map_err(|error| error.to_string())?;
            match verifier.verify_client_cert(leaf, intermediates, at) {
                // etcd accepts a CA's own certificate if its trusted file contains exactly that certificate.
                Err(error) if tls::is_ca_as_end_entity(&error) && bundle.contains(leaf) => Ok(()),
                other => other.map(drop),
            }
        }
    };
    answer.map_err(|error| error.to_string())
}

fn der(certificate: &Certificate) -> CertificateDer<'static> {
    CertificateDer::from(certificate.der.clone())
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;
    use crate::os::clock;

    /// Asserts that a CA's own certificate is accepted only if `bundle` contains exactly this certificate.
    /// `openssl req -x509` makes such certificates.
    #[test]
    fn an_authoritys_own_certificate_is_trusted_where_the_bundle_holds_that_very_one() {
        let made = || {
            let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
        };
        let (one, other) = (made(), made());
        let is_trusted = |bundle: &CertificateDer<'static>, wanted: Use| {
            is_der_trusted(std::slice::from_ref(&one), std::slice::from_ref(bundle), wanted, clock::wall_seconds())
                .is_ok()
        };
        for wanted in [Use::Server("127.0.0.1"), Use::Client] {
            assert!(is_trusted(&one, wanted) && !is_trusted(&other, wanted), "{wanted:?}");
        }
        assert!(!is_trusted(&one, Use::Server("127.0.0.2")));
    }
}
