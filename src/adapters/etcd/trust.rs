//! The certificates that a running etcd process has loaded: the chain that it shows, and the authorities that it trusts for
//! clients. etcd sends their names in each handshake, so no client certificate has to be refused to find out.
//!
//! The caller judges the chain, so any chain is accepted. No request is sent on such a connection.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use super::client::{Credentials, Endpoint, Error, read_pem};
use super::pem;
use super::shown::{connected, handshake, unusable};

/// The certificates that one port of an etcd showed in a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The certificate chain of the server, leaf first.
    pub chain: Vec<CertificateDer<'static>>,
    /// The subjects, in DER, of the authorities from which the server accepts client certificates.
    pub trusts: Vec<Vec<u8>>,
}

/// The outcome of a TLS handshake with one port of an etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    At(Port),
    /// The connection was refused.
    Nobody,
    Unknown(String),
}

/// Performs a TLS handshake with the port at `endpoint`. Presents the client certificate `own`, so that an etcd that trusts this
/// certificate logs no error. The TCP connection may take `connect`, and the rest `patience`.
pub fn look(endpoint: &Endpoint, own: &Credentials, connect: Duration, patience: Duration) -> Looked {
    let stream = match connected(endpoint, connect) {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Looked::Nobody,
        Err(error) => return Looked::Unknown(format!("cannot connect to {}: {error}", endpoint.address)),
    };
    let named = Arc::new(Named::default());
    let looked = config(endpoint, own, &named).and_then(|config| handshake(stream, endpoint, config, patience));
    match looked {
        Ok(chain) => Looked::At(Port { chain, trusts: named.take() }),
        Err(error) => Looked::Unknown(error.to_string()),
    }
}

fn config(endpoint: &Endpoint, own: &Credentials, named: &Arc<Named>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // A mismatched or unreadable certificate of this node does not prevent the handshake.
    let shown = certified(own, &provider).ok();
    let resolver = Arc::new(Resolver { shown: shown.map(Arc::new), named: Arc::clone(named) });
    Ok(ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(endpoint, &error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
        .with_client_cert_resolver(resolver))
}

fn certified(own: &Credentials, provider: &CryptoProvider) -> Result<CertifiedKey, Error> {
    let wrong = |why: String| pem::unusable(&own.key_file, &why);
    let key = PrivateKeyDer::from_pem_slice(&read_pem(&own.key_file)?).map_err(|error| wrong(error.to_string()))?;
    CertifiedKey::from_der(pem::certificates(&own.cert_file)?, key, provider).map_err(|error| wrong(error.to_string()))
}

/// The subjects, in DER, of the authorities that the server named in its request for a client certificate.
#[derive(Debug, Default)]
struct Named(Mutex<Vec<Vec<u8>>>);

impl Named {
    fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct Resolver {
    shown: Option<Arc<CertifiedKey>>,
    named: Arc<Named>,
}

impl ResolvesClientCert for Resolver {
    fn resolve(&self, authorities: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let subjects = authorities.iter().map(|subject| subject.to_vec()).collect();
        *self.named.0.lock().unwrap_or_else(PoisonError::into_inner) = subjects;
        self.shown.clone()
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// A verifier that accepts every server certificate, if the server proves that it has the certificate's key.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
