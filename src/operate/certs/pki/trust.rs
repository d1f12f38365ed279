//! Whether a chain is trusted: what etcd, or its client, would make of it at a given time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::Certificate;

/// What a certificate is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is shown to a client.
    Server(IpAddr),
    /// It is shown to a server.
    Client,
}

/// Whether who trusts `bundle` takes `chain`, the leaf first, for `wanted` at `now`; else why not.
pub fn is_trusted(chain: &[Certificate], bundle: &[Certificate], wanted: Use, now: u64) -> Result<(), String> {
    let ders = |certificates: &[Certificate]| certificates.iter().map(der).collect::<Vec<_>>();
    is_der_trusted(&ders(chain), &ders(bundle), wanted, now)
}

/// As [`is_trusted`], of certificates as they were found: one of `bundle` that nobody can read is left out.
pub fn is_der_trusted(
    chain: &[CertificateDer<'static>],
    bundle: &[CertificateDer<'static>],
    wanted: Use,
    now: u64,
) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(bundle.iter().cloned());
    let Some((leaf, intermediates)) = chain.split_first() else { return Err("there is no certificate".to_owned()) };
    let (roots, provider) = (Arc::new(roots), Arc::new(ring::default_provider()));
    let at = UnixTime::since_unix_epoch(Duration::from_secs(now));
    let answer = match wanted {
        Use::Server(address) => {
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
            let verifier = verifier.map_err(|error| error.to_string())?;
            verifier.verify_server_cert(leaf, intermediates, &ServerName::from(address), &[], at).map(drop)
        }
        Use::Client => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            let verifier = verifier.map_err(|error| error.to_string())?;
            verifier.verify_client_cert(leaf, intermediates, at).map(drop)
        }
    };
    answer.map_err(|error| error.to_string())
}

fn der(certificate: &Certificate) -> CertificateDer<'static> {
    CertificateDer::from(certificate.der.clone())
}
