//! The account of a BMC: whether a login is accepted, the lock after some refusals in a row, and the password, which a
//! logged-in client may change.

use serde_json::Value;

use super::http::{Reply, Request};
use super::model::{ACCOUNTS, Access, World, error};

impl World {
    /// Returns a BMC that locks its accounts after three refusals in a row. It has an account service, with the agent's account in it.
    pub fn that_locks() -> Self {
        Self { lock_after: Some(3), ..Self::one_system() }.with_role("Administrator")
    }

    /// Returns whether three refused logins in a row have locked the account. Nothing unlocks it.
    pub fn is_locked(&self) -> bool {
        self.lock_after.is_some_and(|after| self.most_refused >= after)
    }

    pub(super) fn lets_in(&mut self, request: &Request) -> bool {
        if let Some(token) = request.header("X-Auth-Token") {
            return self.sessions.iter().any(|session| session.token == token);
        }
        // Without basic authentication, the BMC does not check the password.
        if request.header("Authorization").is_none() || self.access == Access::Session {
            return false;
        }
        let is_right = self.is_basic(request);
        self.counted(is_right)
    }

    /// Returns whether the BMC accepts a login. `is_right` is true if the password is right. Counts a refused login.
    pub(super) fn counted(&mut self, is_right: bool) -> bool {
        if is_right && !self.is_locked() {
            self.refused_in_a_row = 0;
            return true;
        }
        self.refused_in_a_row += 1;
        self.most_refused = self.most_refused.max(self.refused_in_a_row);
        false
    }

    pub(super) fn patch_account(&mut self, request: &Request, path: &str) -> Reply {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        match body["Password"].as_str() {
            Some(new) if path == format!("{ACCOUNTS}/Accounts/2") => {
                self.password = new.as_bytes().to_vec();
                Reply::json(204, &[], "")
            }
            _ => error(404, "Base.1.8.ResourceMissingAtURI", "The resource was not found."),
        }
    }
}
