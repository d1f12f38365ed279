//! Tests of how etcd's answers are understood, and of the order of the questions.

mod double;

use std::path::PathBuf;
use std::time::Duration;

use self::double::{Double, LEADER, MEMBER, Reply, Script};
use super::*;
use crate::adapters::etcd::shown;

/// Returns credentials for an etcd that is asked without TLS. The files do not exist.
fn no_credentials() -> Credentials {
    Credentials { trusted_ca_file: PathBuf::new(), cert_file: PathBuf::new(), key_file: PathBuf::new() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_refusal_of_etcds_auth_is_told_from_every_other_error() {
    let refused = [
        "etcdserver: permission denied",
        "etcdserver: user name is empty",
        "etcdserver: user name not found",
        "etcdserver: invalid auth token",
        "auth: user not found",
        "auth: permission denied",
    ];
    for words in refused {
        assert!(is_no_permission(words), "{words}");
    }
    let others = [
        "etcdserver: no leader",
        "etcdserver: request timed out",
        "etcdserver: rpc not supported for learner",
        "transport error: permission denied",
        "permission denied",
        "",
    ];
    for words in others {
        assert!(!is_no_permission(words), "{words}");
    }
}

#[test]
fn what_to_type_comes_first_where_etcds_auth_refuses() {
    let refused = |user: Option<&str>| Error::NoPermission {
        url: "https://127.0.0.1:2379".to_owned(),
        user: user.map(str::to_owned),
        why: "etcdserver: user name not found".to_owned(),
    };
    let told = refused(Some("etcd-node1")).to_string();
    assert!(told.starts_with("'tandem etcdctl user grant-role etcd-node1 root' "), "{told}");
    assert!(told.ends_with(": https://127.0.0.1:2379 says 'etcdserver: user name not found'"), "{told}");
    assert!(refused(None).to_string().contains("CommonName"));
}

/// Asserts that every failure after the time limit counts as a time-out. On a busy machine the transport, which has the same
/// limit, can end a request first.
#[test]
fn whatever_fails_once_the_time_is_over_is_too_late() {
    let endpoint = Endpoint { url: "http://127.0.0.1:1".to_owned(), address: "127.0.0.1:1".to_owned() };
    let (credentials, runtime) = (no_credentials(), runtime());
    let limit = Duration::from_millis(500);
    let fails_after = |busy: Duration| {
        let conversation = async |_| {
            crate::os::clock::sleep(busy);
            Err::<(), _>(etcd_client::Error::Internal("the connection broke".to_owned()))
        };
        runtime.block_on(ask(&endpoint, &credentials, limit, conversation)).unwrap_err()
    };
    let early = fails_after(Duration::ZERO);
    assert!(matches!(early, Error::Client { .. }), "{early}");
    let late = fails_after(limit);
    assert!(late.is_too_late(), "{late}");
}

/// Asserts that a leader's log index is read after its member list. Before a leader lists a new voter, it may acknowledge more entries.
/// With an older index, the new voter could appear to have all entries.
#[test]
fn the_index_of_who_leads_is_not_older_than_its_list() {
    let asked = |leader: u64| {
        let double = Double::start(Script { leader, member_list: Reply::Answer, read: Reply::Answer });
        let answer = runtime().block_on(observe(&double.endpoint, &no_credentials(), Duration::from_secs(10)));
        let etcd = answer.etcd.known().unwrap_or_else(|| panic!("{answer:?}")).clone();
        (etcd.index, etcd.voters().count(), double.asked())
    };
    let (index, voters, questions) = asked(MEMBER);
    assert_eq!((index, voters), (2, 2), "the second time that it was asked");
    assert_eq!(questions, ["Status", "MemberList", "Status"]);
    let (index, _, questions) = asked(LEADER);
    assert_eq!((index, questions), (1, vec!["Status".to_owned(), "MemberList".to_owned()]), "who follows");
}

/// Asserts that a time-out is reported for the read that follows a refusal by auth. To a client that auth refuses, an etcd without a leader
/// and a slow etcd look the same.
#[test]
fn one_that_refuses_us_and_is_late_with_a_read_is_too_late() {
    let asked = |read: Reply| {
        let refuses = Reply::Error("etcdserver: permission denied");
        let double = Double::start(Script { leader: LEADER, member_list: refuses, read });
        let answer = runtime().block_on(observe(&double.endpoint, &no_credentials(), Duration::from_millis(500)));
        assert_eq!(double.asked(), ["Status", "MemberList", "Range"]);
        let refuses = answer.no_permission.unwrap_or_else(|| panic!("{:?}", answer.etcd));
        (refuses.leaderless, answer.is_too_late)
    };
    assert_eq!(asked(Reply::Answer), (false, false));
    assert_eq!(asked(Reply::Error("etcdserver: permission denied")), (false, false), "a majority confirmed it");
    assert_eq!(asked(Reply::Error("etcdserver: no leader")), (true, false));
    assert_eq!(asked(Reply::Silence), (true, true));
}

/// Writes the files of a client to `dir`: an authority, a certificate that it signed for 127.0.0.1, and the key.
fn files(dir: &std::path::Path) -> Credentials {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let file = |name: &str, text: String| {
        std::fs::write(dir.join(name), text).unwrap();
        dir.join(name)
    };
    let trusted_ca_file = file("ca.crt", authority.self_signed(&authority_key).unwrap().pem());
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
    Credentials {
        trusted_ca_file,
        cert_file: file("cli.crt", leaf.pem()),
        key_file: file("cli.key", key.serialize_pem()),
    }
}

/// Starts a TLS server that closes each connection after the handshake. Returns the server's endpoint.
fn server(own: &Credentials) -> Endpoint {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let chain = CertificateDer::pem_file_iter(&own.cert_file).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(&own.key_file).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(std::sync::Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
    let config = std::sync::Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut connection = rustls::ServerConnection::new(std::sync::Arc::clone(&config)).unwrap();
            while connection.is_handshaking() && connection.complete_io(&mut socket).is_ok() {}
        }
    });
    Endpoint { url: format!("https://{address}"), address }
}

