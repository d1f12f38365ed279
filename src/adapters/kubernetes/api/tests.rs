use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use super::*;

const PATIENCE: Duration = Duration::from_secs(3);

/// Starts an HTTPS server. Returns the server's URL, its certificate, and a channel with the head of each request.
fn https() -> (String, String, std::sync::mpsc::Receiver<String>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let server = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(rustls::StreamOwned::new(connection, socket));
            let head: Vec<String> =
                stream.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            if !head.is_empty() {
                let _ = tell.send(head.join("\n"));
                let _ =
                    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
            }
        }
    });
    (server, made.cert.pem(), told)
}

#[test]
fn a_certificate_or_a_key_that_is_of_no_use_is_named_with_its_entry() {
    let pem = |text: &str| Zeroizing::new(text.as_bytes().to_vec());
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let wrong = |authorities: &str, identity: Option<(&str, &str)>| {
        let identity = identity.map(|(certificate, key)| (pem(certificate), pem(key)));
        let (file, server) = ("/etc/kubeconfig".to_owned(), "https://localhost:1".to_owned());
        agent(&Access { file, server, authorities: Some(pem(authorities)), identity, token: None }, PATIENCE).map(drop)
    };
    let of = |what: &str, why: &str| Err(format!("the {what} of /etc/kubeconfig is of no use: {why}"));
    assert_eq!(wrong(&certificate, Some((&certificate, &key))), Ok(()));
    assert_eq!(wrong(&key, None), of("certificate-authority", "it holds a key, and no certificate"));
    assert_eq!(wrong(&certificate, Some((&key, &key))), of("client-certificate", "it holds a key, and no certificate"));
    assert_eq!(wrong(&certificate, Some((&certificate, ""))), of("client-key", "it is empty"));
}

/// Asserts that a server gets no request if its certificate is not trusted. A request would show the token to that server.
#[test]
fn the_token_is_for_the_api_that_the_kubeconfigs_authority_vouches_for() {
    let (server, certificate, told) = https();
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap().cert.pem();
    let ask = |authority: Option<&str>| {
        let authorities = authority.map(|pem| Zeroizing::new(pem.as_bytes().to_vec()));
        let token = Some(Zeroizing::new("t0ken".to_owned()));
        let file = "/etc/kubeconfig".to_owned();
        let access = Access { file, server: server.clone(), authorities, identity: None, token };
        list(&agent(&access, PATIENCE).unwrap(), &access, "/machines")
    };
    for authority in [None, Some(other.as_str())] {
        let why = ask(authority).unwrap_err();
        assert!(
            why.contains("its certificate is not signed by an authority of") && why.contains("/etc/kubeconfig"),
            "{why}"
        );
        assert!(told.try_recv().is_err());
    }
    assert_eq!(ask(Some(&certificate)), Ok(Vec::new()));
    let head = told.recv().unwrap().to_ascii_lowercase();
    assert!(head.starts_with("get /machines http") && head.contains("\nauthorization: bearer t0ken"), "{head}");
}
