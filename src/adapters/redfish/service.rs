//! A Redfish service for one user: the client with its login, and the place of the service's systems.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::Client;
use super::failure::{Failure, FailureKind};
use super::reply::Answer;
use super::request::{Credentials, Request};
use super::resource;
use super::session::{SessionGuard, SessionHandle};
use crate::adapters::https::address::Location;
use crate::os::secret::Secret;

/// The configured way of logging in to a BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginMethod {
    /// Basic authentication first. If the BMC refuses it, a session.
    Auto,
    Basic,
    Session,
}

/// The way of logging in that a BMC has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Basic,
    Session,
}

/// The account that the agent logs in with, and its possible passwords.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: String,
    /// The possible passwords, in the order in which they are tried. If there are several, the agent does not send one again after a
    /// refusal, because BMCs lock accounts.
    pub passwords: Vec<Secret>,
    pub method: LoginMethod,
    /// The way of logging in that this BMC accepted in an earlier action; `None` if that is unknown.
    pub way: Option<Way>,
}

impl Login {
    pub(super) fn password(&self, at: usize) -> Secret {
        self.passwords.get(at).cloned().unwrap_or_else(|| Secret::new(Vec::new()))
    }
}

/// The BMC's answers to the passwords that were tried. A password is given by its index in [`Login::passwords`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    pub accepted: Option<usize>,
    pub refused: Vec<usize>,
    /// The way of logging in that the BMC has accepted; `None` until it has accepted one.
    pub way: Option<Way>,
}

/// The greatest number of retries after a 401. A BMC that is starting sends a 401 now and then, but too many of them lock the account.
const SECOND_CHANCES: u32 = 2;
/// The standard's path of the list of sessions, below the service root. It is used if the service root cannot be read.
const SESSIONS: &str = "SessionService/Sessions";
/// The pause before a retry after a 401. A BMC that is starting may refuse valid credentials for a second or two.
const BEFORE_SECOND_TRY: Duration = Duration::from_secs(1);

/// The Redfish service of one BMC, used with one account.
#[derive(Debug)]
pub struct Service {
    pub(super) client: Client,
    pub(super) login: Login,
    pub(super) credentials: Credentials,
    pub(super) session: SessionGuard,
    /// True if the BMC offers sessions and has refused basic authentication. Basic authentication is then not tried again.
    needs_session: bool,
    chances: u32,
    /// The index in [`Login::passwords`] of the password in use.
    pub(super) at: usize,
    /// The BMC's answers to the passwords that were tried so far.
    pub(super) tried: Tried,
    /// The way of logging in with one of several passwords; `None` until it is chosen.
    pub(super) way: Option<Way>,
    /// The BMC's refusal of the first of several passwords, or the reason why it opened no session. The final error includes it.
    pub(super) refusal: Option<Failure>,
    redfish_uri: String,
    systems: Option<Location>,
}

impl Service {
    pub fn new(client: Client, login: Login, redfish_uri: &str, sessions: SessionHandle) -> Self {
        let credentials = match login.method {
            LoginMethod::Auto | LoginMethod::Basic => Credentials::basic(&login.user, &login.password(0)),
            LoginMethod::Session => Credentials::None,
        };
        let needs_session = login.method == LoginMethod::Session;
        Self {
            client,
            login,
            credentials,
            session: SessionGuard::new(sessions),
            needs_session,
            chances: SECOND_CHANCES,
            at: 0,
            tried: Tried::default(),
            way: None,
            refusal: None,
            redfish_uri: redfish_uri.to_owned(),
            systems: None,
        }
    }

    /// Deletes the agent's session, because it must not outlive the action.
    pub fn close(&mut self) {
        self.session.close(&self.client);
    }

    /// Reads a resource with the agent's credentials.
    pub fn get(&mut self, place: &Location) -> Result<Value, Failure> {
        self.with_login(place, |client, credentials| client.get(place, credentials))
    }

    /// Sends a request with the agent's credentials.
    pub fn send(&mut self, ask: Request<'_>) -> Result<Answer, Failure> {
        self.with_login(ask.place, |client, credentials| client.send(Request { credentials, ..ask }))
    }

    /// Sends a request without the header `If-Match`. If the BMC requires that header, sends it again with each of `etags` until one
    /// matches.
    pub fn send_for_any_state(&mut self, ask: Request<'_>, etags: &[String]) -> Result<Answer, Failure> {
        let mut answer = self.send(ask);
        for state in etags {
            match answer {
                Err(failure) if failure.kind == FailureKind::Precondition => {
                    answer = self.send(Request { if_match: Some(state), ..ask });
                }
                other => return other,
            }
        }
        answer
    }

    /// Returns the BMC's answers to the passwords that were tried so far.
    pub fn tried(&self) -> &Tried {
        &self.tried
    }

