//! The state of our etcd without a leader: its client port reports its term, its peer port the rest.

use crate::adapters::etcd::client::{Answer, Error};
use crate::adapters::etcd::peer;
use crate::adapters::pace::Question;
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::{BootState, Cib, Leaderless, PeerNode, Recovery};

/// Queries the peer port of an etcd without a leader in two cases.
///
/// In the first case, Pacemaker reports the peer as off, so that a vote proxy may vote in its place. The peer port's answer lists the
/// voters, and so shows which one is dead.
///
/// In the second case, etcd ran as a voter in this boot. Its cluster may have more than two voters. With the answer, an etcd that waits for
/// a majority of them does not count as one that hangs.
pub(super) fn observe(context: &Context, own: &Answer, cib: &Fact<Cib>, memory: &Fact<BootState>) -> Fact<Leaderless> {
    let is_off = cib.known().is_some_and(|cib| cib.peer_machine() == PeerNode::Down);
    let is_led = own.etcd.known().is_some_and(|etcd| etcd.leader.is_some());
    let was_a_voter = memory.known().is_some_and(|memory| memory.voter.is_some());
    let is_of_use = was_a_voter || is_off && context.params.recovery != Recovery::Restart;
    if !is_of_use || is_led || own.etcd.is_absent() {
        return Fact::NotAsked;
    }
    let Some(raft) = own.leaderless else { return Fact::Unknown(own.etcd.why_unknown().to_owned()) };
    let place = context.peer_place();
    let look = |timeout| peer::look(&place, timeout);
    match context.programs.pace().within(Question::OwnPeerPort, look, Error::is_too_late) {
        Ok(seen) if seen.cluster_id == raft.cluster_id => Fact::Known(Leaderless {
            cluster_id: raft.cluster_id,
            member_id: raft.member_id,
            term: raft.term,
            applied: raft.applied,
            version: seen.version,
            members: seen.members,
        }),
        Ok(seen) => Fact::Unknown(format!("its peer port is of cluster {:x}", seen.cluster_id)),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}
