//! The member list, kept by whoever votes: a returning peer is listed as a learner, and a learner that has caught up
//! becomes a voter.

use super::plan::{Effect, Plan, Progress, Via};
use super::reason::{Reason, Step, Wait};
use super::snapshot::{Etcd, Member, Note, Snapshot};

/// etcd promotes a learner at 90 % of the leader's index, which can be a million entries short; we ask for two polls
/// in a row with a small absolute lag.
const POLLS_NEEDED: u8 = 2;
const POLL_EVERY_MS: u64 = 250;

/// Lists the peer as a learner if it is not listed at all. A member that is listed is never touched here.
pub(super) fn list_returning_peer(snapshot: &Snapshot, etcd: &Etcd) -> Option<Plan> {
    let peer = snapshot.peer.as_ref()?;
    // Two voters with a leader are this node and its peer, whatever URL somebody gave the peer's member.
    let is_listed = etcd.member_at(peer).is_some() || etcd.voters().count() > 1;
    if !etcd.is_voter_with_leader() || is_listed || snapshot.local.machine_is_deleted {
        return None;
    }
    if let Some(stranger) = stranger(snapshot, etcd) {
        return Some(stranger);
    }
    let effects = vec![
        Effect::AddLearner { peer_url: peer.peer_url.clone(), via: Via::Own },
        Effect::SetLearner(Some(peer.name.clone())),
    ];
    let because = Reason::Step(Step::ListPeerAsLearner { peer: peer.name.clone() });
    Some(Plan::then_look(effects, 0, Progress::default(), because))
}

/// Names a peer that is listed as a learner and has not started: an agent of another kind starts only then.
pub(super) fn name_listed_learner(snapshot: &Snapshot, etcd: &Etcd) -> Option<Effect> {
    let peer = snapshot.peer.as_ref()?;
    let waits = etcd.is_voter_with_leader() && awaits_the_peer(snapshot, etcd);
    let named = snapshot.cib.known()?.learner_node.as_ref() == Some(&peer.name);
    (waits && !named).then(|| Effect::SetLearner(Some(peer.name.clone())))
}

/// Whether the peer is listed as a learner that has not started yet.
pub(super) fn awaits_the_peer(snapshot: &Snapshot, etcd: &Etcd) -> bool {
    let entry = snapshot.peer.as_ref().and_then(|peer| etcd.member_at(peer));
    entry.is_some_and(|entry| entry.is_learner && !entry.has_started())
}

/// etcd allows one learner, so one at an address that is nobody's any more (a node that was replaced, or taken out of
/// `node_ip_map`) would keep the peer out. A stranger that votes is never touched.
pub(super) fn stranger(snapshot: &Snapshot, etcd: &Etcd) -> Option<Plan> {
    let is_known = |entry: &Member| {
        entry.id == etcd.member_id
            || entry.is_at(&snapshot.me)
            || snapshot.peer.as_ref().is_some_and(|peer| entry.is_at(peer))
    };
    let entry = etcd.members.iter().find(|entry| entry.is_learner && !is_known(entry))?;
    let effects = vec![Effect::RemoveMember { id: entry.id, via: Via::Own }];
    Some(Plan::then_look(effects, 100, Progress::default(), Reason::Step(Step::RemoveStranger { id: entry.id })))
}

/// Removes the peer's learner where OpenShift is deleting its Machine: the deletion waits until the member is gone.
pub(super) fn remove_deleted_peer(snapshot: &Snapshot, etcd: &Etcd) -> Option<Plan> {
    let peer = snapshot.peer.as_ref().filter(|_| snapshot.local.machine_is_deleted && etcd.is_voter_with_leader())?;
    let learner = etcd.member_at(peer).filter(|entry| entry.is_learner)?;
    let effects = vec![Effect::RemoveMember { id: learner.id, via: Via::Own }];
    let because = Reason::Step(Step::RemoveDeleted { id: learner.id });
    Some(Plan::then_look(effects, 0, Progress::default(), because))
}

