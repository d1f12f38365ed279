//! The rules of a start, R0 to R4.

use super::alone::{alone, among_many, not_confirmed, only_node};
use super::cold_start;
use super::cold_start::{Cluster, ColdStart};
use super::follow::follow;
use super::launch::{run, run_plainly, wait_or_refuse};
use super::put_back;
use super::serve::started;
use super::unstartable;
use crate::base::Fact;
use crate::decide::evidence::{Cib, DataDir, Evidence, NodeName, Obstacle, PublishedState};
use crate::decide::peer::{PeerStatus, peer_word};
use crate::decide::plan::{Effect, Exit, Next, Phase, Plan, Progress, RunMode};
use crate::decide::reason::{Reason, ReasonStep, Refusal, Rule, Wait};
use crate::decide::recovery::announce::announce;
use crate::decide::recovery::proof;
use crate::decide::recovery::restart;
use crate::decide::recovery::slow;
use crate::decide::running::membership;
use crate::decide::running::others;
use crate::decide::standing::{Standing, classify, is_listed, is_voter};
use crate::decide::timing::{
    LOOK_AGAIN_MS, LOOK_AT_ONCE_MS, LOOK_FOR_A_WRITE_MS, PACE_MS, PATIENCE_WITH_A_BLOCKED_PEER_MS,
    PATIENCE_WITH_A_PORT_MS, PATIENCE_WITH_A_STARTING_PEER_MS, PATIENCE_WITH_THE_CIB_MS, QUICK_FAILURES,
    START_RESERVE_MS,
};

pub(in crate::decide) fn decide(evidence: &Evidence, progress: &Progress) -> Plan {
    paced(by_phase(evidence, progress), evidence, progress)
}

/// Delays a refused start, because Pacemaker counts failed starts. Until [`may_fail`] returns true, the start keeps observing. It
/// continues if the reason for the refusal has ended.
fn paced(plan: Plan, evidence: &Evidence, progress: &Progress) -> Plan {
    match plan {
        Plan { effects, next: Next::Exit(Exit::Retriable), because: Reason::Refused { refusal, peer } }
            if !may_fail(evidence) =>
        {
            Plan::then_look(
                effects,
                LOOK_AGAIN_MS,
                progress.clone(),
                Reason::Waiting(Wait::BeforeFailing { refusal, peer }),
            )
        }
        Plan { mut effects, next: next @ Next::Exit(Exit::Retriable), because } => {
            effects.extend(others::failures(evidence));
            Plan { effects, next, because }
        }
        plan => plan,
    }
}

/// Returns whether a start has lasted long enough to fail, because of a refusal or a failed effect.
pub(in crate::decide) fn may_fail(evidence: &Evidence) -> bool {
    let failures = evidence.cib.known().map_or(0, |cib| cib.own_start_failures);
    let pace_ms = PACE_MS.min(evidence.budget_ms.saturating_sub(START_RESERVE_MS));
    failures < QUICK_FAILURES || evidence.elapsed_ms >= pace_ms
}

fn by_phase(evidence: &Evidence, progress: &Progress) -> Plan {
    match &progress.phase {
        Phase::Started(mode) => started(evidence, progress, mode),
        Phase::Announced => restart::decide_announced(evidence, progress),
        Phase::Barrier { nonce } => {
            restart::decide_at_the_barrier(evidence, progress, *nonce, slow::has_time_to_launch_at_last(evidence))
        }
        Phase::Begin | Phase::VoteProxy { .. } | Phase::StoodIn | Phase::HandedOver | Phase::Left | Phase::Stopped => {
            begin(evidence, progress)
        }
    }
}

