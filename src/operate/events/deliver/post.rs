//! Posts events to a URL, each as one JSON object over verified TLS. An answer below 300 means that the server has the
//! event.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::http::Uri;
use ureq::unversioned::transport::{Connector as _, TcpConnector};

use super::shown::{Unknown, shown};
use crate::adapters::https::tls::{self, Shown};
use crate::adapters::https::transport::{OneHost, TlsConnector};
use crate::os::clock::Deadline;
use crate::records::events::Event;

/// The CAs to verify a recipient's certificate with, configured as for a BMC.
pub use crate::adapters::https::tls::Trust;

/// Longest time for posting one event, including the connection.
const LIMIT: Duration = Duration::from_secs(5);
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// Most bytes of a response's body that are read. A connection can be reused only after the body was read.
const ANSWER_LIMIT: u64 = 64 * 1024;

/// An HTTPS client for one URL. It keeps its connection between events.
#[derive(Debug)]
pub struct Poster {
    agent: Agent,
    uri: Uri,
}

impl Poster {
    /// Returns a client for the URL `text`, which begins with `https://`.
    pub(super) fn new(text: &str, trust: &Trust) -> Result<Self, Unknown> {
        let unknown = || Unknown::Form(shown(text));
        let uri: Uri = text.parse().map_err(|_| unknown())?;
        let authority = uri.authority().ok_or_else(unknown)?;
        if authority.as_str().contains('@') {
            return Err(Unknown::User(shown(text)));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = rustls_pki_types::ServerName::try_from(host.clone()).map_err(|_| unknown())?;
        let config = tls::client_config(trust.clone(), true, Shown::default())
            .map_err(|error| Unknown::Tls(shown(text), error.to_string()))?;
        let connector =
            ().chain(TcpConnector::default()).chain(TlsConnector {
                config: Arc::new(config),
                name,
                connections: Arc::default(),
            });
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(true)
            // The collector's environment must not redirect the events.
            .proxy(None)
            .max_redirects(0)
            .user_agent(concat!("tandem/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { agent: Agent::with_parts(config, connector, OneHost { host }), uri })
    }

    /// Posts one event as JSON to the client's URL.
    pub(super) fn send(&self, event: &Event, deadline: Deadline) -> Result<(), String> {
        let failed = |why: &dyn std::fmt::Display| {
            // A library's error may contain the URL.
            let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
            let why = why.to_string();
            if path.len() > 1 { why.replace(path, "/...") } else { why }
        };
        let limit = deadline.at_most(LIMIT);
        if limit.is_zero() {
            return Err(failed(&"no time is left"));
        }
        let body = serde_json::to_vec(event).map_err(|error| failed(&error))?;
        let request = self
            .agent
            .post(&self.uri)
            .config()
            .timeout_global(Some(limit))
            .timeout_connect(Some(limit.min(CONNECT_LIMIT)))
            .build()
            .header("Content-Type", "application/json");
        let mut response = request.send(&body[..]).map_err(|error| failed(&error))?;
        let status = response.status();
        if status.is_success() {
            // The body is read only so that the connection can be reused.
            let _ = response.body_mut().with_config().limit(ANSWER_LIMIT).read_to_vec();
            return Ok(());
        }
        Err(failed(&format_args!("it answered {status}")))
    }
}