/// Asserts that the error of a failed handshake names the file that is wrong, and is not only the text of a library.
#[test]
fn what_keeps_two_sides_from_trust_is_said_with_the_file() {
    let (dir, theirs_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (good, theirs) = (files(dir.path()), files(theirs_dir.path()));
    let endpoint = server(&theirs);
    let ask = |credentials: &Credentials| {
        let asked = confirmed_read(&endpoint, credentials, Duration::from_secs(5));
        runtime().block_on(asked).unwrap_err().to_string()
    };
    let trusting = Credentials { trusted_ca_file: theirs.trusted_ca_file.clone(), ..good.clone() };
    let empty = dir.path().join("empty.key");
    std::fs::write(&empty, "").unwrap();
    for (credentials, file, words) in [
        (good.clone(), &good.trusted_ca_file, "is not signed by an authority of"),
        (
            Credentials { trusted_ca_file: good.key_file.clone(), ..good.clone() },
            &good.key_file,
            "it holds a key, and no certificate",
        ),
        (
            Credentials { key_file: good.cert_file.clone(), ..trusting.clone() },
            &good.cert_file,
            "it holds a certificate, and no key",
        ),
        (
            Credentials { key_file: theirs.key_file.clone(), ..trusting.clone() },
            &theirs.key_file,
            "it is not the key of the certificate in",
        ),
        (Credentials { key_file: empty.clone(), ..trusting.clone() }, &empty, "it is empty"),
    ] {
        let said = ask(&credentials);
        assert!(said.contains(&file.display().to_string()) && said.contains(words), "{said}");
        assert!(!said.contains("transport error"), "{said}");
    }
}

/// Asserts that a self-signed server certificate is trusted if the CA file holds the same certificate. `openssl req -x509` makes
/// such certificates, and etcdctl trusts them, too.
#[test]
fn a_servers_certificate_that_is_in_the_file_itself_is_trusted() {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    let (dir, another) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let own = files(dir.path());
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let (cert_file, key_file) = (dir.path().join("self.crt"), dir.path().join("self.key"));
    std::fs::write(&cert_file, params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    let endpoint = server(&Credentials { cert_file: cert_file.clone(), key_file, ..own.clone() });
    let ask = |trusted_ca_file: std::path::PathBuf| {
        let credentials = Credentials { trusted_ca_file, ..own.clone() };
        let asked = confirmed_read(&endpoint, &credentials, Duration::from_secs(5));
        let said = runtime().block_on(asked).unwrap_err().to_string();
        let patience = Duration::from_secs(5);
        let shown = shown::certificate(&endpoint, &credentials, patience, patience);
        (said.contains("certificate"), matches!(shown, shown::Shown::Certificate(_)))
    };
    assert_eq!(ask(cert_file), (false, true), "the handshake is done, and the server ends behind it");
    assert_eq!(ask(files(another.path()).trusted_ca_file), (true, false));
}
