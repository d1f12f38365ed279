//! A Redfish session, for services that have basic authentication disabled. The action that opens a session deletes it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use zeroize::Zeroize as _;

use super::client::Client;
use super::failure::{Failure, FailureKind};
use super::reply::{self, Answer};
use super::request::{Credentials, Request};
use crate::adapters::https::address::Location;
use crate::os::secret::Secret;

/// An open session on a BMC, with its token.
#[derive(Clone, Debug)]
pub(super) struct Session {
    token: Secret,
    /// The location of the session, to which its deletion is sent; `None` if the BMC did not name it.
    pub(super) place: Option<Location>,
}

/// The storage of one session, shared between threads. It is locked while the session is opened or deleted, so that another thread sees
/// either a complete session or none.
pub(super) type Slot = Arc<Mutex<Option<Session>>>;

/// A handle of all sessions of an action. It deletes them if the process ends early.
#[derive(Clone)]
pub struct SessionHandle {
    held: Arc<Mutex<Vec<Held>>>,
    on_first: Arc<Mutex<Option<OnSession>>>,
    stage: Arc<Mutex<Stage>>,
}

/// The stage of an action. It prevents that a reset is sent after the early end of the process has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// A reset was sent, and the agent does not yet know its result. The sessions that announce the reset to the other node must stay.
    Resetting,
    /// The process is ending early: sessions are deleted, and no new one is opened.
    Ending,
}

#[derive(Clone)]
struct Held {
    slot: Slot,
    client: Client,
    is_mark: bool,
}

/// A callback that receives the handle of an action's sessions. It is called just before the first session is opened, in the thread that
/// opens it.
pub type OnSession = Box<dyn FnOnce(SessionHandle) + Send>;

impl std::fmt::Debug for SessionHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SessionHandle").finish_non_exhaustive()
    }
}

impl SessionHandle {
    /// Creates a handle without sessions. Calls `on_session` before the first session is opened.
    pub fn new(on_session: OnSession) -> Self {
        Self { held: Arc::default(), on_first: Arc::new(Mutex::new(Some(on_session))), stage: Arc::default() }
    }

    /// Deletes all open sessions and prevents new ones, because the process ends early. If a reset is under way, keeps the sessions that
    /// announce it to the other node.
    pub fn delete(&self) {
        let keeps_marks = {
            let mut stage = self.stage();
            if *stage == Stage::Open {
                *stage = Stage::Ending;
            }
            *stage == Stage::Resetting
        };
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for Held { slot, client, is_mark } in held {
            if !is_mark || !keeps_marks {
                log_out(&slot, &client);
            }
        }
    }

    /// Records that a reset is about to be sent. From now on [`Self::delete`] keeps the sessions that announce the reset to the other node.
    /// Returns whether an earlier reset is under way. Fails if the process is ending.
    pub fn begin_reset(&self) -> Result<bool, Failure> {
        let mut stage = self.stage();
        if *stage == Stage::Ending {
            return Err(ended());
        }
        let is_under_way = *stage == Stage::Resetting;
        *stage = Stage::Resetting;
        Ok(is_under_way)
    }

    /// Records that no reset is under way any more. From now on [`Self::delete`] also deletes the sessions of the fence race.
    pub fn settle_reset(&self) {
        let mut stage = self.stage();
        if *stage == Stage::Resetting {
            *stage = Stage::Open;
        }
    }

    /// Returns whether a reset is under way. The sessions that announce it to the other node must then stay.
    pub fn keeps_marks(&self) -> bool {
        *self.stage() == Stage::Resetting
    }

    /// Fails once a signal has ended the action, because nothing would delete a session that is opened after that.
    pub(super) fn check_open(&self) -> Result<(), Failure> {
        if *self.stage() == Stage::Ending { Err(ended()) } else { Ok(()) }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the paths of the sessions by which this action is logged in on the BMC that `client` reaches. Its marks are not among them.
    pub(super) fn logins_on(&self, client: &Client) -> Vec<String> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // A slot of another BMC may be locked for as long as that BMC takes to open a session.
        let is_login = |held: &Held| !held.is_mark && held.client.address() == client.address();
        let slots = held.into_iter().filter(is_login).map(|held| held.slot);
        let path = |slot: Slot| {
            let session = slot.lock().unwrap_or_else(PoisonError::into_inner);
            session.as_ref().and_then(|session| session.place.as_ref()).map(|place| place.path.clone())
        };
        slots.filter_map(path).collect()
    }

