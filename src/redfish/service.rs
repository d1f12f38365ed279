//! A Redfish service as it is to one user of it: the client with its login, and where the service has its systems.

use std::time::Duration;

use serde_json::Value;

use super::address::Location;
use super::client::Client;
use super::failure::{Failure, FailureKind};
use super::reply::Answer;
use super::request::{Credentials, Request};
use super::resource;
use super::secret::Secret;
use super::session::{OnSession, SessionGuard};

/// How to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginMethod {
    /// Basic authentication, and a session where that is refused.
    Auto,
    Basic,
    Session,
}

/// Who we are to the BMC.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: String,
    pub password: Secret,
    pub method: LoginMethod,
}

/// A 401 now and then comes from a BMC that is starting; more of them lock the account.
const SECOND_CHANCES: u32 = 2;
/// Where the standard has sessions opened; asked where the service root does not say it.
const SESSIONS: &str = "SessionService/Sessions";
/// Such a BMC knows its users again a second or two later.
const BEFORE_SECOND_TRY: Duration = Duration::from_secs(1);

/// The service of one BMC, to us.
#[derive(Debug)]
pub struct Service {
    client: Client,
    login: Login,
    credentials: Credentials,
    session: SessionGuard,
    /// Basic authentication was refused where sessions are offered: it is not tried again.
    needs_session: bool,
    chances: u32,
    redfish_uri: String,
    systems: Option<Location>,
}

impl Service {
    pub fn new(client: Client, login: Login, redfish_uri: &str, on_session: OnSession) -> Self {
        let credentials = match login.method {
            LoginMethod::Auto | LoginMethod::Basic => Credentials::basic(&login.user, &login.password),
            LoginMethod::Session => Credentials::None,
        };
        let needs_session = login.method == LoginMethod::Session;
        Self {
            client,
            login,
            credentials,
            session: SessionGuard::new(on_session),
            needs_session,
            chances: SECOND_CHANCES,
            redfish_uri: redfish_uri.to_owned(),
            systems: None,
        }
    }

    /// Ends what must not outlive the action.
    pub fn close(&mut self) {
        self.session.close(&self.client);
    }

    /// A resource, with our credentials.
    pub fn get(&mut self, place: &Location) -> Result<Value, Failure> {
        self.with_login(|client, credentials| client.get(place, credentials))
    }

    /// A request, with our credentials.
    pub fn send(&mut self, ask: Request<'_>) -> Result<Answer, Failure> {
        self.with_login(|client, credentials| client.send(Request { credentials, ..ask }))
    }

    /// Sends a request with our credentials, and after a 401 once more with whatever they are then.
    fn with_login<T>(&mut self, request: impl Fn(&Client, &Credentials) -> Result<T, Failure>) -> Result<T, Failure> {
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
            // Basic authentication is off here, so it is the session that would be needed.
            (Err(second), Some(no_session)) if second.kind == FailureKind::Unauthorised => {
                self.needs_session = true;
                Err(no_session)
            }
            (second, _) => second.map_err(explain_401),
        }
    }

    /// Makes sure that there is a session where one is asked for.
    fn authenticate(&mut self) -> Result<(), Failure> {
        if self.needs_session && !self.session.is_open() { self.open_session() } else { Ok(()) }
    }

    /// After a 401: a new session where there are sessions. Answers why there is none just now where the same
    /// credentials are worth another try, as a BMC that is starting, or whose sessions are used up, still takes those.
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

    fn open_session(&mut self) -> Result<(), Failure> {
        let sessions = self.sessions_collection()?;
        self.credentials = self.session.open(&self.client, &sessions, &self.login.user, &self.login.password)?;
        Ok(())
    }

    /// Where sessions are opened. The service root says so, and should to anybody; where it does not, there is a
    /// place for them in the standard.
    fn sessions_collection(&mut self) -> Result<Location, Failure> {
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

    /// Where everything begins.
    pub fn root(&self) -> Result<Location, Failure> {
        self.place(&self.redfish_uri)
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
