//! TLS in which each end accepts exactly one certificate, the other end's.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
    version::TLS13,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use zeroize::Zeroizing;

use super::Error as Channel;

/// The DNS name in the one-time certificates. It has no meaning, because whole certificates are compared.
pub(super) const NAME: &str = "tandem-setup";

/// A one-time certificate and its key, in PEM.
#[derive(Clone)]
pub(in crate::operate::setup) struct Identity {
    pub(super) certificate: String,
    pub(super) key: Zeroizing<String>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(***)")
    }
}

impl Identity {
    pub(super) fn draw() -> Result<Self, Channel> {
        let failed = |error: rcgen::Error| Channel::Stranger(format!("no key can be drawn: {error}"));
        let key = KeyPair::generate().map_err(failed)?;
        let params = CertificateParams::new(vec![NAME.to_owned()]).map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?.pem();
        Ok(Self { certificate, key: Zeroizing::new(key.serialize_pem()) })
    }

    fn parts(&self) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), Channel> {
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|_| unreadable())?;
        Ok((certificate(&self.certificate)?, key))
    }
}

fn unreadable() -> Channel {
    Channel::Stranger("the join file's keys cannot be read: type 'tandem setup' anew".to_owned())
}

fn certificate(pem: &str) -> Result<CertificateDer<'static>, Channel> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| unreadable())
}

/// A TLS verifier that accepts exactly one certificate.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn of(pem: &str) -> Result<(Arc<Self>, Arc<CryptoProvider>), Channel> {
        let provider = Arc::new(provider::default_provider());
        Ok((Arc::new(Self { certificate: certificate(pem)?, provider: provider.clone() }), provider))
    }

    fn is_it(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        if *shown == self.certificate { Ok(()) } else { Err(CertificateError::ApplicationVerificationFailure.into()) }
    }
}

pub(super) fn client(own: &Identity, other: &str) -> Result<Arc<ClientConfig>, Channel> {
    let (pinned, provider) = Pinned::of(other)?;
    let (certificate, key) = own.parts()?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|_| unreadable())?
        .dangerous()
        .with_custom_certificate_verifier(pinned)
        .with_client_auth_cert(vec![certificate], key)
        .map_err(|_| unreadable())?;
    Ok(Arc::new(config))
}

pub(super) fn server(own: &Identity, other: &str) -> Result<Arc<ServerConfig>, Channel> {
    let (pinned, provider) = Pinned::of(other)?;
    let (certificate, key) = own.parts()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|_| unreadable())?
        .with_client_cert_verifier(pinned)
        .with_single_cert(vec![certificate], key)
        .map_err(|_| unreadable())?;
    // A ticket would serve a second connection, and there is only one.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

type Proof = Result<HandshakeSignatureValid, Error>;

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.is_it(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(&self, text: &[u8], by: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Proof {
        verify_tls12_signature(text, by, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(&self, text: &[u8], by: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Proof {
        verify_tls13_signature(text, by, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.is_it(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(&self, text: &[u8], by: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Proof {
        verify_tls12_signature(text, by, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(&self, text: &[u8], by: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Proof {
        verify_tls13_signature(text, by, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