    /// Registers the session in `slot` for deletion if the process ends early.
    pub(super) fn hold(&self, slot: &Slot, client: &Client, is_mark: bool) {
        let held = Held { slot: slot.clone(), client: client.clone(), is_mark };
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(held);
        let on_first = self.on_first.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(on_first) = on_first {
            on_first(self.clone());
        }
    }
}

fn ended() -> Failure {
    Failure::new(FailureKind::Refused, "a signal has ended the action")
}

/// The one session of an action's own login, which the action deletes at its end.
///
/// A BMC has few sessions (some have eight), and keeps an unused one for up to half an hour.
#[derive(Debug)]
pub struct SessionGuard {
    slot: Slot,
    handle: Option<SessionHandle>,
}

impl SessionGuard {
    /// Creates a guard that has no session yet.
    pub fn new(handle: SessionHandle) -> Self {
        Self { slot: Slot::default(), handle: Some(handle) }
    }

    /// Opens the session at `sessions`, the BMC's collection of sessions. Returns its token as credentials.
    pub fn open(
        &mut self,
        client: &Client,
        sessions: &Location,
        user: &str,
        password: &Secret,
    ) -> Result<Credentials, Failure> {
        if let Some(handle) = self.handle.take() {
            handle.hold(&self.slot, client, false);
        }
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let session = log_in(client, sessions, user, password, None)?;
        let credentials = session.credentials();
        *slot = Some(session);
        Ok(credentials)
    }

    pub fn is_open(&self) -> bool {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Deletes the session, if there is one. A failure is only logged, because it does not change the action's result.
    pub fn close(&mut self, client: &Client) {
        log_out(&self.slot, client);
    }
}

/// Opens a session with `context`. Later requests in the session send its token and not the password.
pub(super) fn log_in(
    client: &Client,
    sessions: &Location,
    user: &str,
    password: &Secret,
    context: Option<&str>,
) -> Result<Session, Failure> {
    let password = std::str::from_utf8(password.reveal())
        .map_err(|_| Failure::new(FailureKind::Refused, "a session needs a password in UTF-8, and this one is not"))?;
    let mut body = json!({ "UserName": user, "Password": password });
    if let Some(context) = context {
        body["Context"] = context.into();
    }
    // Some services answer 415 to a login that carries other credentials, too.
    let answer = client.send(Request::post(sessions, &body, &Credentials::None));
    if let Some(Value::String(password)) = body.get_mut("Password") {
        password.zeroize();
    }
    let answer = answer?;
    let token = answer.token.clone().ok_or_else(|| {
        Failure::new(FailureKind::Garbled, format!("POST {}: the BMC opened a session without a token", sessions.path))
    })?;
    client.note("session opened");
    Ok(Session { token, place: location(client, sessions, &answer) })
}

/// Deletes the session in `slot`, if there is one. A failure is only logged.
pub(super) fn log_out(slot: &Mutex<Option<Session>>, client: &Client) {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(session) = slot.take() else { return };
    let Some(place) = &session.place else {
        log::warn!("the BMC does not name the session's path, so the session is not deleted and ends once idle");
        return;
    };
    let farewell = client.briefly();
    match farewell.send(Request::delete(place, &session.credentials())) {
        Ok(_) => client.note("session deleted"),
        Err(failure) => log::warn!("the session on the BMC could not be deleted: {failure}"),
    }
}

impl Session {
    pub(super) fn credentials(&self) -> Credentials {
        Credentials::Token(self.token.clone())
    }
}

/// Returns the location of a new session: from the answer's header, or from the path or id in its body. Uses only the path of a link,
/// because some BMCs know themselves by another host name. The deletion then goes to the BMC that opened the session.
fn location(client: &Client, sessions: &Location, answer: &Answer) -> Option<Location> {
    let body = reply::document(&answer.body).unwrap_or_default();
    let said = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let by_id = said("Id").map(|id| format!("{}/{id}", sessions.path.trim_end_matches('/')));
    let in_header = answer.location.clone().filter(|link| !link.is_empty());
    let links = [in_header, said("@odata.id").map(str::to_owned), by_id];
    links.iter().flatten().find_map(|link| client.address().here(sessions, link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_end_and_a_reset_exclude_each_other() {
        let handle = SessionHandle::new(Box::new(|_| {}));
        assert_eq!(handle.begin_reset(), Ok(false));
        assert_eq!(handle.begin_reset(), Ok(true), "an earlier one is under way");
        handle.delete();
        assert!(handle.keeps_marks());
        handle.settle_reset();
        assert_eq!(handle.check_open(), Ok(()));
        handle.delete();
        handle.settle_reset();
        assert!(handle.begin_reset().is_err() && handle.check_open().is_err(), "its marks are gone");
    }
}
