//! The last removed member, as a key in its etcd. It distinguishes a repeated command from a mistyped name.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::decide::evidence::MemberId;
use crate::decide::members::Member;

const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Removed {
    pub(super) id: MemberId,
    /// All names by which an operator may name the removed member: the typed name, its id, its etcd name and its peer URLs.
    names: Vec<String>,
    /// The peer URL of the member that replaces the removed one; `None` for a plain removal.
    new: Option<String>,
}

impl Removed {
    pub(super) fn of(member: &Member, typed: &str, new: Option<&str>) -> Self {
        let id = format!("{:x}", member.id);
        let own = [typed.to_owned(), id].into_iter().chain(Some(member.name.clone()).filter(|name| !name.is_empty()));
        Self { id: member.id, names: own.chain(member.peer_urls.clone()).collect(), new: new.map(str::to_owned) }
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    pub(super) fn is_replaced_by(&self, peer_url: &str) -> bool {
        self.new.as_deref() == Some(peer_url)
    }

    /// Writes the record of a removal to etcd before the member is removed. If the write fails, the removal continues, but a repeated
    /// command will be refused.
    pub(super) fn note(&self, endpoint: &Endpoint, credentials: &Credentials) {
        let text = serde_json::to_string(self).unwrap_or_default();
        if let Err(error) = blocking::note_removal(endpoint, credentials, &text, PATIENCE) {
            log::warn!("the removal of member {:x} cannot be recorded: {error}", self.id);
        }
    }

    /// Reads the record of the last removed member through the first of `endpoints` that answers. Returns `None` if it is missing or
    /// unreadable.
    pub(super) fn last(endpoints: &[Endpoint], credentials: &Credentials) -> Option<Self> {
        let read = |endpoint| blocking::last_removal(endpoint, credentials, PATIENCE).ok();
        serde_json::from_slice(&endpoints.iter().find_map(read)??).ok()
    }
}
