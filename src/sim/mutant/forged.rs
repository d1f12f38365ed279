//! Evidence as a broken rule would have it.

use crate::base::Fact;
use crate::decide::Plan;
use crate::decide::evidence::{BootState, Cib, DataDir, Evidence, History, Identity, PublishedState, RunningVoter};
use crate::decide::plan::Effect;
use crate::decide::reason::{Reason, ReasonStep, Refusal};
use crate::sim::model::answers::STRANGERS_CLUSTER;
use crate::sim::model::log::THIRD_VOTER;

pub(super) fn bend_cib(evidence: &mut Evidence, bend: impl FnOnce(&mut Cib)) {
    if let Fact::Known(cib) = &mut evidence.cib {
        bend(cib);
    }
}

pub(super) fn claim(record: &mut Option<PublishedState>, claims: bool) {
    if let Some(record) = record {
        record.claims = claims;
    }
}

pub(super) fn bend_history(evidence: &mut Evidence, whose: impl Fn(&History) -> bool) {
    if let Fact::Known(DataDir::Present(history)) = &mut evidence.disk
        && whose(history)
        && !history.voters.contains(&history.member_id)
    {
        history.has_left = false;
        history.voters.insert(history.member_id);
    }
}

/// Makes the peer's etcd seem to have all entries of this leader, if a primary is configured.
pub(super) fn take_the_peer_for_close(evidence: &mut Evidence) {
    if let (Some(_), Fact::Known(own), Fact::Known(peer)) =
        (&evidence.leading, &evidence.own_etcd, &mut evidence.peer_etcd)
    {
        peer.index = peer.index.max(own.index);
    }
}

/// Makes the peer's parameters seem to prefer the same history as this node's parameters.
pub(super) fn take_the_peer_at_our_word(evidence: &mut Evidence) {
    let named = evidence.preferred().cloned();
    if named.is_some() {
        bend_cib(evidence, |cib| cib.peer_record.iter_mut().for_each(|record| record.prefers.clone_from(&named)));
    }
}

/// Makes a learner's data on this node seem to be a voter's, if the parameters of both nodes prefer this node's history.
pub(super) fn take_a_learner_for_a_voter(evidence: &mut Evidence) {
    if names_this_node(evidence) {
        bend_history(evidence, |history| !history.has_left);
    }
}

/// Hides that the peer serves, if the parameters of both nodes prefer this node's history.
pub(super) fn overlook_what_serves(evidence: &mut Evidence) {
    if names_this_node(evidence) {
        evidence.peer_etcd = Fact::Absent;
        bend_cib(evidence, |cib| claim(&mut cib.peer_record, false));
    }
}

/// Returns whether the parameters of both nodes prefer this node's history.
fn names_this_node(evidence: &Evidence) -> bool {
    let record = evidence.cib.known().and_then(|cib| cib.peer_record.as_ref());
    let is_it = |named: &String| *named == evidence.me.name;
    evidence.preferred().is_some_and(is_it) && record.and_then(|record| record.prefers.as_ref()).is_some_and(is_it)
}

/// Makes an etcd of another cluster seem to be the peer's etcd.
pub(super) fn believe_the_stranger(evidence: &mut Evidence) {
    let cib = evidence.cib.known();
    let published = cib.and_then(|cib| match &cib.peer_record {
        Some(PublishedState { disk: DataDir::Present(history), .. }) => Some(history.cluster_id),
        Some(_) => None,
        None => cib.peer_identity.map(|identity| identity.cluster_id),
    });
    if let (Fact::Known(etcd), Some(published)) = (&mut evidence.peer_etcd, published)
        && etcd.cluster_id == STRANGERS_CLUSTER
    {
        etcd.cluster_id = published;
    }
}

