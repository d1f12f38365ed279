//! The contents of a certificate that operators and checks need.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{Error, Result};

/// Number of characters in a line of PEM.
const LINE: usize = 64;

/// The parts of a certificate that operators and checks need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub der: Vec<u8>,
    pub subject: String,
    pub issuer: String,
    /// The subject's name in DER. Issuers and subjects are compared in this form.
    pub subject_der: Vec<u8>,
    /// The issuer's name in DER. Issuers and subjects are compared in this form.
    pub issuer_der: Vec<u8>,
    common_name: Option<String>,
    /// The DNS names and addresses in the certificate's subject alternative name.
    pub names: Vec<String>,
    /// The time from which the certificate is valid, in seconds since 1970.
    pub begins: u64,
    /// The time until which the certificate is valid, in seconds since 1970.
    pub ends: u64,
    pub is_ca: bool,
    pub for_servers: bool,
    pub for_clients: bool,
    /// The certificate's serial number, in hexadecimal.
    pub serial: String,
    /// The certificate's public key, in the form in which the certificate contains it.
    pub public_key: Vec<u8>,
    /// SHA-256 of the whole certificate, in hexadecimal.
    pub fingerprint: String,
}

impl Certificate {
    /// Parses the DER certificate `der`. An error calls it `what`.
    pub fn read(der: &[u8], what: &str) -> Result<Self> {
        let unreadable = |why: String| Error::Unreadable { what: what.to_owned(), why };
        let (_, parsed) = X509Certificate::from_der(der).map_err(|error| unreadable(error.to_string()))?;
        let seconds = |timestamp: i64| u64::try_from(timestamp).unwrap_or_default();
        let usage = parsed.extended_key_usage().ok().flatten();
        // A certificate without extended key usage is good for everything.
        let (for_servers, for_clients) = usage.map_or((true, true), |usage| {
            (usage.value.any || usage.value.server_auth, usage.value.any || usage.value.client_auth)
        });
        let names = parsed.subject_alternative_name().ok().flatten();
        let names = names.map(|names| names.value.general_names.iter().filter_map(name).collect());
        let common_name = parsed.subject().iter_common_name().last().and_then(|name| name.as_str().ok());
        Ok(Self {
            der: der.to_vec(),
            subject: parsed.subject().to_string(),
            issuer: parsed.issuer().to_string(),
            subject_der: parsed.subject().as_raw().to_vec(),
            issuer_der: parsed.issuer().as_raw().to_vec(),
            common_name: common_name.map(str::to_owned),
            names: names.unwrap_or_default(),
            begins: seconds(parsed.validity().not_before.timestamp()),
            ends: seconds(parsed.validity().not_after.timestamp()),
            is_ca: parsed.is_ca(),
            for_servers,
            for_clients,
            serial: HEXLOWER.encode(parsed.raw_serial()),
            public_key: parsed.public_key().raw.to_vec(),
            fingerprint: HEXLOWER.encode(digest(&SHA256, der).as_ref()),
        })
    }

    /// Returns the CommonName of the certificate's subject, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// Returns the IP addresses in the certificate's subject alternative name.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.names.iter().filter_map(|name| name.parse().ok()).collect()
    }

    pub fn pem(&self) -> String {
        let text = STANDARD.encode(&self.der);
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE));
            pem.push_str(line);
            pem.push('\n');
            rest = after;
        }
        pem + "-----END CERTIFICATE-----\n"
    }
}

/// Parses every certificate in a PEM text. Fails if there is none. An error calls the text `what`.
pub fn read_all(pem: &str, what: &str) -> Result<Vec<Certificate>> {
    let unreadable = |why: String| Error::Unreadable { what: what.to_owned(), why };
    let ders: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let ders = ders.map_err(|error| unreadable(error.to_string()))?;
    if ders.is_empty() {
        return Err(unreadable("there is none in it".to_owned()));
    }
    ders.iter().map(|der| Certificate::read(der, what)).collect()
}

/// Parses the first certificate in a PEM text, which is the leaf of a chain. An error calls the text `what`.
pub fn first(pem: &str, what: &str) -> Result<Certificate> {
    let mut all = read_all(pem, what)?;
    Ok(all.swap_remove(0))
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(*bytes).ok()?)).to_string()),
            16 => Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?)).to_string()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_as_pem_reads_back_the_same() {
        let authority = super::super::Authority::new("demo", 1_795_400_000).unwrap();
        let certificate = authority.certificate();
        assert_eq!(&first(&certificate.pem(), "it").unwrap(), certificate);
        assert!(certificate.pem().lines().all(|line| line.len() <= LINE));
        let both = read_all(&(certificate.pem() + "words\n" + &certificate.pem()), "it").unwrap();
        assert_eq!(both.len(), 2);
    }

    #[test]
    fn a_file_without_a_certificate_is_named_in_the_error() {
        for wrong in ["", "rubbish", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let error = first(wrong, "/tmp/it").unwrap_err().to_string();
            assert!(error.starts_with("/tmp/it is no certificate that can be read: "), "{error}");
        }
    }
}
