//! The sessions of the BMC: opened, listed for each logged-in client, and deleted.

use std::time::Instant;

use serde_json::{Value, json};

use super::http::{Reply, Request};
use super::model::{Access, SESSIONS, SessionSays, World, error};

/// A session that is open on the emulated BMC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    pub number: usize,
    pub token: String,
    pub user: String,
    pub context: Option<String>,
    /// The IP address of the client that opened the session.
    pub origin: String,
    pub used: Option<Instant>,
}

/// The way in which the emulated BMC's list shows its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionsAre {
    Shown,
    /// The list shows all sessions, but without their `Context`.
    WithoutContext,
    /// The list shows all sessions, but the BMC refuses a login with a `Context`.
    WithoutSuchProperty,
    /// The list is always empty.
    Hidden,
    /// The list shows only the session of the client that reads it.
    OwnOnly,
}

fn document(session: &Session) -> Value {
    let mut document = json!({"@odata.id": format!("{SESSIONS}/{}", session.number), "Id": session.number.to_string(),
        "UserName": session.user, "ClientOriginIPAddress": session.origin});
    if let Some(context) = &session.context {
        document["Context"] = json!(context);
    }
    document
}

impl World {
    /// Returns a BMC that supports basic authentication and sessions. `sessions_are` is the way in which it lists
    /// sessions.
    pub fn with_sessions(sessions_are: SessionsAre) -> Self {
        Self { access: Access::Both, sessions_are, ..Self::one_system() }
    }

    /// Opens a session, as if another client had logged in.
    pub fn add_session(&mut self, user: &str, context: Option<&str>) {
        self.sessions_opened += 1;
        let number = self.sessions_opened;
        self.sessions.push(Session {
            number,
            token: format!("token-{number}-secret"),
            user: user.to_owned(),
            context: context.map(str::to_owned),
            origin: "192.0.2.77".to_owned(),
            used: Some(Instant::now()),
        });
    }

    /// Ends the sessions that have been idle for too long, and records that the session of `request` was used.
    pub(super) fn use_sessions(&mut self, request: &Request) {
        let Some(longest) = self.sessions_idle else { return };
        let now = Instant::now();
        let is_idle = |session: &Session| session.used.is_some_and(|used| now.duration_since(used) > longest);
        self.sessions.retain(|session| !is_idle(session));
        let token = request.header("X-Auth-Token");
        for session in self.sessions.iter_mut().filter(|session| Some(session.token.as_str()) == token) {
            session.used = Some(now);
        }
    }

    pub(super) fn log_in(&mut self, request: &Request) -> Reply {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if self.access == Access::Basic {
            return error(404, "Base.1.8.ResourceMissingAtURI", "The resource was not found.");
        }
        let is_right = body["UserName"] == self.user.as_str()
            && body["Password"].as_str().map(str::as_bytes) == Some(self.password.as_slice());
        if !self.counted(is_right) {
            return error(401, "Base.1.8.ResourceAtUriUnauthorized", "Invalid user name or password.");
        }
        let context = body["Context"].as_str();
        if context.is_some() && self.sessions_are == SessionsAre::WithoutSuchProperty {
            return error(400, "Base.1.8.PropertyUnknown", "The property Context is not in the list of properties.");
        }
        self.add_session(&self.user.clone(), context.filter(|_| self.sessions_are != SessionsAre::WithoutContext));
        let number = self.sessions_opened;
        if let Some(session) = self.sessions.last_mut() {
            session.origin.clone_from(&request.peer);
        }
        let token = format!("token-{number}-secret");
        let uri = format!("{SESSIONS}/{number}");
        let place = format!("{}{uri}", self.own_name);
        let (header, body) = match self.session_says {
            SessionSays::Header => (Some(place.as_str()), json!({"@odata.id": uri, "Token": token})),
            SessionSays::Path => (None, json!({"@odata.id": uri})),
            SessionSays::Id => (None, json!({"Id": number.to_string()})),
            SessionSays::EmptyHeader => (Some(""), json!({"@odata.id": uri})),
            SessionSays::Nothing => (None, json!({})),
        };
        let headers: Vec<_> =
            header.map(|place| ("Location", place)).into_iter().chain([("X-Auth-Token", token.as_str())]).collect();
        Reply::json(201, &headers, &body.to_string())
    }

    pub(super) fn show_sessions(&self, request: &Request) -> Reply {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let is_expanded = path == SESSIONS && query == "$expand=.";
        if !(query.is_empty() || self.expands && is_expanded) {
            return error(501, "Base.1.8.QueryNotSupported", "Querying is not supported by the implementation.");
        }
        let shown = |session: &&Session| path == SESSIONS || path == format!("{SESSIONS}/{}", session.number);
        let is_hidden = self.sessions_are == SessionsAre::Hidden;
        let token = request.header("X-Auth-Token");
        let is_visible =
            |session: &&Session| self.sessions_are != SessionsAre::OwnOnly || Some(session.token.as_str()) == token;
        let shown: Vec<&Session> =
            self.sessions.iter().filter(shown).filter(is_visible).filter(|_| !is_hidden).collect();
        if path == SESSIONS {
            let link = |session: &&Session| match query {
                "" => json!({"@odata.id": format!("{SESSIONS}/{}", session.number)}),
                _ => document(session),
            };
            let members: Vec<Value> = shown.iter().map(link).collect();
            return Reply::json(
                200,
                &[],
                &json!({"Members": members, "Members@odata.count": members.len()}).to_string(),
            );
        }
        let Some(session) = shown.first() else {
            return error(404, "Base.1.8.ResourceMissingAtURI", "The resource was not found.");
        };
        Reply::json(200, &[], &document(session).to_string())
    }

    /// Deletes the session at `path`. Each client that is logged in may delete all sessions.
    pub(super) fn log_out(&mut self, path: &str) -> Reply {
        let number = path.rsplit('/').next().unwrap_or_default();
        let before = self.sessions.len();
        self.sessions.retain(|open| open.number.to_string() != number);
        if self.sessions.len() < before {
            return Reply::json(204, &[], "");
        }
        error(404, "Base.1.8.ResourceMissingAtURI", "The resource was not found.")
    }
}
