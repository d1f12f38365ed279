//! The trust in a server: the system's authorities, a CA file, a pinned fingerprint, or any certificate if configured by name.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use ring::digest;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ResolvesClientCert, WantsClientCert, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring as provider, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, OtherError,
    PeerIncompatible, RootCertStore, SignatureScheme,
};
use rustls_native_certs::load_certs_from_paths;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use super::wrong::{is_about_us, is_authority, names_of, short};

/// The certificates that a client accepts from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Certificates that are signed by an authority that this machine trusts.
    System,
    /// Certificates that an authority in the field's list has signed, and self-signed certificates in that list.
    Listed(Vec<CertificateDer<'static>>),
    /// Certificates with one of these SHA-256 fingerprints, whatever their names, dates and issuers are.
    Pinned(Vec<Fingerprint>),
    /// Any certificate, because the operator has disabled the verification.
    Anyone,
}

/// The SHA-256 digest of a certificate. `openssl x509 -fingerprint -sha256` prints it.
pub type Fingerprint = [u8; 32];

/// The certificate that the server showed last, for the fingerprint in error texts; `None` before the first handshake.
pub type Shown = Arc<Mutex<Option<CertificateDer<'static>>>>;

/// Reads one or more fingerprints such as `AB:CD:...` or `abcd...`, with or without `sha256:` in front. Commas or blanks separate them.
pub fn parse_fingerprints(text: &str) -> Result<Vec<Fingerprint>, String> {
    let parsed: Option<Vec<Fingerprint>> =
        text.split([',', ' ']).filter(|one| !one.is_empty()).map(parse_fingerprint).collect();
    parsed.filter(|list| !list.is_empty()).ok_or_else(|| {
        "ssl_fingerprint needs the 64 hex digits of a SHA-256 fingerprint, as 'openssl x509 -fingerprint -sha256' prints it"
            .to_owned()
    })
}

fn parse_fingerprint(text: &str) -> Option<Fingerprint> {
    let lower = text.to_ascii_lowercase();
    let digits: String = lower
        .trim_start_matches("sha256")
        .trim_start_matches([':', '='])
        .chars()
        .filter(|digit| *digit != ':')
        .collect();
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut bytes = [0_u8; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Reads the certificates of the PEM file `ssl_ca_file`. If the file has no certificate, the error names the file.
pub fn read_ca_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let cannot = |why: String| format!("ssl_ca_file {}: {why}", path.display());
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| cannot(error.to_string()))?.collect();
    match found {
        Ok(certificates) if certificates.is_empty() => Err(cannot("it holds no certificate in PEM form".to_owned())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(cannot(error.to_string())),
    }
}

pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    let mut bytes = [0_u8; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
    bytes
}

pub(crate) fn display(fingerprint: Fingerprint) -> String {
    let mut text = String::with_capacity(95);
    for (at, byte) in fingerprint.iter().enumerate() {
        let _ = write!(text, "{}{byte:02X}", if at == 0 { "" } else { ":" });
    }
    text
}

/// The certificate chain that a client shows to a server, and its private key.
pub type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Returns the TLS configuration of a client that shows no certificate. A handshake stores the server's certificate in `shown`.
pub fn client_config(trust: Trust, check_name: bool, shown: Shown) -> Result<ClientConfig, rustls::Error> {
    Ok(builder(trust, check_name, shown)?.with_no_client_auth())
}

/// Returns a TLS configuration as [`client_config`] does. A handshake also stores in `wanted` whether the server asks for a client
/// certificate.
pub(crate) fn noting(
    trust: Trust,
    check_name: bool,
    shown: Shown,
    wanted: Arc<AtomicBool>,
) -> Result<ClientConfig, rustls::Error> {
    Ok(builder(trust, check_name, shown)?.with_client_cert_resolver(Arc::new(NoCertificate(wanted))))
}

/// Returns the TLS configuration of a client that checks the server's name, and shows `identity` if there is one.
pub fn with_identity(trust: Trust, identity: Option<Identity>) -> Result<ClientConfig, rustls::Error> {
    let builder = builder(trust, true, Shown::default())?;
    match identity {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key),
        None => Ok(builder.with_no_client_auth()),
    }
}

fn builder(
    trust: Trust,
    check_name: bool,
    shown: Shown,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, rustls::Error> {
    let provider = Arc::new(provider::default_provider());
    let verifier = Verifier { trust, check_name, provider: provider.clone(), shown, authorities: OnceLock::new() };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier)))
}

/// Returns a verifier of server certificates and their names, for a client with a TLS configuration of its own.
pub(crate) fn verifier(trust: Trust) -> Arc<dyn ServerCertVerifier> {
    let provider = Arc::new(provider::default_provider());
    Arc::new(Verifier { trust, check_name: true, provider, shown: Shown::default(), authorities: OnceLock::new() })
}

