//! Tests of the trust in certificates, and of the texts about untrusted ones.

use super::*;

fn by<'a>(trust: &'a Trust, shown: &'a Shown) -> Handshake<'a> {
    Handshake { trust, shown, wants_certificate: false }
}

#[test]
fn advice_that_was_followed_is_not_given_again() {
    let certificate = CertificateDer::from(vec![1, 2, 3]);
    let shown = Shown::new(Mutex::new(Some(certificate.clone())));
    let pinned = Trust::Pinned(vec![fingerprint(&certificate)]);
    let listed = Trust::Listed(vec![certificate]);
    let critical = CertificateError::Other(OtherError(Arc::new(std::io::Error::other("UnsupportedCriticalExtension"))));
    for (trust, reason) in [(&pinned, &critical), (&listed, &critical), (&pinned, &CertificateError::BadEncoding)] {
        let said = explain_certificate(reason, by(trust, &shown));
        assert!(said.contains("renew it there"), "{said}");
        assert!(!said.contains("ssl_ca_file") && !said.contains("ssl_fingerprint"), "{said}");
    }
    let said = explain_certificate(&CertificateError::BadEncoding, by(&listed, &shown));
    assert!(said.contains("pin it by") && !said.contains("ssl_ca_file"), "{said}");
    let said = explain_certificate(&CertificateError::BadEncoding, by(&Trust::System, &shown));
    assert!(said.contains("pin it by") && said.contains("ssl_ca_file"), "{said}");
}

#[test]
fn a_client_certificate_that_is_wanted_is_one_sentence() {
    let said = |alert, wants_certificate| {
        let handshake = Handshake { trust: &Trust::System, shown: &Shown::default(), wants_certificate };
        explain(&rustls::Error::AlertReceived(alert), handshake)
    };
    let (hopeless, sentence) = said(AlertDescription::CertificateRequired, true);
    assert!(hopeless && sentence.contains("wants a client certificate"), "{sentence}");
    assert_eq!(said(AlertDescription::HandshakeFailure, true).1, sentence);
    assert!(!said(AlertDescription::HandshakeFailure, false).1.contains("client certificate"));
}

#[test]
fn what_pinning_cannot_help_is_not_said_to_be_pinned() {
    let said = explain_certificate(&CertificateError::BadSignature, by(&Trust::System, &Shown::default()));
    assert!(said.contains("ssl_insecure=1") && !said.contains("ssl_fingerprint"), "{said}");
    let said = explain_certificate(&CertificateError::UnknownIssuer, by(&Trust::System, &Shown::default()));
    assert!(said.contains("ssl_fingerprint") && !said.contains("ssl_insecure"), "{said}");
}

/// Asserts the text for a certificate that is signed with a key on P-521. The error of a later rustls may be another one.
#[test]
fn a_signature_that_cannot_be_verified_can_be_pinned() {
    let read = |pem: &[u8]| CertificateDer::from_pem_slice(pem).unwrap();
    let authority = read(include_bytes!("../../../../tests/data/fixtures/tls/p521-authority.pem"));
    let certificate = read(include_bytes!("../../../../tests/data/fixtures/tls/signed-with-p521.pem"));
    let shown = Shown::new(Mutex::new(Some(certificate.clone())));
    let verifier = Verifier {
        trust: Trust::Listed(vec![authority]),
        check_name: true,
        provider: Arc::new(provider::default_provider()),
        shown: shown.clone(),
        authorities: OnceLock::new(),
    };
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let in_2030 = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_900_000_000));
    let refused = verifier.by_authority(&certificate, &[], &name, in_2030).unwrap_err();
    let (hopeless, said) = explain(&refused, by(&Trust::System, &shown));
    let print = display(fingerprint(&certificate));
    let pin =
        format!("pin it by 'ssl_fingerprint': it shows {print}, to be compared with the BMC's own page or console");
    assert!(hopeless && said.contains("P-521") && said.ends_with(&pin) && !said.contains("ssl_ca_file"), "{said}");
}

/// Asserts the text for a refused handshake. A BMC refuses the handshake if the BMC's key is of a kind that this client does not offer.
#[test]
fn a_handshake_that_fails_names_the_kinds_of_key_and_the_way_without() {
    let error = rustls::Error::AlertReceived(AlertDescription::HandshakeFailure);
    let (hopeless, said) = explain(&error, by(&Trust::System, &Shown::default()));
    assert!(hopeless && said.contains("RSA, P-256, P-384 or Ed25519") && said.contains("ssl_insecure=1"), "{said}");
}

#[test]
fn whoever_trusts_anyone_is_offered_every_kind_of_key() {
    let takes_p521 = |trust| {
        let provider = Arc::new(provider::default_provider());
        let verifier =
            Verifier { trust, check_name: true, provider, shown: Shown::default(), authorities: OnceLock::new() };
        verifier.supported_verify_schemes().contains(&SignatureScheme::ECDSA_NISTP521_SHA512)
    };
    assert!(takes_p521(Trust::Anyone));
    assert!(!takes_p521(Trust::System), "nothing may be offered that cannot be verified");
}

#[test]
fn fingerprints_are_read_as_openssl_prints_them() {
    let colons = (0..32).map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
    let expected: Fingerprint = std::array::from_fn(|at| u8::try_from(at).unwrap());
    for text in
        [colons.clone(), colons.replace(':', "").to_lowercase(), format!("sha256:{colons}"), format!("SHA256={colons}")]
    {
        assert_eq!(parse_fingerprints(&text).unwrap(), [expected], "{text}");
    }
    assert_eq!(parse_fingerprints(&format!("{colons},{colons}")).unwrap().len(), 2);
    assert_eq!(display(expected), colons);
    for bad in ["", "sha256:", "12:34", &"g".repeat(64), &"ä".repeat(32)] {
        assert!(parse_fingerprints(bad).is_err(), "{bad}");
    }
}