    /// Sends a request with the agent's credentials. If there are several passwords and the BMC refuses one, sends it with the next.
    fn with_login<T>(
        &mut self,
        place: &Location,
        request: impl Fn(&Client, &Credentials) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // The service root is public, so its answer proves nothing about the credentials.
        let proves = self.root().is_ok_and(|root| root.path.trim_end_matches('/') != place.path.trim_end_matches('/'));
        if self.login.passwords.len() > 1 {
            return self.with_several(proves, request);
        }
        let answer = self.with_one(request);
        match &answer {
            Ok(_) if !proves => {}
            Ok(_) => self.accept(if self.session.is_open() { Way::Session } else { Way::Basic }),
            Err(failure) if failure.kind == FailureKind::Unauthorised => self.tried.refused = vec![0],
            Err(_) => {}
        }
        answer
    }

    pub(super) fn accept(&mut self, way: Way) {
        self.tried.accepted = Some(self.at);
        self.tried.refused.retain(|refused| *refused != self.at);
        self.tried.way = Some(way);
    }

    /// Sends a request with the only password. After a 401, logs in anew and sends it once more.
    fn with_one<T>(&mut self, request: impl Fn(&Client, &Credentials) -> Result<T, Failure>) -> Result<T, Failure> {
        let first = self.authenticate().and_then(|()| request(&self.client, &self.credentials));
        let refused = match first {
            Err(failure) if failure.kind == FailureKind::Unauthorised && self.chances > 0 => failure,
            other => return other.map_err(explain_401),
        };
        self.chances -= 1;
        self.client.note(&format!("{refused}; once more"));
        self.client.deadline().sleep(BEFORE_SECOND_TRY);
        let no_session = self.renew_login()?;
        match (request(&self.client, &self.credentials), no_session) {
            // The service refuses basic authentication here, so the reason for the missing session is the error.
            (Err(second), Some(no_session)) if second.kind == FailureKind::Unauthorised => {
                self.needs_session = true;
                Err(no_session)
            }
            (second, _) => second.map_err(explain_401),
        }
    }

    /// Opens a session if the agent needs one and has none.
    fn authenticate(&mut self) -> Result<(), Failure> {
        if self.needs_session && !self.session.is_open() { self.open_session() } else { Ok(()) }
    }

    /// Logs in anew after a 401: opens a new session if the BMC has sessions. If the BMC cannot open one for now, returns the reason. The
    /// caller then retries with the same credentials, because a BMC that is starting, or has no free session, may accept them.
    fn renew_login(&mut self) -> Result<Option<Failure>, Failure> {
        if self.login.method == LoginMethod::Basic {
            return Ok(None);
        }
        self.session.close(&self.client);
        let may_be_basic = self.login.method == LoginMethod::Auto && !self.needs_session;
        match self.open_session() {
            Ok(()) => {
                self.needs_session = true;
                Ok(None)
            }
            Err(none) if may_be_basic && is_absence(&none) => Ok(None),
            Err(full) if may_be_basic && full.is_passing() => Ok(Some(full)),
            Err(other) => {
                self.needs_session = true;
                Err(explain_401(other))
            }
        }
    }

    pub(super) fn open_session(&mut self) -> Result<(), Failure> {
        let sessions = self.sessions_collection()?;
        let password = self.login.password(self.at);
        self.credentials = self.session.open(&self.client, &sessions, &self.login.user, &password)?;
        Ok(())
    }

    /// Returns the location at which sessions are opened. The public service root should name it. If the root cannot be read, returns the
    /// standard's location.
    pub(super) fn sessions_collection(&mut self) -> Result<Location, Failure> {
        let root = self.root()?;
        let document = match self.client.get(&root, &Credentials::None) {
            Ok(document) => document,
            Err(failure)
                if matches!(
                    failure.kind,
                    FailureKind::Unauthorised | FailureKind::Forbidden | FailureKind::Missing
                ) =>
            {
                return self.place(&format!("{}/{SESSIONS}", root.path.trim_end_matches('/')));
            }
            Err(failure) => return Err(failure),
        };
        let link = document.get("Links").and_then(|links| resource::link(links, "Sessions")).ok_or_else(|| {
            Failure::new(FailureKind::Missing, format!("the service root {} offers no sessions", root.path))
        })?;
        self.follow(&root, &link)
    }

    /// Returns the location of the service root.
    pub fn root(&self) -> Result<Location, Failure> {
        self.place(&self.redfish_uri)
    }

    pub(super) fn login(&self) -> &Login {
        &self.login
    }

    pub fn user(&self) -> &str {
        &self.login.user
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn place(&self, uri: &str) -> Result<Location, Failure> {
        self.client.address().place(uri)
    }

    pub fn follow(&self, from: &Location, link: &str) -> Result<Location, Failure> {
        self.client.follow(from, link)
    }

    pub fn clean(&self, text: &str) -> String {
        self.client.clean(text)
    }

    pub fn systems(&self) -> Option<Location> {
        self.systems.clone()
    }

    pub fn remember_systems(&mut self, place: Location) {
        self.systems = Some(place);
    }
}

fn is_absence(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Missing | FailureKind::Refused)
}

fn explain_401(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Unauthorised => Failure {
            text: format!("unable to log in, the BMC does not accept this username and password: {failure}"),
            ..failure
        },
        _ => failure,
    }
}
