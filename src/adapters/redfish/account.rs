//! The BMC account that the agent logs in with: its role, whether the role may reset a system, and a change of its password. Only
//! the operator's commands use it, and no action of the fence agent does.

use serde_json::{Value, json};
use zeroize::Zeroize as _;

use super::discovery;
use super::failure::{Failure, FailureKind};
use super::request::{Credentials, Request};
use super::resource::{self, Page};
use super::service::Service;
use crate::adapters::https::address::Location;
use crate::os::secret::Secret;

/// The greatest number of accounts of a BMC that are read. BMCs have at most sixteen.
const ACCOUNTS: usize = 16;
/// The privilege that an account needs to reset a system, by the standard's registry.
const TO_RESET: &str = "ConfigureComponents";
/// The standard's roles, and whether each may reset a system. They are used for a BMC that does not show its roles.
const ROLES: &[(&str, bool)] = &[("Administrator", true), ("Operator", true), ("ReadOnly", false)];

/// The BMC account that the agent logs in with, as far as the BMC shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub role: String,
    /// True if the account may reset a system; `None` if the BMC shows neither the role's privileges nor a known role.
    pub may_reset: Option<bool>,
    /// True if the BMC has locked the account at present.
    pub locked: bool,
}

/// Returns the account that the agent logs in with. Fails if the BMC shows no accounts to this user.
pub(super) fn own(service: &mut Service, redfish_uri: &str) -> Result<Account, Failure> {
    let (place, account) =
        find(service, redfish_uri).map_err(|failure| named(failure, "the BMC does not tell the account's role"))?;
    let role = match account.pointer("/Links/Role").and_then(|role| role.get("@odata.id")).and_then(Value::as_str) {
        Some(link) => service.follow(&place, link).and_then(|place| service.get(&place)).ok(),
        None => None,
    };
    Ok(read(&account, role.as_ref()))
}

/// Changes the password of the account that the agent logs in with, by a PATCH with only the password, as the standard defines. Sends the
/// request only once. If the BMC's answer is lost, a later login shows whether the BMC has changed the password.
pub(super) fn change_password(service: &mut Service, redfish_uri: &str, new: &Secret) -> Result<(), Failure> {
    let new = std::str::from_utf8(new.reveal()).map_err(|_| {
        Failure::new(FailureKind::Refused, "a BMC is given a password in UTF-8, and the new one is not")
    })?;
    let (place, account) =
        find(service, redfish_uri).map_err(|failure| named(failure, "the password cannot be changed there"))?;
    let mut body = json!({ "Password": new });
    let answer = {
        let ask = Request { fresh: true, ..Request::patch(&place, &body, &Credentials::None) };
        service.send_for_any_state(ask, &resource::etags(&account))
    };
    if let Some(Value::String(password)) = body.get_mut("Password") {
        password.zeroize();
    }
    answer.map(drop)
}

/// Finds the account that the agent logs in with among the accounts that the BMC shows. Returns its location and its contents.
fn find(service: &mut Service, redfish_uri: &str) -> Result<(Location, Value), Failure> {
    let (root, document) = discovery::service_root(service, redfish_uri)?;
    let link = resource::link(&document, "AccountService").ok_or_else(|| missing("it has no AccountService"))?;
    let place = service.follow(&root, &link)?;
    let accounts = service.get(&place)?;
    let link = resource::link(&accounts, "Accounts").ok_or_else(|| missing("its AccountService has no Accounts"))?;
    let place = service.follow(&place, &link)?;
    let page = Page::read(&service.get(&place)?).map_err(|why| missing(&format!("its list of accounts {why}")))?;
    for member in page.members.iter().take(ACCOUNTS) {
        let place = service.follow(&place, member)?;
        // Most services show an account without administrator rights only its own entry.
        let Ok(account) = service.get(&place) else { continue };
        if account.get("UserName").and_then(Value::as_str) == Some(service.user()) {
            return Ok((place, account));
        }
    }
    Err(missing("it shows no account of that name"))
}

fn missing(why: &str) -> Failure {
    Failure::new(FailureKind::Missing, why.to_owned())
}

/// Puts `what`, the consequence of a failed search for an account, in front of the failure's text.
fn named(failure: Failure, what: &str) -> Failure {
    match failure.kind {
        FailureKind::Missing => Failure { text: format!("{what}: {failure}"), ..failure },
        _ => failure,
    }
}

/// Reads an account from its resource, and from the resource of its role if that could be read.
fn read(account: &Value, role: Option<&Value>) -> Account {
    let named = account.get("RoleId").and_then(Value::as_str);
    let name = named.or_else(|| role?.get("Id")?.as_str()).unwrap_or("?").to_owned();
    let privileges = role.and_then(|role| role.get("AssignedPrivileges")).and_then(Value::as_array);
    let by_privilege = privileges.map(|list| list.iter().any(|one| one == TO_RESET));
    let by_name = || ROLES.iter().find(|(known, _)| *known == name).map(|(_, may)| *may);
    Account {
        may_reset: by_privilege.or_else(by_name),
        role: name,
        locked: account.get("Locked").and_then(Value::as_bool) == Some(true),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_role_is_judged_by_its_privileges_and_else_by_its_name() {
        let may = |account: Value, role: Option<Value>| read(&account, role.as_ref()).may_reset;
        assert_eq!(may(json!({"RoleId": "ReadOnly"}), None), Some(false));
        assert_eq!(may(json!({"RoleId": "Operator"}), None), Some(true));
        assert_eq!(may(json!({"RoleId": "Fencing"}), None), None);
        let fencing = json!({"Id": "Fencing", "AssignedPrivileges": ["Login", "ConfigureComponents"]});
        assert_eq!(may(json!({"RoleId": "Fencing"}), Some(fencing.clone())), Some(true));
        assert_eq!(may(json!({}), Some(fencing)), Some(true));
        let less = json!({"Id": "Administrator", "AssignedPrivileges": ["Login"]});
        assert_eq!(
            may(json!({"RoleId": "Administrator"}), Some(less)),
            Some(false),
            "what it may counts, not its name"
        );
        assert_eq!(may(json!(7), Some(json!(null))), None);
        assert!(read(&json!({"Locked": true}), None).locked);
    }
}
