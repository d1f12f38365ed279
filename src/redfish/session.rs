//! A Redfish session, for services that have basic authentication switched off. Whoever opens one deletes it.

use serde_json::json;

use super::address::Place;
use super::client::{Answer, Client, Credentials, Method};
use super::failure::{Failure, Kind};
use super::secret::Secret;

/// An open session.
#[derive(Clone, Debug)]
pub struct Session {
    token: Secret,
    /// What to delete in the end; a service that does not say where leaves us nothing to delete.
    place: Option<Place>,
}

impl Session {
    /// Logs in at `sessions`, the collection of sessions. The password goes out here and nowhere else.
    pub fn open(client: &mut Client, sessions: &Place, user: &str, password: &Secret) -> Result<Self, Failure> {
        let password = std::str::from_utf8(password.reveal())
            .map_err(|_| Failure::new(Kind::Refused, "a session needs a password in UTF-8, and this one is not"))?;
        let body = json!({ "UserName": user, "Password": password });
        // Some services answer 415 where a login carries other credentials too.
        let answer = client.send(Method::Post, sessions, Some(&body), &Credentials::None)?;
        let token = answer.token.clone().ok_or_else(|| {
            Failure::new(Kind::Garbled, format!("POST {}: the BMC opened a session without a token", sessions.path))
        })?;
        client.hide(token.reveal());
        let place = location(client, sessions, &answer);
        client.note("session opened");
        Ok(Self { token, place })
    }

    pub fn credentials(&self) -> Credentials {
        Credentials::Token(self.token.clone())
    }

    /// Deletes the session. That it cannot be deleted changes nothing about what the action has reached.
    pub fn close(self, client: &Client) {
        let Some(place) = &self.place else { return };
        match client.send(Method::Delete, place, None, &self.credentials()) {
            Ok(_) => client.note("session deleted"),
            Err(failure) => log::warn!("the session on the BMC could not be deleted: {failure}"),
        }
    }
}

fn location(client: &Client, sessions: &Place, answer: &Answer) -> Option<Place> {
    let in_body = || {
        let body: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
        Some(body.get("@odata.id")?.as_str()?.to_owned())
    };
    let link = answer.location.clone().or_else(in_body)?;
    client.follow(sessions, &link).ok()
}
