//! The state of the BMC: its systems, their power over time, its logins, and the faults to come.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{Reply, Request, message};
use super::sessions::{Session, SessionsAre};
use super::system::System;

/// The way in which a request fails.
#[derive(Clone, Debug)]
pub enum Misbehaviour {
    /// A status with a body, and no other effect.
    Status(u16, String),
    StatusWith(u16, Vec<(&'static str, String)>, String),
    /// 200 with this body.
    Body(Vec<u8>),
    /// These bytes and the end.
    Raw(Vec<u8>),
    Reset,
    Close,
    Silence,
    /// Executes the request, and then resets the connection.
    DoneThenReset,
    /// Executes the request, and answers this late.
    Late(Duration),
    /// Accepts a reset (204) and does nothing.
    Ignored,
    /// Executes the request, and answers 202 with the URI of a task.
    AsTask,
    /// Sends one byte at a time.
    Drip(Duration),
    /// Sends header lines without end.
    EndlessHeader,
    /// Sends a body without end.
    EndlessBody,
    /// Sends this many bytes of JSON.
    Huge(usize),
    /// Refuses, and sends back the request with the password in every encoding.
    Echo(u16),
}

/// The URI of the only task.
pub const TASK: &str = "/redfish/v1/TaskService/Tasks/1";

/// The account service, in worlds that have one.
pub const ACCOUNTS: &str = "/redfish/v1/AccountService";

/// The URI of the sessions.
pub const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// A rule that makes requests fail.
#[derive(Clone, Debug)]
pub struct Fault {
    pub method: &'static str,
    /// A part of the path; an empty one fits all.
    pub path: &'static str,
    /// The number of fitting requests that succeed first.
    pub after: usize,
    /// The number of requests that fail then.
    pub count: usize,
    pub how: Misbehaviour,
}

impl Fault {
    pub fn always(method: &'static str, path: &'static str, how: Misbehaviour) -> Self {
        Self { method, path, after: 0, count: usize::MAX, how }
    }

    pub fn once(method: &'static str, path: &'static str, how: Misbehaviour) -> Self {
        Self { method, path, after: 0, count: 1, how }
    }

    pub fn times(mut self, count: usize) -> Self {
        self.count = count;
        self
    }

    pub fn after(mut self, after: usize) -> Self {
        self.after = after;
        self
    }
}

/// The supported ways to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Basic,
    /// Sessions only.
    Session,
    Both,
}

/// The way in which a new session reports its URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionSays {
    /// In the header `Location`, as the standard requires, and in the body.
    Header,
    Path,
    Id,
    /// An unusable header, and the path in the body.
    EmptyHeader,
    Nothing,
}

/// The BMC.
#[derive(Clone, Debug)]
pub struct World {
    pub systems: Vec<System>,
    pub faults: Vec<Fault>,
    pub access: Access,
    pub user: String,
    pub password: Vec<u8>,
    /// The number of refusals in a row after which the account is locked, if it can be.
    pub lock_after: Option<usize>,
    pub refused_in_a_row: usize,
    /// The highest number of refusals in a row so far.
    pub most_refused: usize,
    pub log: Vec<Request>,
    pub resets: Vec<String>,
    /// The open sessions.
    pub sessions: Vec<Session>,
    pub sessions_opened: usize,
    /// True if the service root needs no login, as the standard requires.
    pub root_is_open: bool,
    /// The host in the URI of a new session.
    pub own_name: &'static str,
    pub session_says: SessionSays,
    pub sessions_are: SessionsAre,
    /// True if the list of sessions accepts `$expand`. Otherwise it refuses that.
    pub expands: bool,
    /// The idle time after which a session ends, if it does.
    pub sessions_idle: Option<Duration>,
    /// The status for a reset without an `If-Match` of the system's state.
    pub wants_etag: Option<u16>,
    /// True if its states have weak names, which match nothing, so that only `*` works.
    pub weak_etags: bool,
    /// The name of its state in the header, the one in the body, and the one that matches.
    pub etags: Option<[&'static str; 3]>,
    /// The number of requests after which a connection is reset.
    pub answers_per_connection: usize,
    /// The BMC's clock in each answer about a system.
    pub date: Option<String>,
    /// Fixed resources, e.g. of a capture, which take precedence over the model.
    pub fixed: Vec<(String, String)>,
}

impl World {
    pub fn one_system() -> Self {
        Self::of(vec![System::new("1")])
    }

    pub fn of(systems: Vec<System>) -> Self {
        Self {
            systems,
            faults: Vec::new(),
            access: Access::Basic,
            user: "admin".to_owned(),
            password: b"s3cret-pass".to_vec(),
            lock_after: None,
            refused_in_a_row: 0,
            most_refused: 0,
            log: Vec::new(),
            resets: Vec::new(),
            sessions: Vec::new(),
            sessions_opened: 0,
            root_is_open: true,
            own_name: "",
            session_says: SessionSays::Header,
            sessions_are: SessionsAre::Shown,
            expands: true,
            sessions_idle: None,
            wants_etag: None,
            weak_etags: false,
            etags: None,
            answers_per_connection: usize::MAX,
            date: None,
            fixed: Vec::new(),
        }
    }