/// A resolver of client certificates for a client without a certificate. It records whether the server asks for one.
#[derive(Debug)]
struct NoCertificate(Arc<AtomicBool>);

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.store(true, Ordering::Relaxed);
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    check_name: bool,
    provider: Arc<CryptoProvider>,
    shown: Shown,
    /// The trusted authorities. They are loaded at the first handshake, because an action without a handshake does not need them.
    authorities: OnceLock<Authorities>,
}

/// The result of checking a signature in the TLS handshake.
type Proof = Result<HandshakeSignatureValid, rustls::Error>;

impl Verifier {
    /// Checks a signature in the TLS handshake. `Trust::Anyone` accepts every signature, because old BMCs use keys and certificates that
    /// are refused today.
    fn proven(&self, check: impl FnOnce(&WebPkiSupportedAlgorithms) -> Proof) -> Proof {
        match self.trust {
            Trust::Anyone => Ok(HandshakeSignatureValid::assertion()),
            _ => check(&self.provider.signature_verification_algorithms),
        }
    }

    fn by_authority(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let signed_by = |authorities: &Authorities| self.chain(&parsed, certificate, intermediates, authorities, now);
        match &self.trust {
            Trust::Listed(listed) => signed_by(self.authorities.get_or_init(|| Authorities::of(listed.clone())))?,
            // The bundle is almost always sufficient. The directories next to it take ten times as long to read.
            _ => match signed_by(self.authorities.get_or_init(Authorities::of_bundle)) {
                Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                    signed_by(&Authorities::of(rustls_native_certs::load_native_certs().certs))?;
                }
                other => other?,
            },
        }
        if self.check_name { verify_server_name(&parsed, name) } else { Ok(()) }
    }

    fn chain(
        &self,
        parsed: &ParsedCertificate<'_>,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        authorities: &Authorities,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        match verify_server_cert_signed_by_trust_anchor(parsed, &authorities.store, intermediates, now, algorithms) {
            // Factory certificates are often self-signed and marked as an authority. Such a certificate is trusted if the list
            // has it. Its dates were checked before its constraints.
            Err(error) if is_ca_as_end_entity(&error) && authorities.listed.iter().any(|one| one == certificate) => {
                Ok(())
            }
            other => other,
        }
    }
}

/// The certificates of the trusted authorities: as configured (`listed`), and as trust anchors (`store`).
#[derive(Debug)]
struct Authorities {
    listed: Vec<CertificateDer<'static>>,
    store: RootCertStore,
}

impl Authorities {
    fn of(listed: Vec<CertificateDer<'static>>) -> Self {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(listed.iter().cloned());
        Self { listed, store }
    }

