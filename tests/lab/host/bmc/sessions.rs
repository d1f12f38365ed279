//! The sessions of each BMC. Each login opens one, each client with a login sees all, and they survive a power cut of
//! the host.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::{Reply, Request, accounts};
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

const SERVICE: &str = "/redfish/v1/SessionService";
const LIST: &str = "/redfish/v1/SessionService/Sessions";
/// The number of open sessions after which a BMC refuses a new one, as some real BMCs do.
const MOST: usize = 16;
static SESSIONS: Mutex<Vec<Session>> = Mutex::new(Vec::new());

struct Session {
    of: Node,
    number: u64,
    token: String,
    user: String,
    context: Option<String>,
    origin: String,
}

fn setting(node: Node) -> String {
    format!("bmc-sessions-{node}")
}

/// Sets whether a BMC has a Redfish session service. By default it has.
pub fn set_taken(lab: &Lab, node: Node, taken: bool) -> Result<()> {
    lab.set(&setting(node), if taken { "yes" } else { "no" })
}

fn are_taken(lab: &Lab, node: Node) -> bool {
    lab.setting(&setting(node)).is_none_or(|word| word == "yes")
}

/// Returns whether the request has the token of an open session.
pub(super) fn lets_in(node: Node, request: &Request) -> bool {
    let sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    sessions.iter().any(|session| session.of == node && session.token == request.token)
}

/// Answers a request for the Redfish session service. Returns `None` for any other request, and if the BMC has no
/// such service. A login needs no credentials other than those in its body.
pub(super) fn answer(lab: &Lab, node: Node, request: &Request, path: &str) -> Option<Reply> {
    if !path.starts_with(SERVICE) || !are_taken(lab, node) {
        return None;
    }
    let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let link = |uri: &str| json!({ "@odata.id": uri });
    Some(match (request.method.as_str(), path) {
        ("POST", LIST) => return Some(open(lab, node, request, &mut sessions)),
        ("GET", SERVICE) => Reply::json(json!({ "@odata.id": SERVICE, "Sessions": link(LIST) })),
        ("GET", LIST) => {
            let members: Vec<_> =
                sessions.iter().filter(|session| session.of == node).map(|session| link(&session.path())).collect();
            Reply::json(json!({ "@odata.id": LIST, "Members@odata.count": members.len(), "Members": members }))
        }
        (method, path) => {
            let found = sessions.iter().position(|session| session.of == node && session.path() == path)?;
            match method {
                "GET" => Reply::json(sessions[found].describe()),
                "DELETE" => {
                    sessions.remove(found);
                    Reply::new(204, None)
                }
                _ => Reply::error(405, "this method is not allowed here"),
            }
        }
    })
}

/// Returns whether a request is the login that opens a Redfish session.
pub(super) fn is_login(request: &Request, path: &str) -> bool {
    request.method == "POST" && path == LIST
}

fn open(lab: &Lab, node: Node, request: &Request, sessions: &mut Vec<Session>) -> Reply {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let user = text("UserName");
    if !accounts::knows(lab, node, &user, &text("Password")) {
        return Reply::error(401, "the user name or password is wrong");
    }
    if sessions.iter().filter(|session| session.of == node).count() >= MOST {
        return Reply::error(400, "there are too many sessions");
    }
    let number = sessions.last().map_or(1, |last| last.number + 1);
    let context = Some(text("Context")).filter(|context| !context.is_empty());
    let token = format!("{node}-{number}-{}", std::process::id());
    let session = Session { of: node, number, token, user, context, origin: request.origin.clone() };
    let headers = vec![("X-Auth-Token", session.token.clone()), ("Location", session.path())];
    let reply = Reply { headers, ..Reply::new(201, Some(session.describe())) };
    sessions.push(session);
    reply
}

impl Session {
    fn path(&self) -> String {
        format!("{LIST}/{}", self.number)
    }

    fn describe(&self) -> Value {
        json!({
            "@odata.id": self.path(), "@odata.type": "#Session.v1_5_0.Session", "Id": self.number.to_string(), "Name": "Session",
            "UserName": self.user, "Context": self.context, "ClientOriginIPAddress": self.origin,
        })
    }
}
