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

/// The configured way to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginMethod {
    /// Basic authentication, and a session where that is refused.
    Auto,
    Basic,
    Session,
}

/// The kind of login that a BMC accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Basic,
    Session,
}

/// The user that logs in, with the passwords.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: String,
    /// The passwords in the order in which they are tried. Of several, each is refused once at most, because BMCs lock accounts.
    pub passwords: Vec<Secret>,
    pub method: LoginMethod,
    /// The kind of login that this BMC accepted before, where that is known.
    pub way: Option<Way>,
}

impl Login {
    pub(super) fn password(&self, at: usize) -> Secret {
        self.passwords.get(at).cloned().unwrap_or_else(|| Secret::new(Vec::new()))
    }
}

/// A BMC's results for the passwords that were tried. Passwords are counted in the order of [`Login::passwords`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    pub accepted: Option<usize>,
    pub refused: Vec<usize>,
    /// The kind of login that the BMC accepted.
    pub way: Option<Way>,
}

/// The number of retries after a 401. A BMC that is starting sends one now and then, but more of them lock the account.
const SECOND_CHANCES: u32 = 2;
/// The standard's place of sessions, used where the service root does not name one.
const SESSIONS: &str = "SessionService/Sessions";
/// The pause before a retry. A BMC that is starting accepts its users again after a second or two.
const BEFORE_SECOND_TRY: Duration = Duration::from_secs(1);

/// The service of one BMC for one login.
#[derive(Debug)]
pub struct Service {
    pub(super) client: Client,
    pub(super) login: Login,
    pub(super) credentials: Credentials,
    pub(super) session: SessionGuard,
    /// Whether basic authentication was refused by a service that offers sessions. It is not tried again.
    needs_session: bool,
    chances: u32,
    /// The index of the password in use. The next field has the results so far.
    pub(super) at: usize,
    pub(super) tried: Tried,
    /// The kind of login for one of several passwords, once it was decided.
    pub(super) way: Option<Way>,
    /// The refusal of the first of several passwords, or the reason why there is no session. The last error includes it.
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

    /// Ends the session, which must not outlive the action.
    pub fn close(&mut self) {
        self.session.close(&self.client);
    }

    /// Reads a resource with the login's credentials.
    pub fn get(&mut self, place: &Location) -> Result<Value, Failure> {
        self.with_login(place, |client, credentials| client.get(place, credentials))
    }

    /// Sends a request with the login's credentials.
    pub fn send(&mut self, ask: Request<'_>) -> Result<Answer, Failure> {
        self.with_login(ask.place, |client, credentials| client.send(Request { credentials, ..ask }))
    }

    /// Sends without `If-Match`. Where the service requires it, tries each of `etags` until one matches.
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

    /// Returns the results of the passwords so far.
    pub fn tried(&self) -> &Tried {
        &self.tried
    }

    /// Sends a request with the login's credentials. Where there are several passwords and the BMC refuses one, uses the next.
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

    /// Sends a request, and after a 401 once more with renewed credentials.
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

    /// Opens a session if one is needed and none is open.
    fn authenticate(&mut self) -> Result<(), Failure> {
        if self.needs_session && !self.session.is_open() { self.open_session() } else { Ok(()) }
    }

    /// Renews the login after a 401, by a new session where the service has sessions. Returns the reason for a missing session if
    /// the same credentials deserve a retry. A BMC that is starting, or has no free sessions, may still accept them.
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

    /// Returns the place where sessions are opened. The service root should name it publicly. Otherwise it is the standard's
    /// place.
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

    /// Returns the place of the service root.
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
