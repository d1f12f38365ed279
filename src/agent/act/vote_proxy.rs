//! Casts the vote of a member that is off, and logs the duration of each step.

use super::Error;
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::peer::{self, Wish};
use crate::adapters::pace::Question;
use crate::agent::resource::context::Context;
use crate::decide::plan::DeadVote;
use crate::os::clock::Deadline;

/// Runs the vote proxy (which votes in place of a dead member). A failure does not end the action: the next observation finds no leader,
/// and etcd is restarted.
pub(super) fn vote_proxy(context: &Context, vote: &DeadVote) -> Result<(), Error> {
    let DeadVote { dead, member_id, cluster_id, term, applied } = *vote;
    let wish = Wish { cluster_id, me: member_id, dead, term, applied };
    let pace = context.programs.pace();
    let time = Deadline::after(pace.limit(Question::VoteProxy));
    match peer::vote_proxy(&context.peer_place(), &wish, time.budget()) {
        Ok(taken) => {
            pace.answered(Question::VoteProxy, time.elapsed());
            log::info!("the vote of member {dead:x} was cast: {taken}");
        }
        Err(given_up) => {
            if time.has_passed() {
                pace.too_late(Question::VoteProxy, time.elapsed());
            }
            log::warn!("the vote of member {dead:x} was not cast or had no effect: {given_up}");
            return Ok(());
        }
    }
    context.probe_own_etcd(Question::Proof, blocking::confirmed_read)?;
    // etcd records that the removal is committed with the next entry of its log. Without that entry, a kill would bring
    // the dead voter back. A query for alarms makes one, which even a full database accepts.
    Ok(context.probe_own_etcd(Question::Proof, blocking::committed_entry)?)
}
