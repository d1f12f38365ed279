//! Tests of the text for every kind of file and of failure.

use rcgen::{CertificateParams, KeyPair};

use super::*;

/// A private key on the curve secp256k1, which TLS does not support.
const K1: &str = "-----BEGIN EC PRIVATE KEY-----\nMHQCAQEEIESlG++1D25TkkFpvnZcDemPvbzBI4FMPX6veFeIbrFFoAcGBSuBBAAK\noUQDQgAENgBqktHpsWnZ4ap8qyPcoiJjwOBQ9hdeIrfevLUErxnZlgtIlJ3ZnDP4\n9nA+KTdtIYMDSKiZVilbWmB7Kl6mow==\n-----END EC PRIVATE KEY-----\n";

fn pair() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

#[test]
fn every_file_that_is_of_no_use_is_named_with_what_is_wrong_with_it() {
    let (certificate, key) = pair();
    let (other, others_key) = pair();
    let wrong = |certificate: &str, key: &str| identity(certificate.as_bytes(), key.as_bytes(), "/etc/cli.crt");
    let of_key = |words: &str| Some(Wrong::Key(words.to_owned()));
    let of_certificate = |words: &str| Some(Wrong::Certificate(words.to_owned()));
    for (certificate, key) in [
        (certificate.clone(), key.clone()),
        (format!("{certificate}{key}"), format!("{certificate}{key}")),
        (
            format!("{certificate}{other}"),
            format!("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{key}"),
        ),
        (certificate.replace('\n', "\r\n"), key.replace('\n', "\r\n")),
        (format!("subject=CN = x\n{certificate}"), key.trim_end().to_owned()),
    ] {
        assert_eq!(wrong(&certificate, &key), None, "{certificate}{key}");
    }
    assert_eq!(wrong(&certificate, &certificate), of_key("it holds a certificate, and no key"));
    assert_eq!(wrong(&certificate, ""), of_key("it is empty"));
    assert_eq!(wrong(&certificate, "hello"), of_key("it holds no key in PEM form"));
    assert_eq!(wrong(&certificate, &others_key), of_key("it is not the key of the certificate in /etc/cli.crt"));
    assert_eq!(wrong(&certificate, K1), of_key("its kind is none of RSA, P-256, P-384 and Ed25519"));
    for encrypted in [
        key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"),
        key.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n\n"),
    ] {
        assert!(
            matches!(wrong(&certificate, &encrypted), Some(Wrong::Key(why)) if why.contains("openssl pkey")),
            "{encrypted}"
        );
    }
    assert_eq!(wrong(&key, &key), of_certificate("it holds a key, and no certificate"));
    assert_eq!(wrong("", &key), of_certificate("it is empty"));
    let mark = of_certificate("it begins with a byte order mark: write it as plain text");
    assert_eq!(wrong(&format!("\u{feff}{certificate}"), &key), mark);
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(wrong(nonsense, &key), of_certificate("its certificate cannot be read"));
    let der = b"0\x82\x01\x02";
    assert!(matches!(identity(der, key.as_bytes(), ""), Some(Wrong::Certificate(why)) if why.contains("openssl x509")));

    let of = |pem: &str| authorities(pem.as_bytes());
    assert_eq!(of(&certificate), None);
    assert_eq!(of(&format!("{nonsense}{certificate}")), None, "one that is of use is enough");
    assert_eq!(of(nonsense), Some("its certificate cannot be read".to_owned()));
    assert_eq!(of(&key), Some("it holds a key, and no certificate".to_owned()));
    assert!(of(&certificate.replace(" CERT", " TRUSTED CERT")).is_some_and(|why| why.contains("TRUSTED CERTIFICATE")));
    assert_eq!(of(""), Some("it is empty".to_owned()));
}

#[test]
fn every_failure_of_a_handshake_that_is_about_trust_names_the_file() {
    let said = |error: rustls::Error| {
        handshake(&error, Names { authorities: "/etc/ca.crt", certificate: Some("/etc/cli.crt") })
    };
    let of = |reason: CertificateError| said(rustls::Error::InvalidCertificate(reason)).unwrap();
    assert!(of(CertificateError::UnknownIssuer).contains("/etc/ca.crt"));
    assert!(of(CertificateError::BadSignature).contains("/etc/ca.crt"));
    assert!(of(CertificateError::Expired).contains("renew it there"));
    assert!(of(CertificateError::NotValidYet).contains("clocks"));
    assert!(of(CertificateError::NotValidForName).contains("that address"));
    assert_eq!(names_of(&["DnsName(\"a.example\")".to_owned(), "Unsupported(0x01)".to_owned()]), "a.example");
    assert_eq!(names_of(&["Unsupported(0x01)".to_owned()]), "no name that a host can have");
    for alert in [AlertDescription::CertificateRequired, AlertDescription::BadCertificate, AlertDescription::UnknownCA]
    {
        let why = said(rustls::Error::AlertReceived(alert)).unwrap();
        assert!(why.contains("/etc/cli.crt"), "{why}");
        let none = Names { authorities: "/etc/ca.crt", certificate: None };
        let why = handshake(&rustls::Error::AlertReceived(alert), none).unwrap();
        assert_eq!(why, "it wants a client certificate, and none is given");
    }
    assert_eq!(said(rustls::Error::General(String::new())), None);
    let inner = std::io::Error::other(rustls::Error::from(CertificateError::UnknownIssuer));
    let nested = std::io::Error::other(inner);
    assert!(of_tls(&nested).is_some() && of_tls(&std::io::Error::other("x")).is_none());
}
