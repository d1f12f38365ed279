//! A mark on a BMC: a session that another client can see, and the list of sessions that shows it.

use std::cell::Cell;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;

use super::client::Client;
use super::failure::{Failure, FailureKind};
use super::request::{Credentials, Request};
use super::resource::{self, Page, System};
use super::session::{SessionHandle, Slot, log_in, log_out};
use crate::adapters::https::address::Location;
use crate::os::secret::Secret;

/// The standard's path of the list of sessions, below the service root.
const SESSIONS: &str = "SessionService/Sessions";
/// The greatest number of sessions in a list that are read. BMCs keep eight to some dozens of sessions.
const SESSIONS_READ: usize = 64;
/// The greatest number of pages of a list of sessions that are read.
const PAGES: usize = 8;
/// The query by which a BMC lists sessions themselves in place of links. The standard does not require a BMC to support it.
const EXPANDED: &str = "?$expand=.";
/// The least number of other clients' sessions for which the agent requests an expanded list. With fewer, an expanded list saves no
/// requests.
const WORTH_EXPANDING: usize = 2;

/// The account that opens the sessions of the fence race (see [`MarkBoard`]), with its possible passwords.
#[derive(Clone, Debug)]
pub struct MarkLogin {
    pub user: String,
    /// The possible passwords, in the order in which they are tried. Each is sent until the BMC refuses it once.
    pub passwords: Vec<Secret>,
    pub redfish_uri: String,
}

/// A session in a BMC's list: its location, and its contents if the list is expanded.
type Member = (Location, Option<Value>);

/// The mark session of one agent on one BMC. It shows the other node's agent that a reset is planned. This type also reads the BMC's list
/// of sessions.
#[derive(Debug)]
pub struct MarkBoard {
    client: Client,
    login: MarkLogin,
    handle: SessionHandle,
    slot: Slot,
    held: bool,
    sessions: Option<Location>,
    /// True unless the BMC has refused a session with a `Context`.
    takes_context: bool,
    /// True unless the BMC has shown that it does not support [`EXPANDED`].
    expands: Cell<bool>,
    /// The time limit of one request for the list of sessions.
    read_limit: Duration,
    /// The `Context` of each session that was requested without an answer. The BMC may have opened such a session.
    unanswered: Vec<String>,
}

/// The contents of a BMC's list of sessions, as seen by one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// True if the list has the session by which this agent announces a reset.
    pub ours: bool,
    /// True if the BMC is known to show the `Context` of this agent's session. The agent checks this only if the list has another session,
    /// too.
    pub keeps_context: bool,
    pub others: Vec<OtherSession>,
    /// The paths of sessions that this agent has requested without an answer.
    pub strays: Vec<String>,
}

/// A session of another client in a BMC's list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherSession {
    pub path: String,
    pub user: Option<String>,
    pub context: Option<String>,
    pub origin: Option<String>,
    pub created: Option<String>,
}

