//! The requests by which etcd carries out a step of a change.

use std::time::Duration;

use super::look::{self, MembersSeen};
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Endpoint, Error};
use crate::decide::evidence::MemberId;
use crate::decide::members::MemberStep;
use crate::operate::members::source::Source;

/// Sends etcd the request for `step`. Times out after `limit`.
pub(super) fn ask(step: &MemberStep, seen: &MembersSeen, source: &Source, limit: Duration) -> Result<(), Error> {
    let credentials = &source.credentials;
    let voter = |except| voter(seen, source, except);
    match step {
        MemberStep::AddLearner(new) => blocking::add_learner(voter(None), credentials, &new.peer_url, limit),
        MemberStep::Promote(id) => blocking::promote_member(voter(None), credentials, *id, limit),
        MemberStep::Remove(id) => blocking::remove_member(voter(Some(*id)), credentials, *id, limit),
        // Only the leader itself can transfer leadership.
        MemberStep::MoveLeader { to } => blocking::move_leader(voter(None), credentials, *to, limit),
    }
}

/// Returns the endpoint of the leader, or of another healthy voter. Skips the member `except`, because a member that leaves is not asked.
pub(super) fn voter<'a>(seen: &'a MembersSeen, source: &'a Source, except: Option<MemberId>) -> &'a Endpoint {
    // The rules allow no step without a healthy voter, so the fallback is not reached.
    look::voter(seen, except).unwrap_or(&source.endpoints[0])
}