fn begin(evidence: &Evidence, progress: &Progress) -> Plan {
    if let Fact::Unknown(why) = &evidence.container {
        return evidence.refuse(Refusal::ContainerUnknown { why: why.clone() });
    }
    if evidence.container_may_run() {
        return already_running(evidence, progress);
    }
    let Some(disk) = unstartable::usable_disk(evidence) else {
        return evidence.refuse(Refusal::DiskUnreadable { why: evidence.disk.why_unknown().to_owned() });
    };
    if evidence.last_note().is_none() {
        return evidence.refuse(proof::note_unreadable(evidence));
    }
    if let Some(obstacle) = evidence.local.obstacle {
        return in_the_way(evidence, progress, obstacle);
    }
    if is_outdated(evidence, &disk) {
        let because = Reason::Step(ReasonStep::TakeBackOutdatedConfirmation);
        return Plan::then_look(vec![Effect::ConsumeConfirmation], LOOK_AT_ONCE_MS, progress.clone(), because);
    }
    let (Some(cib), Some(record)) = (evidence.cib.known(), evidence.published_state()) else {
        return evidence.refuse(Refusal::CibUnreadable { why: evidence.cib.why_unknown().to_owned() });
    };
    let fork = membership::fork_of_the_peer(evidence);
    if fork.is_some() || !cib.own_record.as_ref().is_some_and(|seen| record.is_published_as(seen)) {
        return publish(evidence, progress, fork.into_iter().chain([Effect::PublishRecord(record)]).collect());
    }
    match evidence.peer_etcd.known() {
        Some(etcd) if etcd.is_voter_with_leader() && !put_back::may_be_a_strangers(evidence, etcd, cib) => {
            follow(evidence, &disk, etcd, cib)
        }
        _ => match put_back::copied(evidence, &record, cib) {
            Some(refusal) => evidence.refuse(refusal),
            None => without_a_living_cluster(evidence, progress, cib, &record),
        },
    }
}

/// Returns whether an operator's confirmation is about other data than the present data. The agent deletes such a confirmation,
/// because it would otherwise prepare a force, stop a running etcd, and only then refuse the force.
fn is_outdated(evidence: &Evidence, disk: &DataDir) -> bool {
    let fits = matches!(disk, DataDir::Present(history) if evidence.confirmation_for(history).is_some());
    evidence.confirmation.known().is_some() && !fits
}

/// Decides a start by rule R0: etcd already runs here. The agent starts no etcd, and updates the durable note and the CIB.
fn already_running(evidence: &Evidence, progress: &Progress) -> Plan {
    let plan = started(evidence, progress, &RunMode::Normally);
    let serves = evidence.own_etcd.known().is_some_and(|etcd| etcd.leader.is_some());
    if serves { Plan { because: evidence.rule(Rule::AlreadyServing), ..plan } } else { plan }
}

/// Publishes this node's record in the CIB, and waits until it is visible, because the peer decides from it. If the record does
/// not appear in time, refuses the start. The plan of this refusal publishes the record again, because the first write may have
/// failed and [`paced`] may continue a refused start.
fn publish(evidence: &Evidence, progress: &Progress, effects: Vec<Effect>) -> Plan {
    if progress.in_phase_ms(evidence.elapsed_ms) > slow::patience_ms(evidence, PATIENCE_WITH_THE_CIB_MS) {
        let why = "our own record does not appear in it".to_owned();
        return Plan { effects, ..evidence.refuse(Refusal::CibUnreadable { why }) };
    }
    Plan::then_look(effects, LOOK_FOR_A_WRITE_MS, progress.clone(), Reason::Waiting(Wait::OwnRecord))
}

/// Waits until an obstacle to a start ends. kubelet stops its own etcd only if it is ordered to, so a start waits for that as
/// long as it can. Any other obstacle is reported soon. While it waits, the agent publishes this node's record, because the peer
/// may need it.
fn in_the_way(evidence: &Evidence, progress: &Progress, obstacle: Obstacle) -> Plan {
    let patience_ms = match obstacle {
        Obstacle::StaticPod => evidence.budget_ms.saturating_sub(START_RESERVE_MS),
        Obstacle::PortTaken(_) => PATIENCE_WITH_A_PORT_MS,
    };
    if evidence.elapsed_ms > patience_ms {
        return evidence.refuse(Refusal::InTheWay { obstacle });
    }
    let is_of_this_boot = |record: &PublishedState| record.boot_id == evidence.boot_id;
    let is_news = evidence.cib.known().is_some_and(|cib| !cib.own_record.as_ref().is_some_and(is_of_this_boot));
    let record = evidence.published_state().filter(|_| is_news).map(Effect::PublishRecord);
    let because = Reason::Waiting(Wait::WayToBeFree { obstacle });
    // The obstacle's etcd changes the data, so the record is published anew afterwards, and has its own time to become visible.
    let progress = Progress { since_ms: evidence.elapsed_ms, ..progress.clone() };
    Plan::then_look(record.into_iter().collect(), LOOK_AGAIN_MS, progress, because)
}

