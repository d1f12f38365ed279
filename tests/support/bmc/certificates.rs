//! Certificates of BMCs: good ones, and every usual kind of bad one.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, SanType, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The kind of certificate that the emulated BMC shows: a good one, or one with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Good,
    Expired,
    NotYetValid,
    WrongName,
    SelfSigned,
    /// A self-signed certificate that is marked as an authority, as factories make it.
    SelfSignedAuthority,
    /// A certificate that the authority has signed, but in which only the common name has the address.
    NoName,
}

/// The certificate authority of a test, with its certificate in a file.
pub struct Authority {
    directory: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// The certificate that an emulated BMC shows, with its key.
pub struct Identity {
    pub certificate: CertificateDer<'static>,
    pub key: PrivateKeyDer<'static>,
    pub fingerprint: String,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = name("test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { directory, issuer: Issuer::new(params, key) }
    }

    /// Returns the path of the authority's certificate.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Returns the path of the BMC's own certificate.
    pub fn server_file(&self) -> PathBuf {
        self.directory.path().join("server.pem")
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn issue(&self, kind: Kind) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = name("127.0.0.1");
        params.subject_alt_names = match kind {
            Kind::NoName => Vec::new(),
            Kind::WrongName => vec![SanType::DnsName("other.example".try_into().unwrap())],
            _ => vec![
                SanType::IpAddress("127.0.0.1".parse().unwrap()),
                SanType::IpAddress("::1".parse().unwrap()),
                SanType::DnsName("localhost".try_into().unwrap()),
            ],
        };
        match kind {
            Kind::Expired => {
                params.not_before = date_time_ymd(2020, 1, 1);
                params.not_after = date_time_ymd(2021, 1, 1);
            }
            Kind::NotYetValid => params.not_before = date_time_ymd(2090, 1, 1),
            Kind::SelfSignedAuthority => params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained),
            _ => {}
        }
        let certificate = match kind {
            Kind::SelfSigned | Kind::SelfSignedAuthority => params.self_signed(&key).unwrap(),
            _ => params.signed_by(&key, &self.issuer).unwrap(),
        };
        std::fs::write(self.server_file(), certificate.pem()).unwrap();
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate.der());
        Identity {
            fingerprint: digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":"),
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        }
    }
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}
