//! The account of each BMC. Any client with its password may change the password. A scenario can enable a lock after
//! three refusals in a row.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::{Reply, Request, base64};
use crate::host::node::{BMC_PASSWORD, BMC_USER, Node};
use crate::host::state::Lab;
use crate::sh::Result;

const SERVICE: &str = "/redfish/v1/AccountService";
/// The number of refused logins in a row after which a BMC locks its accounts.
const LOCKED_AFTER: usize = 3;
/// The lock under which a BMC counts refused logins, so that parallel logins are counted one after the other.
static COUNTING: Mutex<()> = Mutex::new(());

fn name_of(what: &str, node: Node) -> String {
    format!("bmc-{what}-{node}")
}

/// Returns the password that a node's BMC accepts.
pub fn password(lab: &Lab, node: Node) -> String {
    lab.setting(&name_of("password", node)).unwrap_or_else(|| BMC_PASSWORD.to_owned())
}

/// Sets the password of a node's BMC, as an administrator does on the BMC's web page.
pub fn set_password(lab: &Lab, node: Node, password: &str) -> Result<()> {
    lab.set(&name_of("password", node), password)
}

/// The names of the additional accounts that a BMC can have.
pub const USERS: [&str; 2] = ["fencer", "other"];

/// Gives the BMC's account `user`, one of [`USERS`], this password. Other accounts stay.
pub fn set_account(lab: &Lab, node: Node, user: &str, password: &str) -> Result<()> {
    lab.set(&name_of(user, node), &format!("{user}:{password}"))
}

/// Sets whether the BMC locks its accounts after three refused logins in a row. By default it does not.
pub fn set_locks(lab: &Lab, node: Node, locks: bool) -> Result<()> {
    lab.set(&name_of("refused", node), "0")?;
    lab.set(&name_of("locks", node), if locks { "yes" } else { "no" })
}

pub fn is_locked(lab: &Lab, node: Node) -> bool {
    let locks = lab.setting(&name_of("locks", node)).is_some_and(|said| said == "yes");
    locks && refused(lab, node) >= LOCKED_AFTER
}

fn refused(lab: &Lab, node: Node) -> usize {
    lab.setting(&name_of("refused", node)).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns whether the BMC accepts the user and password in a request's header. A refusal counts towards the lock of
/// the accounts.
pub(super) fn lets_in(lab: &Lab, node: Node, request: &Request) -> bool {
    let shows = |account: &str| request.authorization == format!("Basic {}", base64(account.as_bytes()));
    is_right(lab, node, shows)
}

/// Returns whether the BMC accepts a user and a password. A refusal counts towards the lock of the accounts.
pub(super) fn knows(lab: &Lab, node: Node, user: &str, password: &str) -> bool {
    is_right(lab, node, |account| account == format!("{user}:{password}"))
}

fn is_right(lab: &Lab, node: Node, shows: impl Fn(&str) -> bool) -> bool {
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let first = format!("{BMC_USER}:{}", password(lab, node));
    let others = USERS.iter().filter_map(|user| lab.setting(&name_of(user, node)));
    let is_right = others.chain([first]).any(|account| shows(&account)) && !is_locked(lab, node);
    let count = if is_right { 0 } else { refused(lab, node) + 1 };
    if count != refused(lab, node) && lab.set(&name_of("refused", node), &count.to_string()).is_err() {
        return false;
    }
    is_right
}

/// Answers a request for the Redfish account service. Returns `None` for any other request.
pub(super) fn answer(lab: &Lab, node: Node, request: &Request, path: &str) -> Option<Reply> {
    let (list, own) = (format!("{SERVICE}/Accounts"), format!("{SERVICE}/Accounts/1"));
    let link = |uri: &str| json!({ "@odata.id": uri });
    Some(match (request.method.as_str(), path) {
        ("GET", SERVICE) => Reply::json(json!({ "@odata.id": SERVICE, "Accounts": link(&list) })),
        ("GET", p) if p == list => Reply::json(json!({ "@odata.id": list, "Members": [link(&own)] })),
        ("GET", p) if p == own => {
            Reply::json(json!({ "@odata.id": own, "UserName": BMC_USER, "RoleId": "Administrator", "Locked": false }))
        }
        ("PATCH", p) if p == own => {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            match body.get("Password").and_then(Value::as_str).map(|new| set_password(lab, node, new)) {
                Some(Ok(())) => Reply::new(204, None),
                _ => Reply::error(400, "the body has no Password"),
            }
        }
        _ => return None,
    })
}