/// Decides a start by rules R2 to R4, because no etcd that has a leader answers.
fn without_a_living_cluster(evidence: &Evidence, progress: &Progress, cib: &Cib, record: &PublishedState) -> Plan {
    match peer_word(evidence) {
        PeerStatus::Nobody => only_node(evidence, record),
        PeerStatus::Starting => together(evidence, progress, cib, record, PATIENCE_WITH_A_STARTING_PEER_MS),
        PeerStatus::Planned | PeerStatus::Stopped => {
            together(evidence, progress, cib, record, PATIENCE_WITH_A_BLOCKED_PEER_MS)
        }
        PeerStatus::Active => beside_an_active_peer(evidence, progress, record),
        PeerStatus::Down => alone(evidence, record),
        PeerStatus::Lost => not_confirmed(evidence, progress, record, "its machine is lost and not fenced yet"),
        PeerStatus::Unknown(why) => not_confirmed(evidence, progress, record, &why),
    }
}

/// Decides a start by rule R2, the table of cold starts. The peer may be starting at the same time. Both nodes compute the result
/// from both records.
fn together(evidence: &Evidence, progress: &Progress, cib: &Cib, record: &PublishedState, patience_ms: u64) -> Plan {
    let Some(peer_record) = &cib.peer_record else {
        let wait = Wait::PeerRecord { peer: evidence.peer_name().to_owned() };
        return wait_or_refuse(evidence, progress, patience_ms, wait, Refusal::PeerSaysNothing);
    };
    match cold_start::answer_here(evidence, record, peer_record, &Cluster::seen_in(evidence, cib)) {
        ColdStart::StartNormally(rule) => run_plainly(evidence, &record.disk, rule),
        ColdStart::Bootstrap(rule) if evidence.peer_etcd.is_absent() => run(evidence, RunMode::Bootstrap, rule),
        ColdStart::ForceNewCluster(rule) => announce(evidence, evidence.rule(rule)),
        // A peer with an etcd that listens is not blank any more, whatever it published when it began to join.
        ColdStart::Bootstrap(_) | ColdStart::FollowThePeer(_) => {
            let wait = Wait::PeerToServe { peer: evidence.peer_name().to_owned() };
            wait_or_refuse(evidence, progress, patience_ms, wait, Refusal::PeerDoesNotServe)
        }
        ColdStart::Refuse(refusal) if refusal.is_a_loss() && accepts_the_loss(evidence, record) => {
            announce(evidence, evidence.rule(Rule::OperatorConfirmed))
        }
        ColdStart::Refuse(refusal) => {
            as_others_say(evidence, progress, record, patience_ms).unwrap_or_else(|| evidence.refuse(refusal))
        }
    }
}

fn accepts_the_loss(evidence: &Evidence, record: &PublishedState) -> bool {
    match &record.disk {
        DataDir::Present(history) => evidence.confirmation_for(history).is_some_and(|word| word.accept_loss),
        DataDir::Blank | DataDir::Broken { .. } => false,
    }
}

/// Chooses between two histories by the attribute `force_new_cluster`: see [`proof::told_to`]. `None` if the attribute chooses
/// neither.
fn as_others_say(evidence: &Evidence, progress: &Progress, record: &PublishedState, patience_ms: u64) -> Option<Plan> {
    let others = &evidence.cib.known()?.others;
    if others.force_on_peer && !others.force_on_me {
        let wait = Wait::PeerToServe { peer: evidence.peer_name().to_owned() };
        return Some(wait_or_refuse(evidence, progress, patience_ms, wait, Refusal::PeerDoesNotServe));
    }
    if !proof::told_to(evidence) {
        return None;
    }
    is_voter(evidence, &record.disk).then(|| announce(evidence, evidence.rule(Rule::OperatorConfirmed)))
}

/// Decides a start by rule R4: next to an active peer, no new cluster is forced. With the data of one of two voters, this node
/// starts plainly. With any other data, it waits until the peer serves. The member list of the peer's running etcd counts more
/// than the peer's record, which the peer published at its last start.
fn beside_an_active_peer(evidence: &Evidence, progress: &Progress, record: &PublishedState) -> Plan {
    let left_out = evidence.peer_etcd.known().is_some_and(|etcd| !etcd.is_learner && !is_listed(&record.disk, etcd));
    if let Some(refusal) = both_were_put_back(evidence, record) {
        return evidence.refuse(refusal);
    }
    if primary_went_on(evidence, record) {
        let wait = Wait::PeerToServe { peer: evidence.peer_name().to_owned() };
        let patience_ms = PATIENCE_WITH_A_BLOCKED_PEER_MS;
        return wait_or_refuse(evidence, progress, patience_ms, wait, Refusal::PrimaryNotReached);
    }
    match evidence.standing(&record.disk) {
        Standing::SoleVoter => sole_beside_an_active_peer(evidence, progress, record),
        // A learner too: its own log may not know yet that it was promoted, and then the peer waits for its vote.
        Standing::VoterBeside(_) | Standing::Learner if !left_out => {
            run(evidence, RunMode::Normally, Rule::PeerActiveButWithoutLeader)
        }
        Standing::VoterAmongMany if proof::was_called_off(evidence, record) => {
            run(evidence, RunMode::Normally, Rule::MoreThanTwoVoters)
        }
        Standing::VoterAmongMany => among_many(evidence, &record.disk),
        Standing::VoterBeside(_) | Standing::Learner | Standing::Departed | Standing::Nothing => {
            await_the_peer(evidence, progress)
        }
    }
}