    pub fn with(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Adds an account service that shows the agent's account in this role.
    pub fn with_role(mut self, role: &str) -> Self {
        let list = format!("{ACCOUNTS}/Accounts");
        let own = format!("{list}/2");
        let link = |uri: &str| json!({"@odata.id": uri});
        self.fixed.extend([
            (ACCOUNTS.to_owned(), json!({"Accounts": link(&list)}).to_string()),
            (list.clone(), json!({"Members": [link(&format!("{list}/1")), link(&own)]}).to_string()),
            (format!("{list}/1"), json!({"UserName": "root", "RoleId": "Administrator"}).to_string()),
            (own, json!({"UserName": self.user, "RoleId": role}).to_string()),
        ]);
        self
    }

    /// Returns the system of a world that has exactly one.
    pub fn system(&mut self) -> &mut System {
        let system = &mut self.systems[0];
        system.settle();
        system
    }

    /// Answers a request, and applies all of its effects.
    pub fn answer(&mut self, request: &Request) -> Reply {
        self.log.push(request.clone());
        self.systems.iter_mut().for_each(System::settle);
        self.use_sessions(request);
        let fault = self.faults.iter_mut().find_map(|fault| {
            if fault.method != request.method || !request.path.contains(fault.path) {
                return None;
            }
            if fault.after > 0 {
                fault.after -= 1;
                return None;
            }
            (fault.count > 0).then(|| {
                fault.count = fault.count.saturating_sub(1);
                fault.how.clone()
            })
        });
        match fault {
            Some(how) => self.misbehave(request, how),
            None => self.behave(request),
        }
    }

    fn misbehave(&mut self, request: &Request, how: Misbehaviour) -> Reply {
        match how {
            Misbehaviour::Status(status, body) => Reply::json(status, &[], &body),
            Misbehaviour::StatusWith(status, headers, body) => {
                let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                Reply::json(status, &headers, &body)
            }
            Misbehaviour::Body(body) => Reply::Whole { bytes: message(200, &[], &body), close: false },
            Misbehaviour::Raw(bytes) => Reply::Whole { bytes, close: true },
            Misbehaviour::Reset => Reply::Reset,
            Misbehaviour::Close => Reply::Close,
            Misbehaviour::Silence => Reply::Silence,
            Misbehaviour::DoneThenReset => {
                self.behave(request);
                Reply::Reset
            }
            Misbehaviour::Late(after) => match self.behave(request) {
                Reply::Whole { bytes, .. } => Reply::Later { after, bytes },
                other => other,
            },
            Misbehaviour::Ignored => {
                self.note_reset(request);
                Reply::json(204, &[], "")
            }
            Misbehaviour::AsTask => {
                self.behave(request);
                Reply::json(202, &[("Location", TASK)], "")
            }
            Misbehaviour::Drip(every) => match self.behave(request) {
                Reply::Whole { bytes, .. } => Reply::Drip { bytes, every },
                other => other,
            },
            Misbehaviour::EndlessHeader => {
                Reply::Endless { head: b"HTTP/1.1 200 OK\r\n".to_vec(), chunk: b"X-More: and more\r\n".repeat(50) }
            }
            Misbehaviour::EndlessBody => Reply::Endless {
                head: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
                chunk: format!("400\r\n{}\r\n", "a".repeat(1024)).into_bytes(),
            },
            Misbehaviour::Echo(status) => {
                let words = format!(
                    "you sent {:?} with {}; the password is {} or {:?}",
                    request.headers,
                    String::from_utf8_lossy(&request.body),
                    String::from_utf8_lossy(&self.password),
                    String::from_utf8_lossy(&self.password)
                );
                let location = format!("/redfish/v1/{}", words.replace(' ', "/"));
                Reply::json(status, &[("X-Echo", "1"), ("Link", &location)], &error_body("Base.1.8.Echo", &words))
            }
            Misbehaviour::Huge(size) => {
                let body = format!("{{\"PowerState\":\"On\",\"x\":\"{}\"}}", "a".repeat(size));
                Reply::Whole { bytes: message(200, &[], body.as_bytes()), close: true }
            }
        }
    }

    fn behave(&mut self, request: &Request) -> Reply {
        let path = request.path.trim_end_matches('/').to_owned();
        if path == SESSIONS && request.method == "POST" {
            return self.log_in(request);
        }
        let open_to_all = path == "/redfish/v1" && self.root_is_open;
        if !open_to_all && !self.lets_in(request) {
            return error(401, "Base.1.8.NoValidSession", "There is no valid session established.");
        }
        if let Some((_, body)) = self.fixed.iter().find(|(uri, _)| *uri == path).filter(|_| request.method == "GET") {
            return Reply::json(200, &[], body);
        }
        match (request.method.as_str(), path.as_str()) {
            ("GET", "/redfish/v1") => Reply::json(200, &[], &self.root().to_string()),
            ("GET", "/redfish/v1/Systems") => {
                let members: Vec<Value> =
                    self.systems.iter().map(|system| json!({"@odata.id": system.uri()})).collect();
                Reply::json(200, &[], &json!({"Members": members, "Members@odata.count": members.len()}).to_string())
            }
            ("GET", path) if path.starts_with(SESSIONS) && self.access != Access::Basic => self.show_sessions(request),
            ("PATCH", _) => self.patch_account(request, &path),
            ("GET", _) => self.resource(&path),
            ("POST", _) => self.reset(request, &path),
            ("DELETE", _) => self.log_out(&path),
            _ => error(405, "Base.1.8.OperationNotAllowed", "Not allowed."),
        }
    }

    fn root(&self) -> Value {
        let mut root = json!({"Systems": {"@odata.id": "/redfish/v1/Systems"}, "RedfishVersion": "1.8.0"});
        if self.fixed.iter().any(|(uri, _)| uri == ACCOUNTS) {
            root["AccountService"] = json!({"@odata.id": ACCOUNTS});
        }
        if self.access != Access::Basic {
            root["Links"] = json!({"Sessions": {"@odata.id": SESSIONS}});
        }
        root
    }

    fn resource(&self, path: &str) -> Reply {
        let system = self.systems.iter().find(|system| path.starts_with(&system.uri()));
        match system {
            Some(system) if path == system.uri() => {
                let (mut etag, date) = (system.etag(), self.date.as_deref());
                let mut document = system.document();
                if let Some([in_header, in_body, _]) = self.etags {
                    in_header.clone_into(&mut etag);
                    document["@odata.etag"] = json!(in_body);
                }
                let date = date.map(|date| ("Date", date));
                let headers: Vec<_> = [("ETag", etag.as_str())].into_iter().chain(date).collect();
                Reply::json(200, &headers, &document.to_string())
            }
            Some(system) if path.ends_with("/ResetActionInfo") && system.action_info.is_some() => {
                let values = json!({"Parameters": [{"Name": "ResetType", "AllowableValues": system.action_info}]});
                Reply::json(200, &[], &values.to_string())
            }
            _ => error(404, "Base.1.8.ResourceMissingAtURI", "The resource was not found."),
        }
    }

    fn note_reset(&mut self, request: &Request) -> String {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let reset_type = body["ResetType"].as_str().unwrap_or("(none)").to_owned();
        self.resets.push(reset_type.clone());
        reset_type
    }

    fn reset(&mut self, request: &Request, path: &str) -> Reply {
        let reset_type = self.note_reset(request);
        let Some(system) =
            self.systems.iter_mut().find(|system| path == format!("{}/Actions/ComputerSystem.Reset", system.uri()))
        else {
            return error(404, "Base.1.8.ResourceMissingAtURI", "The resource was not found.");
        };
        let state = match self.etags {
            Some([.., fits]) => fits.to_owned(),
            None if self.weak_etags => "*".to_owned(),
            None => system.etag(),
        };
        if let Some(status) = self.wants_etag.filter(|_| request.header("If-Match") != Some(state.as_str())) {
            return Reply::json(status, &[], "{}");
        }
        if let Some((status, body)) =
            system.refuses_when_off.clone().filter(|_| system.says() == "Off" && reset_type == "ForceOff")
        {
            return Reply::json(status, &[], &body);
        }
        if system.refuses.contains(&reset_type.as_str()) || !system.reset(&reset_type) {
            return error(400, "Base.1.8.ActionParameterValueNotInList", "The value is not in the list.");
        }
        Reply::json(204, &[], "")
    }

    pub(super) fn is_basic(&self, request: &Request) -> bool {
        use base64::Engine as _;
        let mut both = format!("{}:", self.user).into_bytes();
        both.extend_from_slice(&self.password);
        let expected = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(both));
        request.header("Authorization") == Some(expected.as_str())
    }
}

/// Returns an error in the standard's format.
pub fn error_body(id: &str, words: &str) -> String {
    json!({"error": {"code": "Base.1.8.GeneralError", "message": "A general error has occurred.",
        "@Message.ExtendedInfo": [{"MessageId": id, "Message": words, "Severity": "Critical"}]}})
    .to_string()
}

pub(super) fn error(status: u16, id: &str, words: &str) -> Reply {
    Reply::json(status, &[], &error_body(id, words))
}
