//! A Redfish session, for services that have basic authentication switched off. Whoever opens one deletes it.

use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{SigSet, Signal};
use serde_json::{Value, json};
use zeroize::Zeroize as _;

use super::address::Location;
use super::client::Client;
use super::failure::{Failure, FailureKind};
use super::reply::{self, Answer};
use super::request::{Credentials, Request};
use super::secret::Secret;

/// Signals by which a person or a service manager ends us early.
const ENDINGS: &[Signal] = &[Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// An open session.
#[derive(Clone, Debug)]
struct Session {
    token: Secret,
    /// What to delete in the end; a service that does not say where leaves us nothing to delete.
    place: Option<Location>,
}

/// Keeps the one session of an action, and deletes it on every way out that a process is told of.
///
/// A BMC has few sessions (eight on some), and keeps a forgotten one for up to half an hour.
#[derive(Debug, Default)]
pub struct SessionGuard {
    /// Locked while a session is being opened or closed, so that a signal finds it open or gone, never in between.
    slot: Arc<Mutex<Option<Session>>>,
    watched: bool,
}

impl SessionGuard {
    /// Logs in at `sessions`, the collection of sessions. The password goes out here and nowhere else.
    pub fn open(
        &mut self,
        client: &Client,
        sessions: &Location,
        user: &str,
        password: &Secret,
    ) -> Result<Credentials, Failure> {
        self.watch(client);
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

    /// From the first session on, a signal that would end us deletes it first.
    fn watch(&mut self, client: &Client) {
        if self.watched {
            return;
        }
        self.watched = true;
        let signals: SigSet = ENDINGS.iter().copied().collect();
        if signals.thread_block().is_err() {
            return;
        }
        let (slot, client) = (self.slot.clone(), client.clone());
        std::thread::spawn(move || {
            if let Ok(signal) = signals.wait() {
                log_out(&slot, &client);
                end_by(signal);
            }
        });
    }
}

#[expect(clippy::exit, reason = "a signal ends the process, whatever its other threads are waiting for")]
fn end_by(signal: Signal) {
    std::process::exit(128 + signal as i32)
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
