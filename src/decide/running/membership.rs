//! The member list, which a voter keeps: a returning peer is listed as a learner, and a learner that has caught up becomes a
//! voter.

use super::reached;
use crate::decide::evidence::{DurableState, Etcd, Evidence, Member};
use crate::decide::peer::{PeerStatus, peer_has_left, peer_word};
use crate::decide::plan::{Effect, Plan, Progress, Via};
use crate::decide::reason::{Reason, ReasonStep, Wait};
use crate::decide::timing::{LOOK_AFTER_A_CHANGE_MS, LOOK_AT_A_LEARNER_MS, LOOK_AT_ONCE_MS, LOOK_AT_THE_LIST_MS};

/// Number of consecutive observations that have to find a learner close to the leader before the agent promotes it.
const POLLS_NEEDED: u8 = 2;

/// Adds the peer to the member list as a learner if the list does not contain it. It never changes the entry of a listed member.
pub(super) fn list_returning_peer(evidence: &Evidence, etcd: &Etcd) -> Option<Plan> {
    let peer = evidence.peer.as_ref()?;
    // Two voters with a leader are this node and its peer, whatever URL the peer's member was given; the third voter is
    // neither.
    let is_listed = etcd.member_at(peer).is_some() || evidence.voters_of_the_pair(etcd) > 1;
    if !etcd.is_voter_with_leader() || is_listed || evidence.machine_is_deleted() {
        return None;
    }
    if let Some(stranger) = stranger(evidence, etcd) {
        return Some(stranger);
    }
    if let Some(third_voter) = evidence.third_voter_in_the_learners_place(etcd) {
        return Some(make_place(third_voter, Via::Own));
    }
    let effects = vec![
        Effect::AddLearner { peer_url: peer.peer_url.clone(), via: Via::Own },
        Effect::SetLearner(Some(peer.name.clone())),
    ];
    let because = Reason::Step(ReasonStep::ListPeerAsLearner { peer: peer.name.clone() });
    Some(Plan::then_look(effects, LOOK_AT_ONCE_MS, Progress::default(), because))
}

/// Adds a peer that is confirmed gone to the member list as a learner, before the peer returns. Other programs then see in the
/// member list that a second member is to come. This is safe, because a learner counts for no majority. A forced new cluster
/// would remove the learner, but this agent never forces one from a sole voter's data.
pub(super) fn list_absent_peer(evidence: &Evidence, etcd: &Etcd) -> Option<Plan> {
    let is_gone = match peer_word(evidence) {
        PeerStatus::Down => true,
        PeerStatus::Stopped => peer_has_left(evidence),
        _ => false,
    };
    // A third voter that learns continues to do so while the peer is away.
    let has_a_place = evidence.third_voter_in_the_learners_place(etcd).is_none();
    if is_gone && has_a_place { list_returning_peer(evidence, etcd) } else { None }
}

/// Removes a third voter while it is a learner, because etcd allows one learner. The agent that needs that place observes again
/// afterwards.
pub(in crate::decide) fn make_place(third_voter: &Member, via: Via) -> Plan {
    let effects = vec![Effect::RemoveMember { id: third_voter.id, via }];
    let because = Reason::Step(ReasonStep::ThirdVoterMakesPlace { id: third_voter.id });
    Plan::then_look(effects, LOOK_AT_THE_LIST_MS, Progress::default(), because)
}

/// Adds a starting peer to the member list next to a third voter, if the agent missed the notification before the peer's start.
/// The peer cannot add itself, because only this node's agent knows which learner is the third voter.
pub(super) fn list_starting_peer(evidence: &Evidence, etcd: &Etcd) -> Option<Plan> {
    let starts = peer_word(evidence) == PeerStatus::Starting;
    if starts && evidence.third_voter_in_the_learners_place(etcd).is_some() {
        list_returning_peer(evidence, etcd)
    } else {
        None
    }
}

/// Publishes the name of the peer while it is listed as a learner and has not started. On the peer, an agent of another kind does
/// not start before that.
pub(super) fn name_listed_learner(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    let peer = evidence.peer.as_ref()?;
    let waits = etcd.is_voter_with_leader() && awaits_the_peer(evidence, etcd);
    let named = evidence.cib.known()?.learner_node.as_ref() == Some(&peer.name);
    (waits && !named).then(|| Effect::SetLearner(Some(peer.name.clone())))
}

/// Returns whether the peer is listed as a learner that has not started yet.
pub(super) fn awaits_the_peer(evidence: &Evidence, etcd: &Etcd) -> bool {
    let entry = evidence.peer.as_ref().and_then(|peer| etcd.member_at(peer));
    entry.is_some_and(|entry| entry.is_learner && !entry.has_started())
}

