//! HTTP with the peer port of one etcd. Questions and posts have a time limit, and streams stay open.

use std::io::{BufReader, Read};
use std::sync::Arc;
use std::time::Duration;

use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use ureq::http::Response;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::Place;
use crate::adapters::etcd::client::{Credentials, Error, read_pem};
use crate::adapters::etcd::pem;
use crate::adapters::etcd::version::Version;
use crate::decide::evidence::{Member, MemberId};
use crate::os::clock::Deadline;

/// The greatest size in bytes of an answer's body. A member list is much shorter.
const BODY_LIMIT: u64 = 1024 * 1024;
/// The greatest size in bytes of an answer's header. etcd's headers are much shorter.
const HEADER_LIMIT: usize = 16 * 1024;
/// The size in bytes of the read buffer of a peer stream.
const PIECE: usize = 64 * 1024;
const CLUSTER: &str = "X-Etcd-Cluster-ID";
const OK: u16 = 200;
/// The HTTP status with which etcd answers a Raft message that it has accepted.
pub(super) const TAKEN: u16 = 204;

/// The sender and the receiver of a request, as etcd's peers put them into HTTP headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) cluster_id: u64,
    pub(super) from: MemberId,
    pub(super) to: MemberId,
    pub(super) version: Version,
}

impl Sender {
    fn headers(&self) -> [(&'static str, String); 5] {
        [
            ("X-Server-From", format!("{:x}", self.from)),
            ("X-Server-Version", self.version.to_string()),
            ("X-Min-Cluster-Version", "3.0.0".to_owned()),
            (CLUSTER, format!("{:x}", self.cluster_id)),
            ("X-Raft-To", format!("{:x}", self.to)),
        ]
    }
}

/// An HTTP client of one etcd's peer port. Every request ends at `deadline` at the latest.
#[derive(Debug)]
pub(super) struct Http {
    agent: Agent,
    url: String,
    deadline: Deadline,
}

/// A member in the JSON of `/members`.
#[derive(Deserialize)]
struct Listed {
    id: MemberId,
    #[serde(default)]
    name: String,
    #[serde(default, rename = "peerURLs")]
    peer_urls: Option<Vec<String>>,
    #[serde(default, rename = "isLearner")]
    is_learner: bool,
}

/// The JSON of `/version`.
#[derive(Deserialize)]
struct Versions {
    etcdserver: String,
}

impl Http {
    pub(super) fn new(place: &Place, deadline: Deadline) -> Result<Self, Error> {
        let url = place.url.trim_end_matches('/').to_owned();
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // The peer is this machine, so a proxy of the caller's environment does not apply.
            .proxy(None)
            .max_redirects(0)
            .max_response_header_size(HEADER_LIMIT)
            // The answers are small, and the sequence waits for each of them.
            .no_delay(true);
        // An etcd may use plain HTTP between peers. No certificate is needed there.
        if url.starts_with("https://") {
            config = config.tls_config(tls(&url, &place.credentials)?);
        }
        Ok(Self { agent: config.build().new_agent(), url, deadline })
    }

    /// Returns the cluster's id and its members, from `/members`. etcd answers that request without a quorum.
    pub(super) fn members(&self, patience: Duration) -> Result<(u64, Vec<Member>), Error> {
        let mut answer = self.get("/members", patience, &[])?;
        let id = answer.headers().get(CLUSTER).and_then(|id| id.to_str().ok());
        let id = id.and_then(|id| u64::from_str_radix(id, 16).ok());
        let id = id.ok_or_else(|| self.failure("it names no cluster"))?;
        let listed: Vec<Listed> = self.json(&mut answer)?;
        let member = |Listed { id, name, peer_urls, is_learner }| Member {
            id,
            name,
            peer_urls: peer_urls.unwrap_or_default(),
            is_learner,
        };
        Ok((id, listed.into_iter().map(member).collect()))
    }

    pub(super) fn version(&self, patience: Duration) -> Result<Version, Error> {
        let Versions { etcdserver } = self.json(&mut self.get("/version", patience, &[])?)?;
        Version::of(&etcdserver).ok_or_else(|| self.failure("its version is none of etcd 3"))
    }

    /// Opens the peer stream `endpoint`. The stream ends when etcd closes it, at [`close`](Self::close), or at the deadline.
    pub(super) fn stream(&self, endpoint: &str, sender: &Sender) -> Result<impl Read + use<>, Error> {
        let path = format!("/raft/stream/{endpoint}/{:x}", sender.from);
        let answer = self.get(&path, self.deadline.budget(), &sender.headers())?;
        Ok(BufReader::with_capacity(PIECE, answer.into_body().into_reader()))
    }

