//! What our etcd tells without a leader: its client port tells its term, its peer port the rest.

use crate::adapters::etcd::client::{Answer, Error};
use crate::adapters::etcd::peer;
use crate::adapters::pace::Question;
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::{BootState, Cib, Leaderless, PeerNode, Recovery};

/// Asked where a vote proxy may vote: while Pacemaker says that the peer is off; and of a voter that was not the only one. Three may vote by
/// now, although this boot does not remember that yet, and one that waits for a majority is not to be taken for one that hangs.
pub(super) fn observe(context: &Context, own: &Answer, cib: &Fact<Cib>, memory: &Fact<BootState>) -> Fact<Leaderless> {
    let is_off = cib.known().is_some_and(|cib| cib.peer_machine() == PeerNode::Down);
    let is_led = own.etcd.known().is_some_and(|etcd| etcd.leader.is_some());
    let voter = memory.known().and_then(|memory| memory.voter.as_ref());
    let is_of_use = voter.is_some_and(|voter| !voter.sole) || is_off && context.params.recovery != Recovery::Restart;
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