/// Removes a learner at an address of no known node. Its node was replaced, or taken out of `node_ip_map`. etcd allows one
/// learner, so this learner would keep the peer out. Voters are not removed, and neither is the third voter that the CIB names.
pub(super) fn stranger(evidence: &Evidence, etcd: &Etcd) -> Option<Plan> {
    evidence.cib.known()?;
    if evidence.voters_of_the_pair(etcd) != 1 {
        return None;
    }
    let is_known = |entry: &Member| {
        entry.id == etcd.member_id
            || entry.is_at(&evidence.me)
            || evidence.is_third_voter(entry)
            || evidence.peer.as_ref().is_some_and(|peer| entry.is_at(peer))
    };
    let entry = etcd.members.iter().find(|entry| entry.is_learner && !is_known(entry))?;
    let effects = vec![Effect::RemoveMember { id: entry.id, via: Via::Own }];
    Some(Plan::then_look(
        effects,
        LOOK_AT_THE_LIST_MS,
        Progress::default(),
        Reason::Step(ReasonStep::RemoveStranger { id: entry.id }),
    ))
}

/// Removes the peer's learner if OpenShift is deleting the peer's Machine, because that deletion waits until the member is gone.
pub(super) fn remove_deleted_peer(evidence: &Evidence, etcd: &Etcd) -> Option<Plan> {
    let peer = evidence.peer.as_ref().filter(|_| evidence.machine_is_deleted() && etcd.is_voter_with_leader())?;
    let learner = etcd.member_at(peer).filter(|entry| entry.is_learner)?;
    let effects = vec![Effect::RemoveMember { id: learner.id, via: Via::Own }];
    let because = Reason::Step(ReasonStep::RemoveDeleted { id: learner.id });
    Some(Plan::then_look(effects, LOOK_AT_ONCE_MS, Progress::default(), because))
}

/// Promotes the peer if it is a learner that has caught up. If it may soon have caught up, observes again. `None` if no learner
/// answers.
pub(super) fn promote_caught_up_learner(evidence: &Evidence, progress: &Progress, etcd: &Etcd) -> Option<Plan> {
    let peer = evidence.peer.as_ref().filter(|_| !evidence.machine_is_deleted())?;
    let learner = started_learner(evidence, etcd)?;
    let lag = lag_of(evidence, etcd, learner)?;
    let polls = polls_caught_up(evidence, progress, Some(lag));
    if !has_caught_up(polls) {
        return Some(look_again(Progress { polls_caught_up: polls, ..progress.clone() }, lag));
    }
    let promotion = Effect::PromoteMember { id: learner.id, via: Via::Own };
    let effects = reached::before_a_promotion(evidence, etcd).into_iter().chain([promotion]).collect();
    let because = Reason::Step(ReasonStep::PromoteLearner { peer: peer.name.clone(), lag });
    Some(Plan::then_look(effects, LOOK_AFTER_A_CHANGE_MS, Progress { polls_caught_up: 0, ..progress.clone() }, because))
}

/// Returns the number of consecutive observations in which the learner lagged little. The voter that promotes uses it, and so
/// does the learner that asks for its promotion.
///
/// etcd itself promotes a learner at 90 % of the leader's index, which can be a million entries short. So the agent requires a
/// small absolute lag in two consecutive observations. An unknown lag resets the count.
pub(super) fn polls_caught_up(evidence: &Evidence, progress: &Progress, lag: Option<u64>) -> u8 {
    let is_close = lag.is_some_and(|lag| lag <= evidence.promote_max_lag);
    if is_close { progress.polls_caught_up.saturating_add(1) } else { 0 }
}

/// Returns whether a learner was close enough to the leader in `polls` consecutive observations to be promoted.
pub(super) fn has_caught_up(polls: u8) -> bool {
    polls >= POLLS_NEEDED
}

/// Returns the number of the leader's log entries that `learner` lacks.
pub(super) fn lag_behind(leader: &Etcd, learner: &Etcd) -> u64 {
    leader.index.saturating_sub(learner.index)
}

fn look_again(progress: Progress, lag: u64) -> Plan {
    Plan::then_look(Vec::new(), LOOK_AT_A_LEARNER_MS, progress, Reason::Waiting(Wait::LearnerToCatchUp { lag }))
}

/// Returns the peer's entry in the member list if the peer is a started learner and this node may promote it.
pub(super) fn started_learner<'a>(evidence: &Evidence, etcd: &'a Etcd) -> Option<&'a Member> {
    let peer = evidence.peer.as_ref()?;
    let entry = etcd.member_at(peer)?;
    (etcd.is_voter_with_leader() && entry.is_learner && entry.has_started()).then_some(entry)
}

