//! Casts the vote of a member that is off, and says how long each step took.

use std::time::Duration;

use super::Error;
use crate::decide::plan::DeadVote;
use crate::etcd::blocking;
use crate::etcd::client;
use crate::etcd::peer::{self, Wish};
use crate::resource::context::Context;

/// How long it may take in all; a tenth of that is much.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How long our etcd has to confirm a read, and to take a write, once it is the only voter.
const PROOF_TIMEOUT: Duration = Duration::from_secs(2);

/// A vote that is not cast, or in vain, is no failure: the next look finds no leader, and the restart follows.
pub(super) fn stand_in(context: &Context, vote: &DeadVote) -> Result<(), Error> {
    let DeadVote { dead, member_id, cluster_id, term, applied } = *vote;
    let wish = Wish { cluster_id, me: member_id, dead, term, applied };
    match peer::stand_in(&context.peer_place(), &wish, context.deadline.at_most(TIMEOUT)) {
        Ok(taken) => log::info!("voted in the place of member {dead:x}: {taken}"),
        Err(given_up) => {
            log::warn!("the vote of member {dead:x} is not cast, or in vain: {given_up}");
            return Ok(());
        }
    }
    let proof = || context.deadline.at_most(PROOF_TIMEOUT);
    proven(blocking::confirmed_read(&context.own_endpoint, context.credentials(), proof()))?;
    // etcd writes down that the removal is committed with the next write: before that a kill would bring the dead voter back.
    proven(blocking::accepted_write(&context.own_endpoint, context.credentials(), proof()))
}

/// Whoever may not ask is told so by a majority.
fn proven(answer: Result<(), client::Error>) -> Result<(), Error> {
    match answer {
        Ok(()) | Err(client::Error::NoPermission { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
