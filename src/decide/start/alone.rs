//! R3: a start without a peer, be it off, not confirmed, or not in the cluster at all.

use super::launch::{run, run_plainly, wait_or_refuse};
use super::put_back;
use crate::decide::evidence::{Cib, DataDir, Evidence, PeerNode, PublishedState};
use crate::decide::plan::{Plan, Progress, RunMode};
use crate::decide::reason::{Refusal, Rule, Wait};
use crate::decide::recovery::announce::announce;
use crate::decide::recovery::proof;
use crate::decide::standing::{Standing, classify, history_position, is_voter, position};
use crate::decide::timing::{PATIENCE_WITH_A_BLOCKED_PEER_MS, PATIENCE_WITH_A_JOINING_PEER_MS};

/// Decides a start by rule R3 (one node runs standalone), because the peer is confirmed down and is not starting.
pub(super) fn alone(evidence: &Evidence, record: &PublishedState) -> Plan {
    let history = match &record.disk {
        DataDir::Present(history) => history,
        DataDir::Blank => return evidence.refuse(Refusal::BlankAlone),
        DataDir::Broken { why } => return evidence.refuse(Refusal::BrokenAlone { why: why.clone() }),
    };
    let position = position(history);
    match evidence.standing(&record.disk) {
        Standing::SoleVoter if proof::is_newest(evidence, record) => {
            run_plainly(evidence, &record.disk, Rule::SoleVoter)
        }
        Standing::VoterBeside(_) if proof::proves_that_the_peer_did_not_go_on(evidence, history) => {
            announce(evidence, evidence.rule(Rule::SurvivorGoesOnAlone))
        }
        Standing::SoleVoter | Standing::VoterBeside(_)
            if proof::operator_confirmed(evidence, history) || proof::told_to(evidence) =>
        {
            announce(evidence, evidence.rule(Rule::OperatorConfirmed))
        }
        Standing::SoleVoter | Standing::VoterBeside(_) => evidence.refuse(proof::without_proof(evidence, position)),
        Standing::Learner => evidence.refuse(Refusal::LearnerAlone { position }),
        Standing::Departed => evidence.refuse(Refusal::DepartedAlone { position }),
        Standing::VoterAmongMany => among_many(evidence, &record.disk),
        Standing::Nothing => evidence.refuse(Refusal::BlankAlone),
    }
}

/// Starts plainly next to the third voter, or among three or more voters. The peer's state does not matter, because nothing is
/// forced. Refuses if another node has continued without this data, because this data could let a majority serve a history that
/// lacks that node's writes.
pub(super) fn among_many(evidence: &Evidence, disk: &DataDir) -> Plan {
    let accepts = |history| proof::operator_confirmed(evidence, history);
    if evidence.was_left_behind() && !matches!(disk, DataDir::Present(history) if accepts(history)) {
        return evidence.refuse(proof::without_proof(evidence, history_position(disk)));
    }
    run(evidence, RunMode::Normally, Rule::MoreThanTwoVoters)
}

/// Decides a start while it is not confirmed whether the peer runs. A sole voter starts, because it needs no vote. A node with
/// any other data waits for fencing.
pub(super) fn not_confirmed(evidence: &Evidence, progress: &Progress, record: &PublishedState, why: &str) -> Plan {
    if classify(&record.disk) == Standing::SoleVoter && proof::is_newest(evidence, record) {
        return sole_beside_a_silent_peer(evidence, progress, record);
    }
    if evidence.standing(&record.disk) == Standing::VoterAmongMany {
        return among_many(evidence, &record.disk);
    }
    if is_voter(evidence, &record.disk) && proof::told_to(evidence) && proof::peer_was_never_seen(evidence) {
        return announce(evidence, evidence.rule(Rule::OperatorConfirmed));
    }
    let wait = Wait::PeerConfirmed { peer: evidence.peer_name().to_owned(), why: why.to_owned() };
    let refusal = Refusal::PeerNotConfirmed { why: why.to_owned() };
    wait_or_refuse(evidence, progress, PATIENCE_WITH_A_BLOCKED_PEER_MS, wait, refusal)
}

/// Starts a sole voter, which needs no vote. Before that, waits for the record of a peer that has just come back, because the
/// peer may know a fork (forced new cluster) that this node's CIB lost. Only a start that began before the peer came back has to
/// wait here, because Pacemaker probes the peer before any later start.
fn sole_beside_a_silent_peer(evidence: &Evidence, progress: &Progress, record: &PublishedState) -> Plan {
    let machine = evidence.cib.known().filter(|cib| cib.peer_record.is_none()).map(Cib::peer_machine);
    let wait = Wait::PeerRecord { peer: evidence.peer_name().to_owned() };
    let patience_ms = match machine {
        Some(PeerNode::Online) => PATIENCE_WITH_A_BLOCKED_PEER_MS,
        Some(PeerNode::Pending) => PATIENCE_WITH_A_JOINING_PEER_MS,
        _ => return run_plainly(evidence, &record.disk, Rule::SoleVoter),
    };
    // A machine that hangs between Corosync and Pacemaker joins never.
    let hangs = machine == Some(PeerNode::Pending) && progress.in_phase_ms(evidence.elapsed_ms) > patience_ms;
    if hangs && evidence.peer_etcd.is_absent() {
        return run_plainly(evidence, &record.disk, Rule::SoleVoter);
    }
    wait_or_refuse(evidence, progress, patience_ms, wait, Refusal::PeerSaysNothing)
}

pub(super) fn only_node(evidence: &Evidence, record: &PublishedState) -> Plan {
    match evidence.standing(&record.disk) {
        Standing::Nothing if record.disk == DataDir::Blank => {
            // An empty directory where a cluster was recorded is a loss, never a beginning.
            let is_recorded = evidence.cib.known().is_none_or(|cib| cib.cluster_recorded);
            if is_recorded {
                evidence.refuse(Refusal::OnlyNodesDataIsGone)
            } else {
                run(evidence, RunMode::Bootstrap, Rule::OnlyNode)
            }
        }
        Standing::SoleVoter if proof::is_newest(evidence, record) => {
            run_plainly(evidence, &record.disk, Rule::OnlyNode)
        }
        // The administrator took the peer out of node_ip_map: that is the operator's confirmation on a peer that is not known to have
        // continued.
        Standing::VoterBeside(_) if is_whole(evidence, &record.disk) => {
            announce(evidence, evidence.rule(Rule::OnlyNode))
        }
        Standing::SoleVoter | Standing::VoterBeside(_) => only_node_left_behind(evidence, &record.disk),
        Standing::VoterAmongMany => among_many(evidence, &record.disk),
        Standing::Nothing | Standing::Learner | Standing::Departed => evidence.refuse(Refusal::NoVotersData),
    }
}

/// Returns whether no record shows that the former peer continued without this voter's data.
fn is_whole(evidence: &Evidence, disk: &DataDir) -> bool {
    let DataDir::Present(history) = disk else { return false };
    !evidence.was_left_behind() && !evidence.may_have_left() && put_back::put_back_from(evidence, history).is_none()
}

fn only_node_left_behind(evidence: &Evidence, disk: &DataDir) -> Plan {
    let DataDir::Present(history) = disk else { return evidence.refuse(Refusal::NoVotersData) };
    if proof::operator_confirmed(evidence, history) {
        return announce(evidence, evidence.rule(Rule::OperatorConfirmed));
    }
    evidence.refuse(proof::without_proof(evidence, position(history)))
}
