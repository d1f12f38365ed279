//! A Redfish session, for services that have basic authentication switched off. Whoever opens one deletes it.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use zeroize::Zeroize as _;

use super::client::Client;
use super::failure::{Failure, FailureKind};
use super::reply::{self, Answer};
use super::request::{Credentials, Request};
use crate::adapters::https::address::Location;
use crate::os::secret::Secret;

/// An open session.
#[derive(Clone, Debug)]
struct Session {
    token: Secret,
    /// What to delete in the end; a service that does not say where leaves us nothing to delete.
    place: Option<Location>,
}

/// Locked while a session is being opened or closed, so that another thread finds it open or gone, never in between.
type Slot = Arc<Mutex<Option<Session>>>;

/// The session of an action, open or not, for whoever may have to end the process in the middle of it.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    slot: Slot,
    client: Client,
}

impl SessionHandle {
    /// Deletes the session, if it is open.
    pub fn delete(&self) {
        log_out(&self.slot, &self.client);
    }
}

/// Gets hold of the session right before the first one is opened, in the thread that opens it.
pub type OnSession = Box<dyn FnOnce(SessionHandle) + Send>;

/// Keeps the one session of an action, and deletes it in the end.
///
/// A BMC has few sessions (eight on some), and keeps a forgotten one for up to half an hour.
pub struct SessionGuard {
    slot: Slot,
    on_session: Option<OnSession>,
}

impl std::fmt::Debug for SessionGuard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SessionGuard").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl SessionGuard {
    pub fn new(on_session: OnSession) -> Self {
        Self { slot: Slot::default(), on_session: Some(on_session) }
    }

    /// Logs in at `sessions`, the collection of sessions. The password goes out here and nowhere else.
    pub fn open(
        &mut self,
        client: &Client,
        sessions: &Location,
        user: &str,
        password: &Secret,
    ) -> Result<Credentials, Failure> {
        if let Some(on_session) = self.on_session.take() {
            on_session(SessionHandle { slot: self.slot.clone(), client: client.clone() });
        }
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let session = log_in(client, sessions, user, password)?;
        let credentials = session.credentials();
        *slot = Some(session);
        Ok(credentials)
    }

    pub fn is_open(&self) -> bool {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Deletes the session, if there is one. That it cannot be deleted changes nothing about what was reached.
    pub fn close(&mut self, client: &Client) {
        log_out(&self.slot, client);
    }
}

fn log_in(client: &Client, sessions: &Location, user: &str, password: &Secret) -> Result<Session, Failure> {
    let password = std::str::from_utf8(password.reveal())
        .map_err(|_| Failure::new(FailureKind::Refused, "a session needs a password in UTF-8, and this one is not"))?;
    let mut body = json!({ "UserName": user, "Password": password });
    // Some services answer 415 where a login carries other credentials too.
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

fn log_out(slot: &Mutex<Option<Session>>, client: &Client) {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(session) = slot.take() else { return };
    let Some(place) = &session.place else {
        log::warn!("the BMC does not say where the session is, so it stays open until it has been idle long enough");
        return;
    };
    let farewell = client.briefly();
    match farewell.send(Request::delete(place, &session.credentials())) {
        Ok(_) => client.note("session deleted"),
        Err(failure) => log::warn!("the session on the BMC could not be deleted: {failure}"),
    }
}

impl Session {
    fn credentials(&self) -> Credentials {
        Credentials::Token(self.token.clone())
    }
}

/// Where the session is: as the header says, else as the session itself does, by its path or by its id. Some services
/// name themselves otherwise than we reach them, so only the path counts: the request that deletes the session goes to
/// the BMC that opened it.
fn location(client: &Client, sessions: &Location, answer: &Answer) -> Option<Location> {
    let body = reply::document(&answer.body).unwrap_or_default();
    let said = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let by_id = said("Id").map(|id| format!("{}/{id}", sessions.path.trim_end_matches('/')));
    let in_header = answer.location.clone().filter(|link| !link.is_empty());
    let links = [in_header, said("@odata.id").map(str::to_owned), by_id];
    links.iter().flatten().find_map(|link| client.address().here(sessions, link))
}
