//! Authentication of the BMC: certificates, pins, authorities, names and versions of TLS.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use crate::bmc::{CertificateKind, Listening, Server, Setup, World};
use crate::hostile::{listening, status};

fn certificate(certificate: CertificateKind) -> Server {
    Server::with(World::one_system(), Setup { certificate, ..Setup::default() })
}

#[test]
fn certificates_are_verified_unless_that_is_switched_off() {
    for (kind, words) in [
        (CertificateKind::Expired, "has expired"),
        (CertificateKind::NotYetValid, "not valid yet"),
        (CertificateKind::WrongName, "is for other.example"),
        (CertificateKind::NoName, "is for no name"),
        (CertificateKind::SelfSigned, "not signed by a trusted authority"),
        (CertificateKind::SelfSignedAuthority, ""),
    ] {
        for insecure in ["0", "no", "off", "false"] {
            let server = certificate(kind);
            let output = status(&server).set("ssl_insecure", insecure).run();
            output.fails(&["certificate", words]).within(0.0, 1.5);
            assert_eq!(server.requests().len(), 0, "no credentials go to a server that is not trusted");
        }
        let server = certificate(kind);
        status(&server).without("ssl_ca_file").set("ssl_insecure", "1").run().succeeds("Status: ON");
        status(&server).without("ssl_ca_file").set("ssl_fingerprint", &server.fingerprint).run().succeeds("Status: ON");
    }
    // By default the agent trusts the system's authorities, which do not include the test's.
    let server = certificate(CertificateKind::Good);
    let output = status(&server).without("ssl_ca_file").run();
    output.fails(&["not signed by a trusted authority", &server.fingerprint]);
}

#[test]
fn the_systems_authorities_are_trusted() {
    let server = certificate(CertificateKind::Good);
    let call = status(&server).without("ssl_ca_file");
    // The administrator of this machine may have set this variable.
    let file = server.authority.file();
    call.clone().env("SSL_CERT_FILE", file.to_str().unwrap()).run().succeeds("Status: ON");
    call.run().fails(&["not signed by a trusted authority"]);
}

#[test]
fn a_pinned_certificate_is_that_one_only() {
    let (server, other) = (certificate(CertificateKind::SelfSigned), certificate(CertificateKind::SelfSigned));
    let call = status(&server).without("ssl_ca_file");
    let output = call.clone().set("ssl_fingerprint", &other.fingerprint).run();
    output.fails(&["not the pinned one", &server.fingerprint]);
    assert_eq!(server.requests().len(), 0);
    call.set("ssl_fingerprint", &format!("{},{}", other.fingerprint, server.fingerprint)).run().succeeds("Status: ON");
}

#[test]
fn the_host_name_can_be_left_out_of_it_and_nothing_else() {
    for kind in [CertificateKind::WrongName, CertificateKind::NoName] {
        status(&certificate(kind)).set("ssl_verify_hostname", "0").run().succeeds("Status: ON");
    }
    for kind in [CertificateKind::Expired, CertificateKind::SelfSigned] {
        status(&certificate(kind)).set("ssl_verify_hostname", "0").run().fails(&["certificate"]);
    }
}

#[test]
fn a_self_signed_certificate_may_be_its_own_authority() {
    for kind in [CertificateKind::SelfSigned, CertificateKind::SelfSignedAuthority] {
        let server = certificate(kind);
        let file = server.authority.server_file();
        status(&server).set("ssl_ca_file", file.to_str().unwrap()).run().succeeds("Status: ON");
        let other = certificate(kind);
        let file = other.authority.server_file();
        status(&server).set("ssl_ca_file", file.to_str().unwrap()).run().fails(&["certificate"]);
    }
}

#[test]
fn old_tls_and_no_tls_have_their_sentence() {
    let alert = |level: u8, description: u8| Listening::Bytes(vec![21, 3, 1, 0, 2, level, description]);
    // A server that supports nothing newer answers with a hello of TLS 1.0 and an old suite.
    let mut hello = vec![22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1];
    hello.extend([7; 32]);
    hello.extend([0, 0, 0x35, 0]);
    for listener in [alert(2, 70), alert(2, 40), alert(2, 71), Listening::Bytes(hello)] {
        for option in [("ssl_insecure", "1"), ("ssl_insecure", "0")] {
            let server = listening(listener.clone());
            let call = status(&server).without("ssl_ca_file").set(option.0, option.1);
            call.run().fails(&["neither TLS 1.3 nor TLS 1.2"]).within(0.0, 2.0);
        }
    }
    status(&listening(Listening::PlainHttp)).run().fails(&["does not speak TLS"]).within(0.0, 2.0);
    status(&listening(Listening::Tls12)).run().succeeds("Status: ON");
}