/// Returns the number of log entries that the listed learner lacks, by its own answer. `None` if a different member answers at
/// its address.
fn lag_of(evidence: &Evidence, etcd: &Etcd, learner: &Member) -> Option<u64> {
    let answer = evidence.peer_etcd.known()?;
    let same = answer.member_id == learner.id && answer.cluster_id == etcd.cluster_id && answer.leader.is_some();
    same.then(|| lag_behind(etcd, answer))
}

/// Publishes a fork (forced new cluster) that only this node's durable note records. When two partitions merge, one CIB replaces
/// the other, and may lack a fork that the other one recorded. Both nodes need the fork in the CIB. Only there they see that
/// other data was left behind, and a peer that joins takes the number of forks from there.
pub(super) fn lineage_as_known(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    let (cib, own) = (evidence.cib.known()?, evidence.own_lineage()?);
    // Between two voters the note gives way, see `settle`; the history of a sole voter is the one that counts.
    let is_news = if etcd.has_one_voter() { own.is_beyond(&cib.lineage) } else { own > cib.lineage };
    // Two voters have one history: two forks of one count, each in its author's attribute, would pass for two of them.
    let published = cib.own_lineage.as_ref();
    let is_old = !etcd.has_one_voter() && own == cib.lineage && published.is_some_and(|published| *published != own);
    let is_missing = (is_news || is_old) && published != Some(&own);
    (etcd.is_voter_with_leader() && is_missing).then_some(Effect::PublishLineage(own))
}

/// Publishes the fork (forced new cluster) in this node's durable note when Pacemaker has come back next to a running etcd. The
/// CIB may lack that fork, if it came from the other side of a merge of two partitions. etcd may still wait for its first leader
/// and report nothing, but the note has the fork. It has to be published now, because the peer may start once this probe has
/// ended.
pub(super) fn fork_of_this_node(evidence: &Evidence) -> Option<Effect> {
    let cib = evidence.cib.known().filter(|cib| cib.own_record.is_none())?;
    let note = evidence.last_note().filter(|note| note.alone_since.is_some())?;
    (cib.own_lineage.as_ref() != Some(&note.lineage)).then_some(Effect::PublishLineage(note.lineage))
}

/// Publishes a fork (forced new cluster) that the peer's record contains and that no permanent attribute contains. This happens
/// if two partitions merge, and the CIB that is kept is the one without the fork.
///
/// If the peer were lost before it publishes the fork again, its record would be lost too. This node would then take its own data
/// for the newest.
pub(in crate::decide) fn fork_of_the_peer(evidence: &Evidence) -> Option<Effect> {
    let (cib, own) = (evidence.cib.known()?, evidence.own_lineage()?);
    let told = &cib.peer_record.as_ref()?.lineage;
    let is_missing = told.is_beyond(&cib.lineage) && cib.peer_lineage.as_ref().is_none_or(|known| told > known);
    (is_missing && told.is_beyond(&own)).then(|| Effect::PublishPeerLineage(told.clone()))
}

/// Removes published entries that are wrong with two voters: the name of a sole voter, and the name of a learner.
pub(super) fn settle(evidence: &Evidence, etcd: &Etcd) -> Vec<Effect> {
    let mut effects = Vec::new();
    if etcd.is_learner || etcd.voters().count() < 2 {
        return effects;
    }
    // Next to the third voter there are two while the peer learns.
    let is_named = evidence.cib.known().is_some_and(|cib| cib.learner_node.is_some());
    if is_named && !awaits_the_peer(evidence, etcd) {
        effects.push(Effect::SetLearner(None));
    }
    if etcd.leader.is_some() && evidence.cib.known().is_some_and(|cib| cib.primary.is_some()) {
        effects.push(Effect::ForgetPrimary);
    }
    // A note that cannot be read may hold forks that are recorded nowhere else: it is not written over.
    let Some(note) = evidence.last_note() else { return effects };
    // Two voters with a leader have one history, forks included: a fork that was announced and not carried out, or one
    // that this node missed to write down when it joined, is now its own.
    let lineage = match evidence.cib.known() {
        Some(cib) if etcd.leader.is_some() => cib.lineage.clone().max(note.lineage.clone()),
        _ => note.lineage.clone(),
    };
    // So has a member that asked to leave and still votes.
    let left_at = note.left_at.filter(|_| etcd.leader.is_none());
    let settled = DurableState {
        lineage,
        left_at,
        alone_since: None,
        alone_revision: None,
        gave_up: false,
        joins: false,
        without: None,
        of: note.of.clone(),
    };
    if note.joins {
        effects.push(Effect::PruneBackups);
    }
    // The name of the data is no reason to write the note, and is written with the rest.
    if settled != note {
        effects.push(Effect::WriteNote(DurableState { of: evidence.own_data(), ..settled }));
    }
    effects
}