    /// Loads this machine's bundle of authorities. Loads nothing if `SSL_CERT_FILE` or `SSL_CERT_DIR` names another place, because the
    /// caller then reads that place.
    fn of_bundle() -> Self {
        let chosen = ["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().any(|name| std::env::var_os(name).is_some());
        let bundle = BUNDLES.iter().map(Path::new).find(|path| !chosen && path.is_file());
        Self::of(bundle.map(|path| load_certs_from_paths(Some(path), None).certs).unwrap_or_default())
    }
}

/// The files in which distributions keep all trusted authorities: Debian; Fedora and RHEL; SUSE.
const BUNDLES: &[&str] =
    &["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// Returns whether rustls refused a server's certificate only because it is an authority's certificate. rustls has already checked the
/// certificate's dates.
pub(crate) fn is_ca_as_end_entity(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(reason) if is_authority(reason))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Ok(mut shown) = self.shown.lock() {
            *shown = Some(certificate.clone().into_owned());
        }
        match &self.trust {
            Trust::Anyone => {}
            Trust::Pinned(pins) if pins.contains(&fingerprint(certificate)) => {}
            Trust::Pinned(_) => return Err(CertificateError::ApplicationVerificationFailure.into()),
            Trust::Listed(_) | Trust::System => self.by_authority(certificate, intermediates, name, now)?,
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Proof {
        self.proven(|algorithms| verify_tls12_signature(message, certificate, signed, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Proof {
        self.proven(|algorithms| verify_tls13_signature(message, certificate, signed, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let mut schemes = self.provider.signature_verification_algorithms.supported_schemes();
        if self.trust == Trust::Anyone {
            // Without verification, the certificate's key may be of any kind.
            schemes.extend([
                SignatureScheme::RSA_PKCS1_SHA1,
                SignatureScheme::ECDSA_SHA1_Legacy,
                SignatureScheme::ECDSA_NISTP521_SHA512,
                SignatureScheme::ED448,
            ]);
        }
        schemes
    }
}

/// The facts about a failed handshake that its error text needs.
#[derive(Clone, Copy, Debug)]
pub struct Handshake<'a> {
    pub trust: &'a Trust,
    pub shown: &'a Shown,
    /// True if the server has asked for a client certificate.
    pub wants_certificate: bool,
}

/// Returns an explanation of a TLS error, and whether a retry is pointless.
pub fn explain(error: &rustls::Error, handshake: Handshake<'_>) -> (bool, String) {
    match error {
        rustls::Error::InvalidCertificate(reason) => (true, explain_certificate(reason, handshake)),
        rustls::Error::AlertReceived(alert)
            if is_about_us(*alert)
                || handshake.wants_certificate && *alert == AlertDescription::HandshakeFailure =>
        {
            (
                true,
                "the BMC wants a client certificate, which no option gives: switch the verification of clients \
                 (mutual TLS) off on the BMC"
                    .to_owned(),
            )
        }
        rustls::Error::AlertReceived(
            AlertDescription::HandshakeFailure
            | AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity,
        )
        | rustls::Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::NoCipherSuitesInCommon
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => (
            true,
            "the BMC offers neither TLS 1.3 nor TLS 1.2 with an ECDHE cipher suite with AES-GCM or ChaCha20; \
             update its firmware or enable modern ciphers there; if it has them, renew its certificate with a key that is \
             RSA, P-256, P-384 or Ed25519, or set ssl_insecure=1 to trust anybody at that address"
                .to_owned(),
        ),
        rustls::Error::InvalidMessage(_) => {
            (true, "what listens there does not speak TLS; check ip and ipport".to_owned())
        }
        other => (false, format!("TLS failed: {other}")),
    }
}

fn explain_certificate(reason: &CertificateError, handshake: Handshake<'_>) -> String {
    let Handshake { trust, shown, .. } = handshake;
    let print = shown.lock().ok().and_then(|shown| shown.as_ref().map(|shown| display(fingerprint(shown))));
    let print = print.unwrap_or_else(|| "unknown".to_owned());
    let pin = pin(&print);
    let ways = format!("give its CA as ssl_ca_file, or {pin}");
    match reason {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the BMC's certificate has expired; renew it, or {pin}")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the BMC's certificate is not valid yet; check the clocks here and there".to_owned()
        }
        CertificateError::NotValidForName => wrong_name("another name", &pin),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            wrong_name("no name at all", &pin)
        }
        CertificateError::NotValidForNameContext { presented, .. } => wrong_name(&names_of(presented), &pin),
        CertificateError::UnknownIssuer => {
            format!("the BMC's certificate is not signed by a trusted authority; {ways}")
        }
        CertificateError::ApplicationVerificationFailure => {
            format!(
                "the BMC's certificate is not the pinned one: its fingerprint is {print}; if it was renewed, compare that with the BMC's own page \
                 or console, and change ssl_fingerprint"
            )
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => format!(
            "the BMC's certificate, or its CA's, is signed in a way that cannot be verified here, such as with a key on \
             P-521; {pin}"
        ),
        // Such a key cannot prove the ownership of the certificate, so a pin would be worthless.
        hopeless if is_too_old(hopeless) => format!(
            "the BMC's certificate cannot be verified ({}); renew it there, as X.509 version 3 and with a key of 2048 bits \
             or more, or set ssl_insecure=1 to trust anybody at that address",
            short(hopeless)
        ),
        // A pinned or listed certificate is refused because of its own properties.
        other if matches!(trust, Trust::Pinned(_)) || short(other).contains("CriticalExtension") => format!(
            "the BMC's certificate cannot be verified ({}), pinned or not; renew it there, or set ssl_insecure=1 to trust \
             anybody at that address",
            short(other)
        ),
        other if is_listed(handshake) => {
            format!("the BMC's certificate cannot be verified ({}); {pin}", short(other))
        }
        other => format!("the BMC's certificate cannot be verified ({}); {ways}", short(other)),
    }
}

/// Returns whether the server showed a certificate that is itself in the list of trusted ones.
fn is_listed(handshake: Handshake<'_>) -> bool {
    let shown = handshake.shown.lock().ok().and_then(|shown| shown.clone());
    matches!(handshake.trust, Trust::Listed(listed) if shown.is_some_and(|shown| listed.contains(&shown)))
}

/// Returns whether a certificate was refused because it is of X.509 version 1, or because its key is too short.
fn is_too_old(reason: &CertificateError) -> bool {
    match reason {
        CertificateError::BadSignature => true,
        CertificateError::Other(OtherError(inner)) => inner.to_string().contains("UnsupportedCertVersion"),
        _ => false,
    }
}

fn wrong_name(names: &str, pin: &str) -> String {
    format!(
        "the BMC's certificate is for {names}, not for the address in ip; use the name it is for, or set \
         ssl_verify_hostname=0, or {pin}"
    )
}

/// Returns the advice to pin the certificate with the fingerprint `print`. It asks the operator to compare the fingerprint first, because
/// any server at that address can show a certificate.
fn pin(print: &str) -> String {
    format!("pin it by 'ssl_fingerprint': it shows {print}, to be compared with the BMC's own page or console")
}

#[cfg(test)]
#[path = "tls/tests.rs"]
mod tests;