/// Hides the third voter, so that only the two nodes seem to vote.
pub(super) fn overlook_the_third_voter(evidence: &mut Evidence) {
    let third_voter = u64::from(THIRD_VOTER);
    for etcd in [&mut evidence.own_etcd, &mut evidence.peer_etcd] {
        if let Fact::Known(etcd) = etcd {
            etcd.members.retain(|member| member.id != third_voter);
        }
    }
    if let Fact::Known(told) = &mut evidence.own_leaderless {
        told.members.retain(|member| member.id != third_voter);
    }
    if let Fact::Known(memory) = &mut evidence.boot_memory {
        memory.voter.iter_mut().for_each(|voter| voter.among_many = false);
    }
    let overlook = |disk: &mut DataDir| {
        if let DataDir::Present(history) = disk {
            history.voters.remove(&third_voter);
        }
    };
    if let Fact::Known(disk) = &mut evidence.disk {
        overlook(disk);
    }
    bend_cib(evidence, |cib| {
        [&mut cib.own_record, &mut cib.peer_record].into_iter().flatten().for_each(|record| overlook(&mut record.disk));
    });
}

/// Makes the peer's record seem to announce that the peer is about to run standalone, even if the peer has called that off.
pub(super) fn carry_out_what_was_called_off(evidence: &mut Evidence) {
    bend_cib(evidence, |cib| cib.peer_record.iter_mut().for_each(|record| record.nonce = Some(0)));
}

pub(super) fn forge_memory(evidence: &mut Evidence) {
    if let (Fact::Absent, Fact::Known(DataDir::Present(history))) = (&evidence.boot_memory, &evidence.disk) {
        let lineage = evidence.own_lineage().unwrap_or_default();
        let (cluster_id, member_id) = (history.cluster_id, history.member_id);
        let voter = history.is_voter().then_some(RunningVoter {
            cluster_id,
            member_id,
            lineage,
            sole: false,
            among_many: false,
        });
        let boot_id = evidence.boot_id.clone();
        evidence.boot_memory = Fact::Known(BootState { boot_id, voter, ..BootState::default() });
    }
}

/// Makes `BootState::voter` count as a proof, even if the CIB shows no claim to run standalone.
pub(super) fn forge_claim(evidence: &mut Evidence) {
    let remembers = evidence.boot_state().is_some_and(|memory| memory.voter.is_some());
    let own = evidence.cib.known().and_then(|cib| cib.own_record.clone()).or_else(|| evidence.published_state());
    let lineage = || evidence.own_lineage().unwrap_or_default();
    let own = own.unwrap_or_else(|| PublishedState::of(evidence.boot_id.clone(), DataDir::Blank, lineage()));
    if remembers {
        bend_cib(evidence, |cib| cib.own_record = Some(PublishedState { claims: true, ..own }));
    }
}

/// Makes this node's data seem to be of another cluster, which an operator restored here. The attribute `force_new_cluster` then counts
/// even if this node lacks a forced new cluster that another node recorded.
pub(super) fn pass_for_restored(evidence: &mut Evidence) {
    if let Fact::Known(DataDir::Present(history)) = &evidence.disk {
        let (cluster_id, member_id) = (history.cluster_id + 1, history.member_id);
        bend_cib(evidence, |cib| cib.own_identity = Some(Identity { cluster_id, member_id }));
    }
}

/// Returns whether a plan gives up this node's claim to run standalone in favour of a peer that is the primary.
pub(super) fn yields(plan: &Plan) -> bool {
    matches!(plan.because, Reason::Step(ReasonStep::YieldToPrimary { .. }))
}

/// Returns the plan of a node that has given up its claim to run standalone in favour of a peer that is the primary.
pub(super) fn yielded(evidence: &Evidence) -> Plan {
    Plan::refuse(Reason::Refused { refusal: Refusal::YieldsToPrimary, peer: evidence.peer_name().to_owned() })
}

/// Gives up this node's claim to run standalone once its time without a leader is over, even if the peer's state is unknown.
pub(super) fn yield_unseen(evidence: &Evidence, plan: &mut Plan) {
    let is_over = evidence.leading.as_ref().is_some_and(|leading| leading.leaderless_for_s == Some(u64::MAX));
    let is_leaderless = evidence.container_may_run() && !evidence.has_a_leader();
    if let Some(memory) = evidence.boot_state().filter(|memory| is_over && is_leaderless && memory.voter.is_some()) {
        plan.effects.push(Effect::Remember(BootState { voter: None, ..memory.clone() }));
    }
}
