//! Who is let in, and for how long: an account that is locked after some refusals in a row, and its password, which whoever is
//! let in may change.

use serde_json::Value;

use super::http::{Reply, Request};
use super::model::{ACCOUNTS, Access, World, error};

impl World {
    /// One whose accounts are locked after three refusals in a row, and that shows ours.
    pub fn that_locks() -> Self {
        Self { lock_after: Some(3), ..Self::one_system() }.with_role("Administrator")
    }

    /// Whether three refusals in a row have shut our account out; nobody unlocks it.
    pub fn is_locked(&self) -> bool {
        self.lock_after.is_some_and(|after| self.most_refused >= after)
    }

    pub(super) fn lets_in(&mut self, request: &Request) -> bool {
        if let Some(token) = request.header("X-Auth-Token") {
            return self.sessions.iter().any(|session| session.token == token);
        }
        // Where basic authentication is off, nobody looks at the password.
        if request.header("Authorization").is_none() || self.access == Access::Session {
            return false;
        }
        let is_right = self.is_basic(request);
        self.counted(is_right)
    }

    /// Whether who shows the right password, or a wrong one, is let in.
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