/// Promotes the peer if it is a learner that has caught up; looks again while it is close. `None` where there is no
/// learner, or none that answers.
pub(super) fn promote_caught_up_learner(snapshot: &Snapshot, progress: &Progress, etcd: &Etcd) -> Option<Plan> {
    let peer = snapshot.peer.as_ref()?;
    let learner = started_learner(snapshot, etcd)?;
    let lag = lag_of(snapshot, etcd, learner)?;
    if lag > snapshot.promote_max_lag {
        let progress = Progress { polls_caught_up: 0, ..progress.clone() };
        return Some(look_again(progress, lag));
    }
    let polls = progress.polls_caught_up + 1;
    if polls < POLLS_NEEDED {
        return Some(look_again(Progress { polls_caught_up: polls, ..progress.clone() }, lag));
    }
    let effects = vec![Effect::PromoteMember { id: learner.id, via: Via::Own }];
    let because = Reason::Step(Step::PromoteLearner { peer: peer.name.clone(), lag });
    Some(Plan::then_look(effects, 50, Progress { polls_caught_up: 0, ..progress.clone() }, because))
}

fn look_again(progress: Progress, lag: u64) -> Plan {
    Plan::then_look(Vec::new(), POLL_EVERY_MS, progress, Reason::Waiting(Wait::LearnerToCatchUp { lag }))
}

/// The peer's entry, where it is a learner that has started and we may promote it.
pub(super) fn started_learner<'a>(snapshot: &Snapshot, etcd: &'a Etcd) -> Option<&'a Member> {
    let peer = snapshot.peer.as_ref()?;
    let entry = etcd.member_at(peer)?;
    (etcd.is_voter_with_leader() && entry.is_learner && entry.has_started()).then_some(entry)
}

/// How many entries the learner lacks, by its own word: only the learner that is listed may speak.
fn lag_of(snapshot: &Snapshot, etcd: &Etcd, learner: &Member) -> Option<u64> {
    let answer = snapshot.peer_etcd.known()?;
    let same = answer.member_id == learner.id && answer.cluster_id == etcd.cluster_id && answer.leader.is_some();
    same.then(|| etcd.index.saturating_sub(answer.index))
}

/// Of two CIBs that meet one counts, and it may be one that a recorded fork never reached. Who has it in its note tells it
/// anew: all that says of other data that it was left behind, and what the peer takes over when it joins, is in the CIB.
pub(super) fn lineage_as_known(snapshot: &Snapshot, etcd: &Etcd) -> Option<Effect> {
    let (cib, own) = (snapshot.cib.known()?, snapshot.own_lineage());
    // Between two voters the note gives way, see `settle`; who serves alone is the history that counts.
    let is_news = if etcd.has_one_voter() { own.is_beyond(&cib.lineage) } else { own > cib.lineage };
    (etcd.is_voter_with_leader() && is_news).then_some(Effect::PublishLineage(own))
}

/// What is taken back once there are two voters: nobody is alone, nobody is a learner.
pub(super) fn settle(snapshot: &Snapshot, etcd: &Etcd) -> Vec<Effect> {
    let mut effects = Vec::new();
    if etcd.is_learner || etcd.voters().count() < 2 {
        return effects;
    }
    if snapshot.cib.known().is_some_and(|cib| cib.learner_node.is_some()) {
        effects.push(Effect::SetLearner(None));
    }
    if etcd.leader.is_some() && snapshot.cib.known().is_some_and(|cib| cib.primary.is_some()) {
        effects.push(Effect::ForgetPrimary);
    }
    let note = snapshot.note.known().cloned().unwrap_or_default();
    // Two voters with a leader have one history, forks included: a fork that was announced and not carried out, or one
    // that this node missed to write down when it joined, is now its own.
    let lineage = match snapshot.cib.known() {
        Some(cib) if etcd.leader.is_some() => cib.lineage.clone().max(note.lineage.clone()),
        _ => note.lineage.clone(),
    };
    // So has a member that asked to leave and still votes.
    let left_at = note.left_at.filter(|_| etcd.leader.is_none());
    let settled = Note { lineage, alone_since: None, left_at, joins: false };
    if note.joins {
        effects.push(Effect::PruneBackups);
    }
    if settled != note {
        effects.push(Effect::WriteNote(settled));
    }
    effects
}
