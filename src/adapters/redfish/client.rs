//! HTTP with one BMC: one TLS connection that is kept alive, bounded answers, and redirects on the same host only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use ureq::http::{self, Response};
use ureq::unversioned::transport::{Connector as _, TcpConnector};
use ureq::{Agent, Body};
use zeroize::Zeroizing;

use super::explain;
use super::failure::{Failure, FailureKind};
use super::limits::{BODY_LIMIT, HEADER_LIMIT, WORDS};
use super::quirks::{HABITS, Habit};
use super::reply::{self, Answer, Reply};
use super::request::{Credentials, Request};
use super::resource::HEADER_ETAG;
use crate::adapters::https::address::{Address, Location};
use crate::adapters::https::shown::{self, Certificate};
use crate::adapters::https::tls::{self, Handshake, Shown, Trust};
use crate::adapters::https::transport::{Connections, OneHost, TlsConnector};
use crate::os::clock::{self, Deadline};
use crate::os::secret::Scrubber;

/// The greatest number of redirects that the client follows for one request.
const HOPS: usize = 3;
/// The capacity of the buffer for a request's body, in bytes. A body with a password must fit, because a buffer that grows leaves a copy
/// in memory.
const BODY_ROOM: usize = 8 * 1024;
/// The part of a body that is written to the debug file, in bytes.
const TRACED: usize = 4000;
/// The time limit of requests after the action's own time, such as the deletion of a session.
const BRIEFLY: Duration = Duration::from_secs(3);
/// The HTTP status of a request that the BMC has accepted and still executes.
pub const ACCEPTED: u16 = 202;

/// A function that logs the client's requests and answers. It receives no secrets.
pub type Trace = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Clone, Debug)]
pub struct Settings {
    pub address: Address,
    pub trust: Trust,
    pub check_name: bool,
    /// The time limit of a connection, which includes name resolution, TCP and TLS.
    pub connect_limit: Duration,
    /// The time limit of one request, which includes the connection.
    pub answer_limit: Duration,
    pub deadline: Deadline,
}

