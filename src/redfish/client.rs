//! HTTP with one BMC: one TLS connection kept alive, bounded answers, redirects on the same host only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use serde_json::Value;
use ureq::http::{HeaderMap, Request, Response};
use ureq::unversioned::transport::{Connector as _, TcpConnector};
use ureq::{Agent, Body};

use super::address::{Address, Place};
use super::complaint;
use super::explain;
use super::failure::{Failure, Kind};
use super::quirks::{HABITS, Habit};
use super::resource::type_of;
use super::secret::{Scrubber, Secret};
use super::tls::{self, Shown, Trust};
use super::transport::{OneHost, TlsConnector};
use crate::clock::Deadline;

/// More than any answer that a fence agent reads; a larger one is a fault.
pub(super) const BODY_LIMIT: u64 = 1024 * 1024;
pub(super) const HEADER_LIMIT: usize = 32 * 1024;
/// Redirects that are followed for one request.
const HOPS: usize = 3;
/// How much of a service's own words goes into a sentence.
pub(super) const WORDS: usize = 300;
/// How much of a body goes into the debug file.
const TRACED: usize = 4000;
/// For deleting a session after everything else.
const FAREWELL: Duration = Duration::from_secs(3);
/// The longest that a service may make us wait by `Retry-After`.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the client writes what it does; nothing secret comes here.
pub type Trace = Arc<dyn Fn(&str) + Send + Sync>;

/// What a client needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    pub address: Address,
    pub trust: Trust,
    pub check_name: bool,
    /// For a connection: name, TCP and TLS.
    pub connect_limit: Duration,
    /// For one request, connecting included.
    pub answer_limit: Duration,
    pub deadline: Deadline,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Delete,
}

impl Method {
    fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// How a request shows who we are.
#[derive(Clone, Debug, Default)]
pub enum Credentials {
    #[default]
    None,
    /// The value of the `Authorization` header.
    Basic(Secret),
    /// The value of the `X-Auth-Token` header.
    Token(Secret),
}

impl Credentials {
    /// Basic authentication; the password goes out as the bytes that were given.
    pub fn basic(user: &str, password: &Secret) -> Self {
        let mut both = format!("{user}:").into_bytes();
        both.extend_from_slice(password.reveal());
        Self::Basic(Secret::new(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(both))))
    }
}

/// A complete answer with a status below 300.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub location: Option<String>,
    pub token: Option<Secret>,
    pub body: Vec<u8>,
}

