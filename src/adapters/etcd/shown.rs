//! The certificate that an etcd shows to its clients. It needs a handshake of its own, because the client of the other questions
//! does not expose it. The handshake also shows whether a server listens. It presents this client's certificate, so that etcd
//! logs no error.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use super::client::{self, Credentials, Endpoint, Error, read_pem};
use super::pem;
use crate::adapters::https::tls::{self, Trust};
use crate::os::clock::Deadline;

/// The outcome of a TLS handshake with an etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    Certificate(CertificateDer<'static>),
    /// The connection was refused.
    Nobody,
    /// No answer arrived in time. The text describes what was tried.
    Silence(String),
    /// The handshake failed. The text is the reason. Another request may show a more exact reason.
    Failure(String),
}

/// Performs a TLS handshake with the etcd at `endpoint`, and returns the etcd's certificate. `connect` limits the time for the TCP
/// connection, and `patience` the time for the handshake.
pub fn certificate(endpoint: &Endpoint, credentials: &Credentials, connect: Duration, patience: Duration) -> Shown {
    let stream = match connected(endpoint, connect) {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Shown::Nobody,
        Err(error) => return Shown::Silence(format!("cannot connect to {}: {error}", endpoint.address)),
    };
    let shaken = config(endpoint, credentials).and_then(|config| handshake(stream, endpoint, config, patience));
    match shaken.map(|mut chain| chain.swap_remove(0)) {
        Ok(certificate) => Shown::Certificate(certificate),
        Err(error) if error.is_too_late() => Shown::Silence(error.to_string()),
        Err(error) => Shown::Failure(error.to_string()),
    }
}

pub(super) fn connected(endpoint: &Endpoint, patience: Duration) -> std::io::Result<TcpStream> {
    let address = endpoint.address.to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable)?;
    TcpStream::connect_timeout(&address, patience)
}

/// Performs a TLS handshake on `stream`. Returns the server's certificate chain, which has at least one certificate.
pub(super) fn handshake(
    mut stream: TcpStream,
    endpoint: &Endpoint,
    config: ClientConfig,
    patience: Duration,
) -> Result<Vec<CertificateDer<'static>>, Error> {
    let end = Deadline::after(patience);
    let too_late = || client::too_late(endpoint, patience);
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => too_late(),
        _ => unusable(endpoint, &error.to_string()),
    };
    let mut connection = ClientConnection::new(Arc::new(config), server_name(endpoint)?)
        .map_err(|error| unusable(endpoint, &error.to_string()))?;
    while connection.is_handshaking() {
        let left = Some(end.left()).filter(|left| !left.is_zero()).ok_or_else(too_late)?;
        stream.set_read_timeout(Some(left)).and_then(|()| stream.set_write_timeout(Some(left))).map_err(failed)?;
        let is_our_turn = connection.wants_write();
        let step = if is_our_turn { connection.write_tls(&mut stream) } else { connection.read_tls(&mut stream) };
        match step {
            Ok(0) if !is_our_turn => return Err(unusable(endpoint, "it closed the connection")),
            // A signal for another part of the process interrupted the read.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            step => step.map_err(failed)?,
        };
        connection.process_new_packets().map_err(|error| unusable(endpoint, &error.to_string()))?;
    }
    let shown = connection.peer_certificates().filter(|chain| !chain.is_empty()).map(<[_]>::to_vec);
    connection.send_close_notify();
    // This sends the end of the handshake and the close notification. They matter only to etcd's log, so errors are ignored.
    while connection.wants_write() && connection.write_tls(&mut stream).is_ok_and(|count| count > 0) {}
    shown.ok_or_else(|| unusable(endpoint, "it shows no certificate"))
}

fn server_name(endpoint: &Endpoint) -> Result<ServerName<'static>, Error> {
    let host = endpoint.address.rsplit_once(':').map_or(endpoint.address.as_str(), |(host, _)| host);
    let host = host.trim_matches(['[', ']']).to_owned();
    ServerName::try_from(host).map_err(|error| unusable(endpoint, &error.to_string()))
}

fn config(endpoint: &Endpoint, credentials: &Credentials) -> Result<ClientConfig, Error> {
    let of_endpoint = |error: rustls::Error| unusable(endpoint, &error.to_string());
    let authorities = pem::certificates(&credentials.trusted_ca_file)?;
    let key = PrivateKeyDer::from_pem_slice(&read_pem(&credentials.key_file)?)
        .map_err(|error| pem::unusable(&credentials.key_file, &error.to_string()))?;
    let identity = (pem::certificates(&credentials.cert_file)?, key);
    tls::with_identity(Trust::Listed(authorities), Some(identity)).map_err(of_endpoint)
}

pub(super) fn unusable(endpoint: &Endpoint, why: &str) -> Error {
    Error::Client { url: endpoint.url.clone(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::path::Path;
    use std::path::PathBuf;

    use rcgen::{CertificateParams, Issuer, KeyPair};
    use rustls::{ServerConfig, ServerConnection};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Writes to `dir` an authority, a certificate for 127.0.0.1 that is valid for server and client, and its key.
    fn credentials(dir: &Path) -> Credentials {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap().pem();
        let file = |name: &str, text: String| -> PathBuf {
            let path = dir.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        Credentials {
            trusted_ca_file: file("ca.crt", authority_pem),
            cert_file: file("etcd.crt", leaf),
            key_file: file("etcd.key", key.serialize_pem()),
        }
    }

    fn at(listener: &TcpListener) -> Endpoint {
        let address = listener.local_addr().unwrap().to_string();
        Endpoint { url: format!("https://{address}"), address }
    }

    #[test]
    fn the_certificate_that_is_shown_is_the_one_of_the_other_side() {
        let dir = tempfile::tempdir().unwrap();
        let credentials = credentials(dir.path());
        let chain = pem::certificates(&credentials.cert_file).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&read_pem(&credentials.key_file).unwrap()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.clone(), key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = at(&listener);
        let shown = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
                while connection.is_handshaking() {
                    connection.complete_io(&mut stream).unwrap();
                }
            });
            certificate(&endpoint, &credentials, PATIENCE, PATIENCE)
        });
        assert_eq!(shown, Shown::Certificate(chain[0].clone()));
    }

    #[test]
    fn nobody_silence_and_a_missing_file_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let credentials = credentials(dir.path());
        let silent = crate::os::test_port::listener();
        let endpoint = at(&silent);
        let ask = || certificate(&endpoint, &credentials, PATIENCE, Duration::from_millis(200));
        let silence = ask();
        assert!(matches!(&silence, Shown::Silence(why) if why.contains("no answer within 0.2 s")), "{silence:?}");
        std::fs::remove_file(&credentials.cert_file).unwrap();
        let failure = ask();
        assert!(matches!(&failure, Shown::Failure(why) if why.contains("etcd.crt")), "{failure:?}");
        drop(silent);
        crate::os::test_port::settles(&Shown::Nobody, ask);
    }
}