/// An HTTPS client of one BMC. Clones of it share the connection.
#[derive(Clone)]
pub struct Client {
    settings: Settings,
    agent: Agent,
    connections: Arc<Connections>,
    /// True once the BMC has closed an idle connection. Each later request makes a new connection.
    drops: Arc<AtomicBool>,
    shown: Shown,
    /// True once the BMC has asked for a client certificate.
    wants_certificate: Arc<AtomicBool>,
    /// The BMC's clock minus this node's clock, in seconds, by the last answer with a `Date`; `None` before such an answer.
    clock_ahead: Arc<Mutex<Option<i64>>>,
    scrubber: Scrubber,
    trace: Trace,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").field("address", &self.settings.address).finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client for one BMC. Does not connect yet.
    pub fn new(settings: Settings, scrubber: Scrubber, trace: Trace) -> Result<Self, Failure> {
        let impossible = |why: String| Failure::new(FailureKind::Untrusted, why);
        let shown = Shown::default();
        let wants_certificate = Arc::<AtomicBool>::default();
        let noted = wants_certificate.clone();
        let config = tls::noting(settings.trust.clone(), settings.check_name, shown.clone(), noted)
            .map_err(|error| impossible(format!("TLS cannot be set up: {error}")))?;
        let name = settings
            .address
            .server_name()
            .ok_or_else(|| impossible(format!("'{}' is no host name", settings.address.host())))?;
        let connections = Arc::new(Connections::default());
        let connector =
            ().chain(TcpConnector::default()).chain(TlsConnector {
                config: Arc::new(config),
                name,
                connections: connections.clone(),
            });
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(true)
            // The BMC is reached directly, so a proxy of the caller's environment does not apply.
            .proxy(None)
            .max_redirects(0)
            .max_response_header_size(HEADER_LIMIT)
            .user_agent(concat!("fence_redfish_rs/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .build();
        let agent = Agent::with_parts(config, connector, OneHost { host: settings.address.for_resolver() });
        let drops = Arc::default();
        let clock_ahead = Arc::default();
        Ok(Self { settings, agent, connections, drops, shown, wants_certificate, clock_ahead, scrubber, trace })
    }

    pub fn address(&self) -> &Address {
        &self.settings.address
    }

    /// Returns the deadline of the action that this client serves.
    pub fn deadline(&self) -> Deadline {
        self.settings.deadline
    }

    /// Returns the time that the last connection needed for TCP.
    pub fn waited(&self) -> Duration {
        Duration::from_millis(self.connections.waited_ms.load(Ordering::Relaxed))
    }

    /// Returns the certificate that the BMC showed last; `None` before the first TLS handshake.
    pub fn certificate(&self) -> Option<Certificate> {
        shown::certificate(&self.shown)
    }

    /// Returns the BMC's clock minus this node's clock, in seconds, by the last answer with a `Date`; `None` before such an answer.
    pub fn clock_ahead(&self) -> Option<i64> {
        *self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a client with a short time limit of its own. It is for deletions after the action's time, and for requests that must not
    /// use up that time.
    #[must_use]
    pub fn briefly(&self) -> Self {
        let mut brief = self.clone();
        brief.settings.deadline = Deadline::after(BRIEFLY);
        brief
    }

    /// Returns a client with the time limit `limit` for each request, if it is shorter than the present one.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        let mut brief = self.clone();
        brief.settings.answer_limit = limit.min(brief.settings.answer_limit);
        brief
    }

    /// Replaces the secret `word` from now on in every text that this client logs or returns as an error.
    pub fn hide(&self, word: &[u8]) {
        self.scrubber.hide(word);
    }

    /// Returns a text from the BMC in a form that is safe to show: one line without secrets.
    pub fn clean(&self, text: &str) -> String {
        self.scrubber.clean(text, WORDS)
    }

    /// Cleans a sentence that this program wrote. Everyday words are not replaced in it, even if a secret is such a word. The
    /// caller has already cleaned what the sentence quotes from the BMC.
    pub fn clean_own(&self, sentence: &str) -> String {
        self.scrubber.clean_own(sentence, WORDS)
    }

    /// Writes a line to the debug file.
    pub fn note(&self, line: &str) {
        (self.trace)(line);
    }

    /// Sends a request, follows redirects, and reads the answer. A status of 300 or more is a failure.
    pub fn send(&self, ask: Request<'_>) -> Result<Answer, Failure> {
        let mut place = ask.place.clone();
        for _ in 0..=HOPS {
            let ask = Request { place: &place, ..ask };
            let reply = self.exchange(ask)?;
            match self.redirect(ask, &reply)? {
                Some(next) => {
                    let origin = self.settings.address.origin(next.port);
                    self.note(&format!("redirected to {origin}{}", self.clean(&next.path)));
                    place = next;
                }
                None => return self.judge(ask, reply),
            }
        }
        let what = self.what(Request { place: &place, ..ask });
        Err(Failure::new(FailureKind::ForeignRedirect, format!("{what}: more than {HOPS} redirects: refused")))
    }

    /// Sends a GET as [`send`](Self::send) does, and returns the JSON object of the answer. Fails if the answer is anything else. Adds
    /// the answer's `ETag` header to the object.
    pub fn get(&self, place: &Location, credentials: &Credentials) -> Result<Value, Failure> {
        let ask = Request::get(place, credentials);
        let answer = self.send(ask)?;
        if answer.status == ACCEPTED {
            let text = format!("{}: the BMC puts the answer off ({ACCEPTED})", self.what(ask));
            return Err(Failure::new(FailureKind::Busy { retry_after: None }, text));
        }
        let mut document = reply::document(&answer.body)
            .map_err(|why| Failure::new(FailureKind::Garbled, format!("{}: {why}", self.what(ask))))?;
        if let (Some(etag), Some(members)) = (answer.etag, document.as_object_mut()) {
            members.insert(HEADER_ETAG.to_owned(), Value::String(etag));
        }
        Ok(document)
    }

    fn what(&self, ask: Request<'_>) -> String {
        let origin = self.settings.address.origin(ask.place.port);
        format!("{} {origin}{}", ask.method.word(), self.clean(&ask.place.path))
    }

    /// Sends one request and reads the whole answer. Sends it once more if the BMC had closed the open connection. Does not repeat a POST
    /// or PATCH, because it may have had an effect.
    ///
    /// A BMC that has closed one idle connection closes all of them, so each later request has a new connection.
    fn exchange(&self, ask: Request<'_>) -> Result<Reply, Failure> {
        let mut identity = true;
        let mut again = HABITS.iter().any(|(habit, _)| *habit == Habit::DropsIdleConnections);
        loop {
            let before = self.connections.made.load(Ordering::Relaxed);
            let reply = self.once(ask, identity);
            let was_kept = before > 0 && self.connections.made.load(Ordering::Relaxed) == before;
            let was_dropped = was_kept && reply.as_ref().is_err_and(|failure| failure.kind == FailureKind::Interrupted);
            if was_dropped {
                self.drops.store(true, Ordering::Relaxed);
            }
            match reply {
                // The effect of a POST or PATCH before the connection broke is unknown. Other methods can simply be repeated.
                Err(_) if was_dropped && again && !ask.method.changes() => again = false,
                Ok(reply) if identity && dislikes_identity(reply.status) => identity = false,
                other => return other,
            }
        }
    }

    fn once(&self, ask: Request<'_>, identity: bool) -> Result<Reply, Failure> {
        let what = self.what(ask);
        let deadline = self.settings.deadline;
        let limit = deadline.at_most(self.settings.answer_limit);
        if limit.is_zero() {
            return Err(Failure::new(FailureKind::Silent, format!("{what}: no time is left")));
        }
        let began = deadline.elapsed();
        let result = self
            .call(ask, identity, limit)
            .and_then(|mut response| {
                let body = response.body_mut().with_config().limit(BODY_LIMIT).read_to_vec()?;
                Ok(Reply::new(response.status().as_u16(), response.headers(), body))
            })
            .map_err(|error| {
                let made = self.connections.made.load(Ordering::Relaxed);
                let wants_certificate = self.wants_certificate.load(Ordering::Relaxed);
                let handshake = Handshake { trust: &self.settings.trust, shown: &self.shown, wants_certificate };
                explain::transport(&what, &error, made, handshake, &self.scrubber)
            });
        let took = deadline.elapsed().saturating_sub(began).as_millis();
        match &result {
            Ok(reply) => {
                // The token is hidden before any of this answer is logged, because some services repeat it in the body.
                reply.token.iter().for_each(|token| self.scrubber.hide_token(token.reveal()));
                self.compare_clocks(reply.date);
                let body = self.scrubber.clean(&String::from_utf8_lossy(&reply.body), TRACED);
                self.note(&format!("{what}: {} in {took} ms: {body}", reply.status));
            }
            Err(failure) => self.note(&format!("{failure} (after {took} ms)")),
        }
        result
    }

    fn compare_clocks(&self, date: Option<i64>) {
        let Some(theirs) = date else { return };
        let ours = i64::try_from(clock::wall_seconds()).unwrap_or_default();
        *self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some(theirs.saturating_sub(ours));
    }

    fn call(&self, ask: Request<'_>, identity: bool, limit: Duration) -> Result<Response<Body>, ureq::Error> {
        let url = format!("{}{}", self.settings.address.origin(ask.place.port), ask.place.path);
        let connect = limit.min(self.settings.connect_limit);
        let head = ask.head(url, identity, !self.drops.load(Ordering::Relaxed))?;
        match ask.body {
            Some(body) => {
                let text = written(body)?;
                self.agent.run(self.bounded(head.body(text.as_slice())?, limit, connect, ask.fresh))
            }
            None => self.agent.run(self.bounded(head.body(())?, limit, connect, ask.fresh)),
        }
    }

    fn bounded<S: ureq::AsSendBody>(
        &self,
        request: http::Request<S>,
        limit: Duration,
        connect: Duration,
        fresh: bool,
    ) -> http::Request<S> {
        let config = self.agent.configure_request(request).timeout_global(Some(limit)).timeout_connect(Some(connect));
        if fresh { config.max_idle_age(Duration::ZERO).build() } else { config.build() }
    }

    fn redirect(&self, ask: Request<'_>, reply: &Reply) -> Result<Option<Location>, Failure> {
        if !(300..400).contains(&reply.status) || reply.status == 304 {
            return Ok(None);
        }
        let refused = |why: String| Failure::new(FailureKind::Refused, format!("{}: {why}", self.what(ask)));
        let location = reply
            .location
            .as_deref()
            .ok_or_else(|| refused(format!("answered {} without saying where to", reply.status)))?;
        let unchanged = HABITS
            .iter()
            .any(|(habit, _)| matches!(habit, Habit::RedirectsPosts { statuses } if statuses.contains(&reply.status)));
        if ask.method.changes() && !unchanged {
            return Err(refused(format!("answered {} to a {}", reply.status, ask.method.word())));
        }
        self.follow(ask.place, location).map(Some)
    }

    /// Returns the location that a `link` in the BMC's resource at `from` leads to.
    pub fn follow(&self, from: &Location, link: &str) -> Result<Location, Failure> {
        let follow = self.settings.address.follow(from, link);
        follow.map_err(|failure| Failure { text: self.clean(&failure.text), ..failure })
    }

    fn judge(&self, ask: Request<'_>, reply: Reply) -> Result<Answer, Failure> {
        reply.judge().map_err(|(kind, status, words)| {
            let mut text = format!("{}: the BMC answered {status}", self.what(ask));
            if !words.is_empty() {
                text.push_str(": ");
                text.push_str(&self.clean(&words));
            }
            Failure::new(kind, text)
        })
    }
}

/// Serialises the body of a request. The buffer is wiped when it is dropped, because a login's body has the password.
fn written(body: &Value) -> Result<Zeroizing<Vec<u8>>, ureq::Error> {
    let mut text = Zeroizing::new(Vec::with_capacity(BODY_ROOM));
    serde_json::to_writer(&mut *text, body).map_err(|error| ureq::Error::Io(error.into()))?;
    Ok(text)
}

fn dislikes_identity(status: u16) -> bool {
    HABITS.iter().any(|(habit, _)| *habit == Habit::DislikesIdentity { status })
}