/// A client of one BMC. Clones share the connection.
#[derive(Clone)]
pub struct Client {
    settings: Settings,
    agent: Agent,
    made: Arc<AtomicUsize>,
    shown: Shown,
    scrubber: Scrubber,
    trace: Trace,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").field("address", &self.settings.address).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that has not connected yet.
    pub fn new(settings: Settings, scrubber: Scrubber, trace: Trace) -> Result<Self, Failure> {
        let impossible = |why: String| Failure::new(Kind::Untrusted, why);
        let shown = Shown::default();
        let config = tls::client_config(settings.trust.clone(), settings.check_name, shown.clone())
            .map_err(|error| impossible(format!("TLS cannot be set up: {error}")))?;
        let name = settings
            .address
            .server_name()
            .ok_or_else(|| impossible(format!("'{}' is no host name", settings.address.host())))?;
        let made = Arc::new(AtomicUsize::new(0));
        let connector =
            ().chain(TcpConnector::default()).chain(TlsConnector {
                config: Arc::new(config),
                name,
                made: made.clone(),
            });
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(true)
            // A BMC is reached directly, whatever the environment of the caller says.
            .proxy(None)
            .max_redirects(0)
            .max_response_header_size(HEADER_LIMIT)
            .user_agent(concat!("fence_redfish_rs/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .build();
        let agent = Agent::with_parts(config, connector, OneHost { host: settings.address.for_resolver() });
        Ok(Self { settings, agent, made, shown, scrubber, trace })
    }

    pub fn address(&self) -> &Address {
        &self.settings.address
    }

    /// The end of the action that this client serves.
    pub fn deadline(&self) -> Deadline {
        self.settings.deadline
    }

    /// The same client with a little time of its own, for what must be tidied up when the action's time is over.
    #[must_use]
    pub fn for_farewell(&self) -> Self {
        let mut farewell = self.clone();
        farewell.settings.deadline = Deadline::after(FAREWELL);
        farewell
    }

    /// From now on `word` appears in no text of this client.
    pub fn hide(&self, word: &[u8]) {
        self.scrubber.hide(word);
    }

    /// Foreign text, safe to show.
    pub fn clean(&self, text: &str) -> String {
        self.scrubber.clean(text, WORDS)
    }

    /// A line for the debug file.
    pub fn note(&self, line: &str) {
        (self.trace)(line);
    }

    /// Sends a request and reads its answer, following redirects; any status from 300 on is a failure.
    pub fn send(
        &self,
        method: Method,
        place: &Place,
        body: Option<&Value>,
        credentials: &Credentials,
    ) -> Result<Answer, Failure> {
        let mut place = place.clone();
        for _ in 0..=HOPS {
            let response = self.exchange(method, &place, body, credentials)?;
            match self.redirect(method, &place, &response)? {
                Some(next) => {
                    let origin = self.settings.address.origin(next.port);
                    self.note(&format!("redirected to {origin}{}", self.clean(&next.path)));
                    place = next;
                }
                None => return self.judge(method, &place, response),
            }
        }
        Err(Failure::new(Kind::Astray, format!("{}: more than {HOPS} redirects: refused", self.what(method, &place))))
    }

    /// As [`send`](Self::send) for a GET; the answer has to be a JSON object.
    pub fn get(&self, place: &Place, credentials: &Credentials) -> Result<Value, Failure> {
        let answer = self.send(Method::Get, place, None, credentials)?;
        let what = self.what(Method::Get, place);
        let text = answer.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&answer.body);
        let garbled = |why: String| Failure::new(Kind::Garbled, format!("{what}: {why}"));
        match serde_json::from_slice::<Value>(text) {
            Ok(document) if document.is_object() => Ok(document),
            Ok(other) => Err(garbled(format!("the answer is {} instead of a resource", type_of(&other)))),
            Err(_) if text.is_empty() => Err(garbled("the answer is empty".to_owned())),
            Err(_) if text.trim_ascii_start().starts_with(b"<") => {
                Err(garbled("the answer is HTML, not JSON".to_owned()))
            }
            Err(error) if error.is_eof() => Err(garbled("the answer is cut off in the middle of its JSON".to_owned())),
            Err(_) => Err(garbled("the answer is not valid JSON".to_owned())),
        }
    }

    fn what(&self, method: Method, place: &Place) -> String {
        format!("{} {}{}", method.word(), self.settings.address.origin(place.port), self.clean(&place.path))
    }

    /// One request and its whole answer, once more where a kept connection turned out to be dead.
    fn exchange(
        &self,
        method: Method,
        place: &Place,
        body: Option<&Value>,
        credentials: &Credentials,
    ) -> Result<Reply, Failure> {
        let mut identity = true;
        let mut again = HABITS.iter().any(|(habit, _)| *habit == Habit::DropsIdleConnections);
        loop {
            let before = self.made.load(Ordering::Relaxed);
            let reply = self.once(method, place, body, credentials, identity);
            let was_kept = before > 0 && self.made.load(Ordering::Relaxed) == before;
            match reply {
                // What a POST did before the connection broke is not known, so only a GET may simply be repeated.
                Err(failure) if failure.kind == Kind::Interrupted && was_kept && again && method == Method::Get => {
                    again = false;
                }
                Ok(reply) if identity && dislikes_identity(reply.status) => identity = false,
                other => return other,
            }
        }
    }

    fn once(
        &self,
        method: Method,
        place: &Place,
        body: Option<&Value>,
        credentials: &Credentials,
        identity: bool,
    ) -> Result<Reply, Failure> {
        let what = self.what(method, place);
        let deadline = self.settings.deadline;
        let limit = deadline.at_most(self.settings.answer_limit);
        if limit.is_zero() {
            return Err(Failure::new(Kind::Silent, format!("{what}: no time is left")));
        }
        let began = deadline.elapsed();
        let result = self
            .call(method, place, body, credentials, identity, limit)
            .and_then(|mut response| {
                let body = response.body_mut().with_config().limit(BODY_LIMIT).read_to_vec()?;
                Ok(Reply::new(&response, body))
            })
            .map_err(|error| explain::transport(&what, &error, &self.shown, &self.scrubber));
        let took = deadline.elapsed().saturating_sub(began).as_millis();
        match &result {
            Ok(reply) => self.note(&format!(
                "{what}: {} in {took} ms: {}",
                reply.status,
                self.scrubber.clean(&String::from_utf8_lossy(&reply.body), TRACED)
            )),
            Err(failure) => self.note(&format!("{failure} (after {took} ms)")),
        }
        result
    }

    fn call(
        &self,
        method: Method,
        place: &Place,
        body: Option<&Value>,
        credentials: &Credentials,
        identity: bool,
        limit: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        let url = format!("{}{}", self.settings.address.origin(place.port), place.path);
        let connect = limit.min(self.settings.connect_limit);
        let mut request = ureq::http::Request::builder().uri(url).method(method.word()).header("OData-Version", "4.0");
        if identity {
            request = request.header("Accept-Encoding", "identity");
        }
        request = match credentials {
            Credentials::None => request,
            Credentials::Basic(value) => request.header("Authorization", sensitive(value)?),
            Credentials::Token(value) => request.header("X-Auth-Token", sensitive(value)?),
        };
        match body {
            Some(body) => {
                let request = request.header("Content-Type", "application/json").body(body.to_string().into_bytes())?;
                self.agent.run(bounded(&self.agent, request, limit, connect))
            }
            None => self.agent.run(bounded(&self.agent, request.body(())?, limit, connect)),
        }
    }

    fn redirect(&self, method: Method, place: &Place, reply: &Reply) -> Result<Option<Place>, Failure> {
        if !(300..400).contains(&reply.status) || reply.status == 304 {
            return Ok(None);
        }
        let what = self.what(method, place);
        let location = reply.location.as_deref().ok_or_else(|| {
            Failure::new(Kind::Refused, format!("{what}: answered {} without saying where to", reply.status))
        })?;
        let unchanged = HABITS
            .iter()
            .any(|(habit, _)| matches!(habit, Habit::RedirectsPosts { statuses } if statuses.contains(&reply.status)));
        if method == Method::Post && !unchanged {
            return Err(Failure::new(Kind::Refused, format!("{what}: answered {} to a POST", reply.status)));
        }
        self.follow(place, location).map(Some)
    }

    /// The place that a link of the BMC leads to.
    pub fn follow(&self, from: &Place, link: &str) -> Result<Place, Failure> {
        let follow = self.settings.address.follow(from, link);
        follow.map_err(|failure| Failure { text: self.clean(&failure.text), ..failure })
    }

    fn judge(&self, method: Method, place: &Place, reply: Reply) -> Result<Answer, Failure> {
        if reply.status < 300 {
            return Ok(Answer { status: reply.status, location: reply.location, token: reply.token, body: reply.body });
        }
        let complaint = complaint::read(&reply.body);
        let mut kind = complaint.kind(reply.status);
        if let Kind::Busy { retry_after } = &mut kind {
            *retry_after = reply.retry_after;
        }
        let words = self.clean(&complaint.sentence());
        let status = ureq::http::StatusCode::from_u16(reply.status).ok();
        let reason = status.and_then(|status| status.canonical_reason()).unwrap_or("unknown status");
        let mut text = format!("{}: the BMC answered {} {reason}", self.what(method, place), reply.status);
        if !words.is_empty() {
            text.push_str(": ");
            text.push_str(&words);
        }
        Err(Failure::new(kind, text))
    }
}

fn bounded<S: ureq::AsSendBody>(agent: &Agent, request: Request<S>, limit: Duration, connect: Duration) -> Request<S> {
    agent.configure_request(request).timeout_global(Some(limit)).timeout_connect(Some(connect)).build()
}

fn dislikes_identity(status: u16) -> bool {
    HABITS.iter().any(|(habit, _)| *habit == Habit::DislikesIdentity { status })
}

fn sensitive(value: &Secret) -> Result<ureq::http::HeaderValue, ureq::http::Error> {
    let mut header = ureq::http::HeaderValue::from_bytes(value.reveal())?;
    header.set_sensitive(true);
    Ok(header)
}

/// An answer of any status.
struct Reply {
    status: u16,
    location: Option<String>,
    token: Option<Secret>,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

impl Reply {
    fn new(response: &Response<Body>, body: Vec<u8>) -> Self {
        let headers = response.headers();
        Self {
            status: response.status().as_u16(),
            location: text_of(headers, "Location"),
            token: headers.get("X-Auth-Token").map(|token| Secret::new(token.as_bytes())),
            retry_after: text_of(headers, "Retry-After")
                .and_then(|seconds| seconds.trim().parse().ok())
                .map(|seconds| Duration::from_secs(seconds).min(PATIENCE)),
            body,
        }
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