impl MarkBoard {
    /// Creates the value for the BMC that `client` reaches, without opening a session. `handle` deletes the session if the process ends
    /// early. A list of sessions must arrive within `read_limit`.
    pub fn new(client: Client, login: MarkLogin, handle: SessionHandle, read_limit: Duration) -> Self {
        let (slot, sessions, unanswered) = Default::default();
        let (held, takes_context, expands) = (false, true, Cell::new(true));
        Self { client, login, handle, slot, held, sessions, takes_context, expands, read_limit, unanswered }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the account that opens the sessions of the fence race.
    pub fn user(&self) -> &str {
        &self.login.user
    }

    /// Registers this agent's session for deletion if the process ends early. Must be called in the thread that a signal may interrupt,
    /// before another thread uses this value.
    pub fn hold(&mut self) {
        if !self.held {
            self.handle.hold(&self.slot, &self.client, true);
            self.held = true;
        }
    }

    /// Opens the connection to the BMC by a request that needs no login, before the agent needs a session.
    pub fn connect(&mut self) -> Result<(), Failure> {
        self.sessions = Some(self.linked_sessions()?);
        Ok(())
    }

    /// Opens the mark session (see [`MarkBoard`]) with this `context`. Does nothing if it is already open.
    pub fn raise(&mut self, context: &str) -> Result<(), Failure> {
        self.hold();
        if self.is_up() {
            return Ok(());
        }
        let opened = self.open_somehow(context);
        let is_lost = |failure: &Failure| !failure.is_an_answer() && failure.kind != FailureKind::Unreachable;
        if opened.as_ref().is_err_and(is_lost) {
            self.unanswered.push(context.to_owned());
        }
        opened
    }

    fn open_somehow(&mut self, context: &str) -> Result<(), Failure> {
        match self.open(context) {
            Err(failure) if failure.kind == FailureKind::Missing => {
                self.sessions = Some(self.linked_sessions().map_err(|_| failure)?);
                self.open(context)
            }
            // A service of an earlier version of the standard does not know this property.
            Err(failure) if self.takes_context && is_dislike(&failure) => {
                self.takes_context = false;
                self.open(context)
            }
            other => other,
        }
    }

    fn open(&mut self, context: &str) -> Result<(), Failure> {
        let sessions = self.sessions()?;
        let context = self.takes_context.then_some(context);
        // A signal that ends the process waits here until the session is known.
        let slot = self.slot.clone();
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        self.handle.check_open()?;
        loop {
            let Some(password) = self.login.passwords.first() else {
                return Err(Failure::new(FailureKind::Unauthorised, "the BMC accepts no password"));
            };
            match log_in(&self.client, &sessions, &self.login.user, password, context) {
                Ok(session) => {
                    *slot = Some(session);
                    return Ok(());
                }
                Err(failure) if failure.kind == FailureKind::Unauthorised => {
                    self.login.passwords.remove(0);
                    if self.login.passwords.is_empty() {
                        return Err(failure);
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    fn sessions(&self) -> Result<Location, Failure> {
        if let Some(sessions) = &self.sessions {
            return Ok(sessions.clone());
        }
        let root = self.login.redfish_uri.trim_end_matches('/');
        self.client.address().place(&format!("{root}/{SESSIONS}"))
    }

    /// Returns the location of the list of sessions that the service root names, for a BMC that does not use the standard's path.
    fn linked_sessions(&self) -> Result<Location, Failure> {
        let root = self.client.address().place(&self.login.redfish_uri)?;
        let document = self.client.within(self.read_limit).get(&root, &Credentials::None)?;
        let link = document.get("Links").and_then(|links| resource::link(links, "Sessions"));
        let link = link.ok_or_else(|| Failure::new(FailureKind::Missing, "the service root offers no sessions"))?;
        self.client.follow(&root, &link)
    }

    /// Reads the BMC's list of sessions, and each session of another client.
    pub fn read(&self) -> Result<Marks, Failure> {
        self.read_by(&self.client.within(self.read_limit))
    }

    fn read_by(&self, client: &Client) -> Result<Marks, Failure> {
        let (credentials, own) = self.session();
        let is_own = |path: &str| own.as_deref().is_some_and(|own| same(own, path));
        let logins = self.handle.logins_on(client);
        // Without a `Context`, the session of this action's login looks like a mark of the other node.
        let is_login = |path: &str| logins.iter().any(|login| same(login, path));
        let mut marks = Marks::default();
        let mut members = self.members(client, &credentials)?;
        members.retain(|(place, _)| !is_login(&place.path));
        if members.iter().filter(|member| !is_own(&member.0.path)).count() >= WORTH_EXPANDING
            && let Some(expanded) = self.expanded(client, &credentials)?
        {
            // A session that the second list lacks has ended, or must still be read by its link.
            members.retain(|(place, _)| !is_own(&place.path) && !expanded.iter().any(|(other, _)| other == place));
            members.extend(expanded.into_iter().filter(|(place, _)| !is_login(&place.path)));
        }
        let mut own_document = None;
        for (place, document) in members {
            if is_own(&place.path) {
                marks.ours = true;
                own_document = document;
                continue;
            }
            match document.map_or_else(|| client.get(&place, &credentials), Ok) {
                Ok(document) => match OtherSession::read(place.path, &document) {
                    other if other.context.as_ref().is_some_and(|context| self.unanswered.contains(context)) => {
                        marks.strays.push(other.path);
                    }
                    other => marks.others.push(other),
                },
                // The session has ended since.
                Err(failure) if failure.kind == FailureKind::Missing => {}
                // A session that may not be read may belong to any client.
                Err(failure) if failure.kind == FailureKind::Forbidden => {
                    marks.others.push(OtherSession { path: place.path, ..OtherSession::default() });
                }
                Err(failure) => return Err(failure),
            }
        }
        if let Some(own) = own.filter(|_| marks.ours && !marks.others.is_empty() && self.takes_context) {
            let document = match own_document {
                Some(document) => document,
                None => client.get(&client.address().place(&own)?, &credentials)?,
            };
            marks.keeps_context = OtherSession::read(own, &document).context.is_some();
        }
        Ok(marks)
    }

    /// Returns all sessions by one request for an expanded list; `None` if the BMC does not support such a list. The list has each session
    /// anew. If it shows this agent's own session, it also has all older sessions.
    fn expanded(&self, client: &Client, credentials: &Credentials) -> Result<Option<Vec<Member>>, Failure> {
        if !self.expands.get() {
            return Ok(None);
        }
        let list = self.sessions()?;
        let place = Location { path: format!("{}{EXPANDED}", list.path), ..list };
        let members = match client.get(&place, credentials) {
            Ok(document) => expanded_members(client, &place, &document),
            Err(failure) if failure.is_an_answer() => None,
            Err(failure) => return Err(failure),
        };
        self.expands.set(members.is_some());
        Ok(members)
    }

    /// Returns the sessions to which the links in the BMC's list of sessions lead.
    fn members(&self, client: &Client, credentials: &Credentials) -> Result<Vec<Member>, Failure> {
        let mut place = self.sessions()?;
        let mut members = Vec::new();
        for _ in 0..PAGES {
            let page = Page::read(&client.get(&place, credentials)?)
                .map_err(|why| Failure::new(FailureKind::Garbled, format!("the list of sessions {why}")))?;
            for link in &page.members {
                members.push((client.follow(&place, link)?, None));
            }
            match page.next {
                _ if members.len() > SESSIONS_READ => break,
                None => return Ok(members),
                Some(next) => place = client.follow(&place, &next)?,
            }
        }
        Err(Failure::new(FailureKind::Garbled, "the list of sessions is too long to be read in time"))
    }

    /// Deletes the session of another client at `path`.
    pub fn delete(&self, path: &str) -> Result<(), Failure> {
        let (credentials, _) = self.session();
        let place = self.client.address().place(path)?;
        self.client.briefly().send(Request::delete(&place, &credentials)).map(drop)
    }

    /// Reads the system at `uri` in this agent's session of the fence race.
    pub fn system(&self, uri: &str) -> Result<System, Failure> {
        let place = self.client.address().place(uri)?;
        let document = self.client.within(self.read_limit).get(&place, &self.session().0)?;
        System::read(&document).map_err(|why| Failure::new(FailureKind::Garbled, format!("{uri} {why}")))
    }

    /// Sends a request in this agent's session of the fence race. Some BMCs otherwise end the session as idle after 30 s.
    pub fn touch(&self) {
        let (credentials, Some(own)) = self.session() else { return };
        let touched = self.client.address().place(&own).and_then(|place| self.client.get(&place, &credentials));
        if let Err(failure) = touched {
            log::info!("the session on the BMC could not be read: {failure}");
        }
    }

    /// Returns whether this agent's session of the fence race is open, as far as the agent knows.
    pub fn is_up(&self) -> bool {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns the path of this agent's session of the fence race; `None` if it is not open, or if the BMC did not name its path.
    pub(super) fn path(&self) -> Option<String> {
        self.session().1
    }

    /// Deletes this agent's session of the fence race, and any session that the BMC has opened without an answer.
    pub fn lower(&mut self) {
        if !self.unanswered.is_empty() {
            let strays = self.read_by(&self.client.briefly()).map(|marks| marks.strays).unwrap_or_default();
            for stray in strays {
                if let Err(failure) = self.delete(&stray) {
                    log::warn!("a session on the BMC could not be deleted: {failure}");
                }
            }
        }
        log_out(&self.slot, &self.client);
    }

    fn session(&self) -> (Credentials, Option<String>) {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.as_ref() {
            Some(session) => (session.credentials(), session.place.as_ref().map(|place| place.path.clone())),
            None => match self.login.passwords.first() {
                Some(password) => (Credentials::basic(&self.login.user, password), None),
                None => (Credentials::None, None),
            },
        }
    }
}

/// Returns the sessions in an expanded list; `None` if the list has a link in place of a session, or has another page.
fn expanded_members(client: &Client, place: &Location, document: &Value) -> Option<Vec<Member>> {
    let page = Page::read(document).ok().filter(|page| page.next.is_none() && page.members.len() <= SESSIONS_READ)?;
    let shown = document.get("Members")?.as_array()?;
    let member = |(link, session): (&String, &Value)| {
        let place = client.follow(place, link).ok()?;
        session.get("UserName").is_some().then(|| (place, Some(session.clone())))
    };
    page.members.iter().zip(shown).map(member).collect()
}

fn is_dislike(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Disliked | FailureKind::ValueRefused | FailureKind::Refused)
}

/// Returns whether two paths are those of the same session. A slash at the end does not matter.
pub(super) fn same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

impl OtherSession {
    fn read(path: String, document: &Value) -> Self {
        let text =
            |key: &str| document.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            path,
            user: text("UserName"),
            context: text("Context"),
            origin: text("ClientOriginIPAddress"),
            created: text("CreatedTime"),
        }
    }
}
