//! A step of a change, as etcd is asked for it.

use std::time::Duration;

use super::look::{self, MembersSeen};
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Endpoint, Error};
use crate::decide::evidence::MemberId;
use crate::decide::members::MemberStep;
use crate::operate::members::source::Source;

/// Asks for `step`, for at most `limit`.
pub(super) fn ask(step: &MemberStep, seen: &MembersSeen, source: &Source, limit: Duration) -> Result<(), Error> {
    let credentials = &source.credentials;
    let voter = |except| voter(seen, source, except);
    match step {
        MemberStep::AddLearner(new) => blocking::add_learner(voter(None), credentials, &new.peer_url, limit),
        MemberStep::Promote(id) => blocking::promote_member(voter(None), credentials, *id, limit),
        MemberStep::Remove(id) => blocking::remove_member(voter(Some(*id)), credentials, *id, limit),
        // Only the leader itself hands over.
        MemberStep::MoveLeader { to } => blocking::move_leader(voter(None), credentials, *to, limit),
    }
}

/// The leader, or else another healthy voter, but not the one that goes.
pub(super) fn voter<'a>(seen: &'a MembersSeen, source: &'a Source, except: Option<MemberId>) -> &'a Endpoint {
    // Without a healthy voter no step is allowed.
    look::voter(seen, except).unwrap_or(&source.endpoints[0])
}