/// Returns whether the configured primary publishes that it is the sole voter of a fork (forced new cluster) that this voter does
/// not know. Such a primary waits for no vote of this node. This node joins the primary once it reaches the primary's etcd.
fn primary_went_on(evidence: &Evidence, record: &PublishedState) -> bool {
    let is_the_peer = |name: &NodeName| name == evidence.peer_name();
    let is_beyond = |peer: &PublishedState| peer.lineage.is_beyond(&record.lineage);
    let peer = evidence.cib.known().and_then(|cib| cib.peer_record.as_ref());
    matches!(evidence.standing(&record.disk), Standing::VoterBeside(_))
        && evidence.leading.as_ref().and_then(|leading| leading.primary.as_ref()).is_some_and(is_the_peer)
        && peer_claims_to_be_sole(evidence)
        && peer.is_some_and(is_beyond)
}

/// Returns the refusal if the data of both voters ends before a position that it had reached, by the two records. Without the
/// refusal, Raft would elect the longer of two outdated logs.
fn both_were_put_back(evidence: &Evidence, record: &PublishedState) -> Option<Refusal> {
    let cib = evidence.cib.known().filter(|_| classify(&record.disk) != Standing::SoleVoter)?;
    let peer = cib.peer_record.as_ref().filter(|peer| classify(&peer.disk) != Standing::SoleVoter)?;
    match cold_start::answer_here(evidence, record, peer, &Cluster::seen_in(evidence, cib)) {
        ColdStart::Refuse(refusal @ Refusal::DiskWasPutBack { .. }) => Some(refusal),
        _ => None,
    }
}

/// Decides the start of a sole voter next to an active peer. The peer's claim to run standalone does not decide, because
/// Pacemaker reports a peer as active even if its start failed. The table of cold starts decides, because two sole voters have
/// two histories. Only the node that serves or was chosen runs.
fn sole_beside_an_active_peer(evidence: &Evidence, progress: &Progress, record: &PublishedState) -> Plan {
    let serves = peer_claims_to_be_sole(evidence) || !evidence.peer_etcd.is_absent();
    let cib = evidence.cib.known();
    let told = cib.and_then(|cib| Some((cib.peer_record.as_ref()?, Cluster::seen_in(evidence, cib))));
    match told.map(|(peer, cluster)| cold_start::answer_here(evidence, record, peer, &cluster)) {
        Some(ColdStart::Refuse(refusal)) if refusal.asks_for_a_choice() => {
            as_others_say(evidence, progress, record, PATIENCE_WITH_A_BLOCKED_PEER_MS)
                .unwrap_or_else(|| evidence.refuse(refusal))
        }
        Some(ColdStart::ForceNewCluster(rule)) if !serves => announce(evidence, evidence.rule(rule)),
        Some(ColdStart::FollowThePeer(_) | ColdStart::ForceNewCluster(_)) => await_the_peer(evidence, progress),
        _ if proof::is_newest(evidence, record) && !peer_claims_to_be_sole(evidence) => {
            run_plainly(evidence, &record.disk, Rule::PeerActiveButWithoutLeader)
        }
        _ => await_the_peer(evidence, progress),
    }
}

fn await_the_peer(evidence: &Evidence, progress: &Progress) -> Plan {
    let wait = Wait::PeerToServe { peer: evidence.peer_name().to_owned() };
    wait_or_refuse(evidence, progress, PATIENCE_WITH_A_BLOCKED_PEER_MS, wait, Refusal::PeerDoesNotServe)
}

fn peer_claims_to_be_sole(evidence: &Evidence) -> bool {
    let record = evidence.cib.known().and_then(|cib| cib.peer_record.as_ref());
    record.is_some_and(|record| record.claims && classify(&record.disk) == Standing::SoleVoter)
}
