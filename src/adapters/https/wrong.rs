//! The faults of certificate and key files, and of the certificate that a server shows. Each is described so that it can follow
//! the name of the file or the server.

use rustls::crypto::ring::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, CertificateError, InconsistentKeys, OtherError, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// The names of a client's files, for error texts.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    pub authorities: &'a str,
    /// The file of the client's certificate; `None` if the client shows none.
    pub certificate: Option<&'a str>,
}

/// Returns the reason why the file with the contents `pem` holds no usable authority; `None` if it holds one.
pub fn authorities(pem: &[u8]) -> Option<String> {
    let mut store = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(pem).flatten();
    let (usable, unusable) = store.add_parsable_certificates(certificates);
    match (usable, unusable) {
        (0, 0) => Some(not_a("certificate", pem)),
        (0, _) => Some("its certificate cannot be read".to_owned()),
        _ => None,
    }
}

/// The fault of a client's certificate file or key file, in words that follow the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    Certificate(String),
    Key(String),
}

/// Returns the fault of a client's certificate or key; `None` if they are valid and fit each other. `certificate` and `key` are the
/// contents of the files.
pub fn identity(certificate: &[u8], key: &[u8], certificate_file: &str) -> Option<Wrong> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = match chain {
        Ok(chain) if chain.is_empty() => return Some(Wrong::Certificate(not_a("certificate", certificate))),
        Ok(chain) => chain,
        Err(_) => return Some(Wrong::Certificate("its PEM text is damaged".to_owned())),
    };
    if is_encrypted(key) {
        let text = "it is encrypted, and nothing here has its password: write it anew with 'openssl pkey'";
        return Some(Wrong::Key(text.to_owned()));
    }
    let Ok(key) = PrivateKeyDer::from_pem_slice(key) else { return Some(Wrong::Key(not_a("key", key))) };
    let Ok(signing) = any_supported_type(&key) else {
        return Some(Wrong::Key("its kind is none of RSA, P-256, P-384 and Ed25519".to_owned()));
    };
    match CertifiedKey::new(chain, signing).keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => None,
        Err(rustls::Error::InconsistentKeys(_)) => {
            Some(Wrong::Key(format!("it is not the key of the certificate in {certificate_file}")))
        }
        Err(_) => Some(Wrong::Certificate("its certificate cannot be read".to_owned())),
    }
}

fn is_encrypted(pem: &[u8]) -> bool {
    let text = String::from_utf8_lossy(pem);
    text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") || text.contains("Proc-Type: 4,ENCRYPTED")
}

/// Describes the contents of a file that should hold a `wanted` (a certificate or a key) in PEM form and does not.
fn not_a(wanted: &str, pem: &[u8]) -> String {
    let text = String::from_utf8_lossy(pem);
    let has = |label: &str| text.contains(&format!("-----BEGIN {label}"));
    if text.trim().is_empty() {
        "it is empty".to_owned()
    } else if text.starts_with('\u{feff}') {
        "it begins with a byte order mark: write it as plain text".to_owned()
    } else if has("TRUSTED CERTIFICATE") {
        "it holds a TRUSTED CERTIFICATE, which is openssl's alone: write it anew with 'openssl x509'".to_owned()
    } else if wanted == "certificate" && text.contains("PRIVATE KEY-----") {
        "it holds a key, and no certificate".to_owned()
    } else if wanted == "key" && has("CERTIFICATE") {
        "it holds a certificate, and no key".to_owned()
    } else if has("") {
        format!("its {wanted} cannot be read")
    } else if pem.first() == Some(&0x30) {
        format!(
            "it is DER, and no PEM text: write it anew with 'openssl {}'",
            if wanted == "key" { "pkey" } else { "x509" }
        )
    } else {
        format!("it holds no {wanted} in PEM form")
    }
}

/// Returns why a handshake failed, in words that follow the server's name; `None` if certificates and TLS are not the reason.
pub fn handshake(error: &rustls::Error, names: Names<'_>) -> Option<String> {
    let Names { authorities, certificate } = names;
    match error {
        rustls::Error::InvalidCertificate(reason) => Some(untrusted(reason, authorities)),
        rustls::Error::AlertReceived(alert) if is_about_us(*alert) => Some(match certificate {
            Some(file) => format!("it does not take the client certificate in {file} ({alert:?})"),
            None => "it wants a client certificate, and none is given".to_owned(),
        }),
        rustls::Error::InvalidMessage(_) => Some("what listens there does not speak TLS".to_owned()),
        _ => None,
    }
}

/// Returns whether the server sent `alert` because of the client's certificate.
pub(super) fn is_about_us(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
    )
}

fn untrusted(reason: &CertificateError, authorities: &str) -> String {
    match reason {
        CertificateError::UnknownIssuer => {
            format!("its certificate is not signed by an authority of {authorities}")
        }
        // The issuer has the name of an authority, and another key.
        CertificateError::BadSignature => {
            format!(
                "its certificate is not signed by an authority of {authorities}, but by another one of the same name"
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: renew it there".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: compare the clocks".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            format!("its certificate is for {}, and not for that address", names_of(presented))
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is not for that address".to_owned()
        }
        other if is_authority(other) => {
            "its certificate is an authority's own, which no server may show: have it signed by one".to_owned()
        }
        other => format!("its certificate cannot be verified ({})", short(other)),
    }
}

/// Returns whether a certificate was refused because a server shows an authority's certificate as its own.
pub(super) fn is_authority(reason: &CertificateError) -> bool {
    match reason {
        CertificateError::Other(OtherError(inner)) => inner.to_string().contains("CaUsedAsEndEntity"),
        _ => false,
    }
}

/// Lists the host names and addresses among the names in a certificate.
pub(super) fn names_of(presented: &[String]) -> String {
    let names: Vec<&str> = presented.iter().filter_map(|name| bare_name(name)).collect();
    if names.is_empty() { "no name that a host can have".to_owned() } else { names.join(", ") }
}

/// Returns the host in a certificate's name as rustls writes it: `other.example` for `DnsName("other.example")`; `None` for other kinds
/// of names.
fn bare_name(name: &str) -> Option<&str> {
    let (kind, inner) = name.split_once('(').unwrap_or(("DnsName", name));
    matches!(kind, "DnsName" | "IpAddress").then(|| inner.trim_end_matches(')').trim_matches('"'))
}

pub(super) fn short(reason: &CertificateError) -> String {
    match reason {
        CertificateError::Other(OtherError(inner)) => inner.to_string(),
        CertificateError::BadEncoding => "it is malformed, or too old a kind".to_owned(),
        CertificateError::BadSignature => "its signature is wrong".to_owned(),
        other => {
            let text = format!("{other:?}");
            text.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
        }
    }
}

/// Returns the TLS error among the causes of `error`; `None` if there is none.
pub fn of_tls<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // An I/O error does not return the error inside as its source, but that one's source.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner as &(dyn std::error::Error + 'static)),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
#[path = "wrong/tests.rs"]
mod tests;