    /// Posts an encoded Raft message. Returns the HTTP status of etcd's answer.
    pub(super) fn post(&self, message: &[u8], sender: &Sender, patience: Duration) -> Result<u16, Error> {
        let mut request = self.agent.post(format!("{}/raft", self.url)).content_type("application/protobuf");
        for (name, value) in sender.headers() {
            request = request.header(name, value);
        }
        let left = self.left(patience)?;
        let answer = request.config().timeout_global(Some(left)).build().send(message);
        let mut answer = answer.map_err(|error| self.unanswered(&error, left))?;
        let status = answer.status().as_u16();
        if status == TAKEN {
            // The empty body ends at once, and reading it lets the connection be used again. The body of another answer may never
            // end, because etcd aborts it in the middle and need not close the connection.
            let _ = answer.body_mut().with_config().limit(BODY_LIMIT).read_to_vec();
        }
        Ok(status)
    }

    /// Closes every connection and refuses new ones. Threads that read a stream then reach its end.
    pub(super) fn close(&self) {
        self.agent.clone().shutdown();
    }

    fn get(&self, path: &str, patience: Duration, headers: &[(&str, String)]) -> Result<Response<Body>, Error> {
        let left = self.left(patience)?;
        let mut request = self.agent.get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let answer = request.config().timeout_global(Some(left)).build().call();
        let answer = answer.map_err(|error| self.unanswered(&error, left))?;
        self.expect_ok(&answer, path)?;
        Ok(answer)
    }

    fn json<T: for<'a> Deserialize<'a>>(&self, answer: &mut Response<Body>) -> Result<T, Error> {
        let body = answer.body_mut().with_config().limit(BODY_LIMIT).read_to_vec();
        let body = body.map_err(|error| self.unanswered(&error, self.deadline.budget()))?;
        serde_json::from_slice(&body).map_err(|error| self.failure(&error.to_string()))
    }

    fn expect_ok(&self, answer: &Response<Body>, path: &str) -> Result<(), Error> {
        match answer.status().as_u16() {
            OK => Ok(()),
            status => Err(self.failure(&format!("it answers {status} to {path}"))),
        }
    }

    /// Returns the time limit of one request: `patience`, but at most the time to the deadline. A deadline that has passed is an
    /// error, because ureq takes zero for no limit.
    fn left(&self, patience: Duration) -> Result<Duration, Error> {
        let left = self.deadline.at_most(patience);
        if left.is_zero() { Err(self.too_late(self.deadline.budget())) } else { Ok(left) }
    }

    fn unanswered(&self, error: &ureq::Error, waited: Duration) -> Error {
        if matches!(error, ureq::Error::Timeout(_)) { self.too_late(waited) } else { self.failure(&error.to_string()) }
    }

    fn too_late(&self, waited: Duration) -> Error {
        Error::TimedOut { url: self.url.clone(), seconds: waited.as_secs_f64() }
    }

    fn failure(&self, why: &str) -> Error {
        Error::Client { url: self.url.clone(), why: why.to_owned() }
    }
}

/// Returns a TLS configuration that trusts only the CA file, and presents the certificate of `credentials`, which is etcd's own peer
/// certificate. etcd compares a client's certificate with the address of the connection. Here that address is this node's own one, for
/// which the certificate is valid.
fn tls(url: &str, credentials: &Credentials) -> Result<TlsConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = pem::certificates(&credentials.trusted_ca_file)?;
    let chain = pem::certificates(&credentials.cert_file)?;
    let key_file = read_pem(&credentials.key_file)?;
    let no_key = |_| pem::unusable(&credentials.key_file, "it holds no key");
    let key = PrivateKeyDer::from_pem_slice(&key_file).map_err(no_key)?;
    // ureq panics at an invalid key or one of another certificate, so the pair is checked here.
    CertifiedKey::from_der(chain.clone(), key, &provider)
        .map_err(|error| pem::unusable(&credentials.key_file, &error.to_string()))?;
    let owned = |ders: &[CertificateDer<'static>]| -> Vec<_> {
        ders.iter().map(|der| Certificate::from_der(der).to_owned()).collect()
    };
    let key =
        PrivateKey::from_pem(&key_file).map_err(|error| pem::unusable(&credentials.key_file, &error.to_string()))?;
    if roots.is_empty() {
        let why = format!("it holds no certificate to trust {url} by");
        return Err(pem::unusable(&credentials.trusted_ca_file, &why));
    }
    Ok(TlsConfig::builder()
        .unversioned_rustls_crypto_provider(provider)
        .root_certs(RootCerts::Specific(Arc::new(owned(&roots))))
        .client_cert(Some(ClientCert::new_with_certs(&owned(&chain), key)))
        .build())
}
