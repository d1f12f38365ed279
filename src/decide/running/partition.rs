//! Only etcd's network parts: two voters have no leader, and Pacemaker sees both machines well. The voter that is not the configured primary
//! yields: it gives up its claim to run standalone, and stops. The primary runs standalone then (R3), by a restart.
//!
//! Y1 the peer is the primary, and this etcd has had no leader for `partition_patience`. Y2 the peer's machine is online, its agent is
//! active, and its node shows that its etcd does not lead. Y3 the peer claims that it may run standalone; no other peer could use what is
//! given up. Y4 no third voter, no maintenance, no standby and no shutdown of the peer. Y5 the claim is gone from this boot's memory and from
//! the CIB before the monitor fails, and only a monitor yields.

use crate::base::Fact;
use crate::decide::evidence::{BootState, Cib, Etcd, Evidence, Leading, PeerAgent, PeerNode, PublishedState};
use crate::decide::plan::{Effect, Plan, Progress};
use crate::decide::reason::{Reason, ReasonStep, Refusal};
use crate::decide::recovery::{proof, slow};
use crate::decide::timing::{LOOK_FOR_A_WRITE_MS, PATIENCE_WITH_THE_CIB_MS};

/// Yields to the configured primary if that is due. In this order, the node gives up its claim to run standalone, the monitor
/// fails, and Pacemaker stops etcd.
pub(super) fn decide(evidence: &Evidence, progress: &Progress) -> Option<Plan> {
    let leading = yields_to_peer(evidence)?;
    if left_s(leading) != 0 || leading.leaderless_for_s.is_none() || !may_yield(evidence) {
        return None;
    }
    let memory = evidence.boot_state()?;
    let claim = evidence.cib.known()?.own_record.as_ref().filter(|record| record.claims);
    if claim.is_none() && memory.voter.is_none() {
        return Some(evidence.refuse(Refusal::YieldsToPrimary));
    }
    // A CIB that does not show the write in time leaves the rest to the next monitor.
    if evidence.elapsed_ms >= PATIENCE_WITH_THE_CIB_MS {
        return None;
    }
    let given_up = claim.map(|record| PublishedState { claims: false, nonce: None, ..record.clone() });
    let forgotten = (memory.voter.is_some()).then(|| BootState { voter: None, ..memory.clone() });
    let effects = given_up.map(Effect::PublishRecord).into_iter().chain(forgotten.map(Effect::Remember)).collect();
    let because = Reason::Step(ReasonStep::YieldToPrimary { peer: evidence.peer_name().to_owned() });
    Some(Plan::then_look(effects, LOOK_FOR_A_WRITE_MS, progress.clone(), because))
}

/// Returns the effect that stores for this boot the time at which this node's etcd lost its leader. `None` unless the peer is the
/// configured primary.
pub(super) fn counted(evidence: &Evidence) -> Option<Effect> {
    let leading = yields_to_peer(evidence).filter(|leading| leading.leaderless_for_s.is_none())?;
    // A memory that cannot be read may hold a voter.
    let is_readable = matches!(evidence.boot_memory, Fact::Known(_) | Fact::Absent);
    let memory = evidence.boot_state().cloned().unwrap_or_default();
    let (boot_id, leaderless_since_s) = (evidence.boot_id.clone(), Some(leading.boot_s));
    is_readable.then_some(Effect::Remember(BootState { boot_id, leaderless_since_s, hand_over: None, ..memory }))
}

/// Returns the parameters about the primary if the peer is the primary and this node is to yield to it some time after etcd lost its
/// leader. This is one of the two conditions of rule Y1.
fn yields_to_peer(evidence: &Evidence) -> Option<&Leading> {
    let peer = &evidence.peer.as_ref()?.name;
    evidence.leading.as_deref().filter(|leading| leading.patience_s > 0 && leading.primary.as_ref() == Some(peer))
}

/// Returns the seconds that are left until this node yields to the primary.
fn left_s(leading: &Leading) -> u64 {
    leading.patience_s.saturating_sub(leading.leaderless_for_s.unwrap_or_default())
}

/// Returns whether this node may yield now (rules Y2 to Y4). Its etcd has no leader, the peer is well and claims to run
/// standalone, and the cluster has no third voter.
fn may_yield(evidence: &Evidence) -> bool {
    let is_led = |etcd: &Etcd| etcd.leader.is_some();
    // Where the peer's etcd has a leader, this one may only be too slow to answer.
    let has_a_leader = evidence.has_a_leader() || evidence.peer_etcd.known().is_some_and(is_led);
    let is_slow = evidence.own_etcd.known().is_none() && slow::may_answer_yet(evidence);
    !has_a_leader
        && !is_slow
        && !proof::votes_among_many(evidence)
        && evidence.third_voter().is_none()
        && evidence.cib.known().is_some_and(may_go_on)
}

/// Returns whether the peer may run standalone once this node has stopped.
fn may_go_on(cib: &Cib) -> bool {
    is_well(cib)
        && cib.peer_leads == Some(false)
        && cib.peer_record.as_ref().is_some_and(|record| record.claims)
        && !cib.peer_leaves
}

/// Node that yields while etcd's network is partitioned, as operators read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yielding {
    /// This node yields in `seconds` seconds.
    ThisNode { seconds: u64 },
    /// The peer yields once it has had no leader for `patience_s` seconds.
    ThePeer { patience_s: u64 },
}

/// Returns which node yields while this node's etcd has no leader; `None` if neither does.
pub fn yielding(evidence: &Evidence) -> Option<Yielding> {
    let leading = evidence.leading.as_deref().filter(|leading| leading.patience_s > 0)?;
    if !evidence.container_may_run() || evidence.has_a_leader() {
        return None;
    }
    if yields_to_peer(evidence).is_some() {
        return may_yield(evidence).then(|| Yielding::ThisNode { seconds: left_s(leading) });
    }
    let is_here = leading.primary.as_ref() == Some(&evidence.me.name);
    let waits = is_here && evidence.running_voter().is_some() && evidence.cib.known().is_some_and(is_well);
    waits.then_some(Yielding::ThePeer { patience_s: leading.patience_s })
}

fn is_well(cib: &Cib) -> bool {
    cib.peer_node == PeerNode::Online && cib.peer_agent == PeerAgent::Active && !cib.in_maintenance
}

impl Yielding {
    /// Returns a sentence for operators about the node that yields.
    pub fn sentence(self, peer: &str) -> String {
        match self {
            Self::ThisNode { seconds } => {
                format!("this node gives its claim up in {seconds} s, and {peer} runs standalone")
            }
            Self::ThePeer { patience_s } => {
                format!(
                    "{peer} gives its claim up {patience_s} s after it lost its leader, and this node runs standalone"
                )
            }
        }
    }
}
