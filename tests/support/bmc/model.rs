//! The state of the BMC: its systems, their power over time, its logins, and the faults to come.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{Reply, Request, message};
use super::sessions::{Session, SessionsAre};
use super::system::System;

/// The way in which the emulated BMC fails a request.
#[derive(Clone, Debug)]
pub enum Misbehaviour {
    /// The BMC answers with this status and body, and does nothing else.
    Status(u16, String),
    StatusWith(u16, Vec<(&'static str, String)>, String),
    /// The BMC answers 200 with this body.
    Body(Vec<u8>),
    /// The BMC sends these bytes, and closes the connection.
    Raw(Vec<u8>),
    Reset,
    Close,
    Silence,
    /// The BMC performs the request, and then resets the connection without an answer.
    DoneThenReset,
    /// The BMC performs the request, and answers after this time.
    Late(Duration),
    /// The BMC accepts a reset (204), and does nothing.
    Ignored,
    /// The BMC performs the request, and answers 202 with the URI of a task.
    AsTask,
    /// The BMC sends the answer one byte at a time, with this pause between the bytes.
    Drip(Duration),
    /// The BMC sends header lines without end.
    EndlessHeader,
    /// The BMC sends a body without end.
    EndlessBody,
    /// The BMC sends a JSON body of this many bytes.
    Huge(usize),
    /// The BMC refuses with this status. The body contains the request, with the password in every encoding.
    Echo(u16),
}

/// The URI of the only task that the emulated BMC has.
pub const TASK: &str = "/redfish/v1/TaskService/Tasks/1";

/// The URI of the account service. Not every emulated BMC has one.
pub const ACCOUNTS: &str = "/redfish/v1/AccountService";

/// The URI of the list of sessions.
pub const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// A rule by which the emulated BMC fails some requests.
#[derive(Clone, Debug)]
pub struct Fault {
    pub method: &'static str,
    /// A part of the path of the requests that fail. An empty one fits every path.
    pub path: &'static str,
    /// The number of requests that fit the rule and succeed before any fails.
    pub after: usize,
    /// The number of requests that fail after those that succeed.
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

/// The ways to log in that the emulated BMC supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Basic,
    /// The BMC supports sessions, and no basic authentication.
    Session,
    Both,
}

/// The place in which the answer to a login has the URI of the new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionSays {
    /// The session's URI is in the header `Location`, as the standard requires. It is in the body, too.
    Header,
    Path,
    Id,
    /// The header `Location` is empty, and the URI's path is in the body.
    EmptyHeader,
    Nothing,
}

/// The state of an emulated BMC, with its options.
#[derive(Clone, Debug)]
pub struct World {
    pub systems: Vec<System>,
    pub faults: Vec<Fault>,
    pub access: Access,
    pub user: String,
    pub password: Vec<u8>,
    /// The number of refused logins in a row that locks the account. `None` if nothing locks it.
    pub lock_after: Option<usize>,
    pub refused_in_a_row: usize,
    /// The largest number of refused logins in a row so far.
    pub most_refused: usize,
    pub log: Vec<Request>,
    pub resets: Vec<String>,
    /// The sessions that are open on the BMC.
    pub sessions: Vec<Session>,
    pub sessions_opened: usize,
    /// True if the service root can be read without a login, as the standard requires.
    pub root_is_open: bool,
    /// The scheme and host that precede the path in the URI of a new session. May be empty.
    pub own_name: &'static str,
    pub session_says: SessionSays,
    pub sessions_are: SessionsAre,
    /// True if the list of sessions supports the query `$expand`. Otherwise the BMC refuses that query.
    pub expands: bool,
    /// The idle time after which the BMC ends a session. `None` if it ends none.
    pub sessions_idle: Option<Duration>,
    /// The status with which the BMC refuses a reset without the right `If-Match`. `None` if it needs no `If-Match`.
    pub wants_etag: Option<u16>,
    /// True if the ETags of the BMC's systems are weak. They match nothing, so that only `*` works in `If-Match`.
    pub weak_etags: bool,
    /// The ETag of a system in the header, the one in the body, and the one that matches in `If-Match`. `None` if all
    /// are equal.
    pub etags: Option<[&'static str; 3]>,
    /// The number of answers on one connection after which the BMC resets it.
    pub answers_per_connection: usize,
    /// The value of the header `Date` in each answer about a system. `None` omits the header.
    pub date: Option<String>,
    /// Resources with a fixed body, such as those of a captured BMC, by URI. They take precedence over the emulated
    /// ones.
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

    /// Adds an account service to the BMC, in which the fence agent's account has this role.
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

    /// Returns the only system of the BMC, after the power changes that are due.
    pub fn system(&mut self) -> &mut System {
        let system = &mut self.systems[0];
        system.settle();
        system
    }

    /// Answers a request, and applies its effects on the BMC's state.
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

/// Returns the body of an error in Redfish's format.
pub fn error_body(id: &str, words: &str) -> String {
    json!({"error": {"code": "Base.1.8.GeneralError", "message": "A general error has occurred.",
        "@Message.ExtendedInfo": [{"MessageId": id, "Message": words, "Severity": "Critical"}]}})
    .to_string()
}

pub(super) fn error(status: u16, id: &str, words: &str) -> Reply {
    Reply::json(status, &[], &error_body(id, words))
}
