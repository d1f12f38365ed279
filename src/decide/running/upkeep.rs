//! What a healthy member writes down: what others rely on, and what its own next decisions do.

use std::collections::BTreeSet;

use super::alarm;
use super::hand_over;
use super::membership;
use super::others;
use super::reached;
use crate::base::Fact;
use crate::decide::evidence::{BootState, Etcd, Evidence, HandOver, Identity, RunningVoter};
use crate::decide::plan::{Effect, Exit, Plan, Progress, RunMode};
use crate::decide::reason::{Health, Reason, Wait};
use crate::decide::recovery::slow;
use crate::decide::standing::classify;
use crate::decide::start::unstartable;
use crate::decide::timing::{LOOK_FOR_A_WRITE_MS, PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS};

/// Promotion score of a voter in Pacemaker. A learner has none, so Pacemaker does not promote it.
const VOTER_SCORE: u32 = 1000;

/// Kind of action that observes a serving member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decide) enum Stage<'a> {
    /// Start that launched etcd in this mode, or found it already running.
    Starts(&'a RunMode),
    /// Any later action. A monitor runs often, so it writes only what differs.
    Runs,
}

/// Returns everything that the agent records about a serving member. Other nodes may rely on the order of these effects. A start
/// cleans up failure counts earlier than a later action does.
pub(in crate::decide) fn upkeep(evidence: &Evidence, etcd: &Etcd, stage: Stage<'_>) -> Vec<Effect> {
    let starts = stage != Stage::Runs;
    let mut effects = Vec::new();
    effects.extend(settled_config(evidence));
    effects.extend(identity_as_seen(evidence, etcd));
    effects.extend(standalone_as_seen(evidence, etcd));
    if !starts {
        effects.extend(membership::name_listed_learner(evidence, etcd));
        effects.extend(others::runs(evidence, etcd));
        effects.extend(membership::lineage_as_known(evidence, etcd));
        effects.extend(membership::fork_of_the_peer(evidence));
    }
    effects.extend(membership::settle(evidence, etcd));
    if starts {
        effects.extend(others::served(evidence));
        effects.extend(others::failures_of_who_serves(evidence));
        effects.extend(remember_voter(evidence, etcd, is_promoted(evidence), None));
        effects.extend(unstartable::forgotten(evidence));
    } else {
        effects.extend(claim_and_remember(evidence, etcd));
    }
    if starts || etcd.is_voter_with_leader() {
        effects.extend(used_word(evidence));
    }
    if !starts {
        effects.extend(others::failures_of_who_serves(evidence));
        effects.extend(unstartable::forgotten(evidence));
    }
    effects.extend(score_as_seen(evidence, etcd));
    if !starts {
        effects.extend(alarm_as_seen(evidence, etcd));
        effects.extend(redundancy_as_seen(evidence, etcd));
        effects.extend(reached::as_seen(evidence, etcd));
        // Nothing rests on it, and an effect that fails ends the round.
        effects.extend(image_as_seen(evidence));
    }
    effects
}

/// Returns what the agent records about a serving member while etcd's auth rejects the agent. All else is unknown, and is not
/// recorded. So a later loss of the peer may need an operator.
pub(in crate::decide) fn upkeep_unseen(evidence: &Evidence, stage: Stage<'_>) -> Vec<Effect> {
    let mut effects = Vec::new();
    if stage != Stage::Runs {
        effects.extend(settled_config(evidence));
        effects.extend(others::served(evidence));
    }
    effects.extend(others::failures_of_who_serves(evidence));
    if let Stage::Starts(mode) = stage {
        effects.extend(remember_what_was_forced(evidence, mode));
        effects.extend(used_word(evidence));
    }
    effects.extend(alarm::no_permission(evidence));
    effects
}

/// Performs the `upkeep` of a healthy member, and ends the action.
///
/// If the member has just become a voter, the action lasts until two things are done. The agent first publishes the claim to run
/// standalone. Once the CIB shows the claim, the agent stores in this boot that the member votes (see [`BootState::voter`]).
/// Until both are done, a loss of the leader would need an operator. The agent does neither while the durable note cannot be
/// read.
pub(in crate::decide) fn kept(
    evidence: &Evidence,
    progress: &Progress,
    etcd: &Etcd,
    exit: Exit,
    health: Health,
) -> Plan {
    let effects = upkeep(evidence, etcd, Stage::Runs);
    let among_many = evidence.is_left_to_raft(&etcd.members);
    let is_it = |voter: &RunningVoter| (voter.member_id, voter.among_many) == (etcd.member_id, among_many);
    let remembers = |memory: &BootState| memory.voter.as_ref().is_some_and(is_it);
    let may_become = !etcd.is_learner && evidence.peer.is_some() && evidence.last_note().is_some();
    let becomes_a_voter = may_become && !evidence.boot_state().is_some_and(remembers);
    let is_done = effects.iter().any(|effect| matches!(effect, Effect::Remember(memory) if remembers(memory)));
    let patience_ms = slow::patience_ms(evidence, PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS);
    if becomes_a_voter && !is_done && evidence.elapsed_ms < patience_ms {
        return Plan::then_look(effects, LOOK_FOR_A_WRITE_MS, progress.clone(), Reason::Waiting(Wait::OwnRecord));
    }
    Plan::exit(effects, exit, Reason::Running(health))
}

/// Removes the force from the configuration file of an etcd that serves.
pub(in crate::decide) fn settled_config(evidence: &Evidence) -> Option<Effect> {
    let forces = evidence.container.known().is_some_and(|container| container.forces_new_cluster);
    forces.then_some(Effect::SettleConfig)
}

/// Deletes an operator's confirmation once this node serves, because the confirmation was given for a node that could not continue. A
/// later failure must not find it, because the data will have changed by that time. While this node is a learner, only a start deletes
/// it.
fn used_word(evidence: &Evidence) -> Option<Effect> {
    evidence.confirmation.known().map(|_| Effect::ConsumeConfirmation)
}

fn is_promoted(evidence: &Evidence) -> bool {
    evidence.boot_state().is_some_and(|memory| memory.promoted)
}

/// Publishes the claim to run standalone of a learner that was promoted since its start. The next observation stores that this
/// member votes ([`BootState::voter`]).
///
/// This function does the same for a voter that lost its claim when Pacemaker ended. That voter has a leader, so no node has
/// continued without it.
fn claim_and_remember(evidence: &Evidence, etcd: &Etcd) -> Vec<Effect> {
    if let Some(claim) = missing_claim(evidence, etcd) {
        return vec![claim];
    }
    let remembered = Effect::Remember(evidence.boot_state().cloned().unwrap_or_default());
    let hand_over = hand_over::counted(evidence, etcd);
    let wanted = remember_voter(evidence, etcd, is_promoted(evidence), hand_over);
    let wanted = wanted.filter(|wanted| *wanted != remembered);
    outdated_record(evidence, etcd).into_iter().chain(wanted).collect()
}

/// Returns the effect that publishes a voter's claim to run standalone; `None` if the CIB already shows the claim, or the member
/// may not have one.
pub(in crate::decide) fn missing_claim(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    let has_claim = evidence.cib.known()?.own_record.as_ref().is_some_and(|record| record.claims);
    let may_claim = !etcd.is_learner && evidence.peer.is_some();
    let record = evidence.living_record(etcd).filter(|_| may_claim && !has_claim);
    record.map(Effect::PublishRecord)
}

/// Returns the effect that publishes a voter's new record; `None` unless its membership or the history that the parameters prefer
/// has changed. The peer reads the voters from this record, and so does this node while its etcd is silent.
fn outdated_record(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    let published = evidence.cib.known()?.own_record.as_ref().filter(|record| record.claims && !etcd.is_learner)?;
    let living = evidence.living_record(etcd)?;
    let is_news = classify(&published.disk) != classify(&living.disk) || published.prefers != living.prefers;
    is_news.then_some(Effect::PublishRecord(living))
}

/// Returns the facts about a serving etcd that the agent stores for this boot. While the durable note cannot be read, the stored
/// facts do not change, because the claim to run standalone relies on the note.
pub(super) fn remember_voter(
    evidence: &Evidence,
    etcd: &Etcd,
    promoted: bool,
    hand_over: Option<HandOver>,
) -> Option<Effect> {
    let lineage = evidence.own_lineage()?;
    let among_many = evidence.is_left_to_raft(&etcd.members) && !etcd.is_learner;
    let voter = (among_many || has_all_that_was_acknowledged(evidence, etcd)).then(|| RunningVoter {
        cluster_id: etcd.cluster_id,
        member_id: etcd.member_id,
        lineage,
        sole: etcd.has_one_voter(),
        among_many,
    });
    let before = || evidence.boot_state().map_or(0, |memory| memory.start_failures);
    let start_failures = evidence.cib.known().map_or_else(before, others::start_failures_left);
    Some(Effect::Remember(BootState {
        boot_id: evidence.boot_id.clone(),
        voter,
        promoted,
        start_failures,
        in_vain: false,
        ended_at: None,
        hand_over,
        leaderless_since_s: None,
    }))
}

/// Returns whether this voter of two holds everything that was acknowledged until now. The leader does, and so does a member that was
/// already one of two voters.
///
/// A new voter may lack writes. The log entry that promotes it (or that removes a third voter) is written some time before it is
/// applied. In that time, the leader acknowledges writes without the new voter. Once the leader lists the same voters as this member,
/// the leader has committed these writes. So a voter that has committed as much as the leader lacks nothing.
///
/// This is so only if the peer leads. A third voter that leads may have removed itself, and the peer may lack these writes, too.
fn has_all_that_was_acknowledged(evidence: &Evidence, etcd: &Etcd) -> bool {
    let was_one_of_two = |voter: &RunningVoter| voter.member_id == etcd.member_id && !voter.sole && !voter.among_many;
    let voted = evidence.remembered_voter().is_some_and(was_one_of_two);
    let voters = |of: &Etcd| of.voters().map(|member| member.id).collect::<BTreeSet<_>>();
    let has_caught_up = |leader: &Etcd| {
        let is_it = leader.leads() && leader.cluster_id == etcd.cluster_id;
        is_it && voters(leader) == voters(etcd) && etcd.index >= leader.index
    };
    let is_caught_up = evidence.peer_etcd.known().is_some_and(has_caught_up);
    !etcd.is_learner && (etcd.has_one_voter() || etcd.leads() || voted || is_caught_up)
}

/// Stores for this boot that a forced etcd is the sole voter. Without this, the agent would force a slow etcd a second time.
fn remember_what_was_forced(evidence: &Evidence, mode: &RunMode) -> Option<Effect> {
    let memory = evidence.boot_state().filter(|_| *mode == RunMode::ForceNewCluster)?;
    let voter = memory.voter.clone().map(|voter| RunningVoter { sole: true, ..voter });
    Some(Effect::Remember(BootState { voter, in_vain: false, ..memory.clone() }))
}

/// Publishes the running member's id and cluster id if the CIB contains different ones.
fn identity_as_seen(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    let seen = Identity { cluster_id: etcd.cluster_id, member_id: etcd.member_id };
    let published = evidence.cib.known()?.own_identity;
    (published != Some(seen)).then_some(Effect::PublishIdentity(seen))
}

/// Records in the CIB (`standalone_node`) that this node is the sole voter, if its etcd is the only voter. Otherwise removes the entry.
fn standalone_as_seen(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    let cib = evidence.cib.known()?;
    if etcd.is_learner {
        return None;
    }
    let wanted = etcd.has_one_voter().then(|| evidence.me.name.clone());
    (cib.standalone_node != wanted).then_some(Effect::SetStandalone(wanted))
}

/// Sets a voter's promotion score in Pacemaker, and removes a learner's.
fn score_as_seen(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    let wanted = (!etcd.is_learner).then_some(VOTER_SCORE);
    let seen = evidence.cib.known()?.own_promotion_score;
    (evidence.promotable && seen != wanted).then_some(Effect::SetPromotionScore(wanted))
}

/// Publishes etcd's alarms if they differ from the published ones.
fn alarm_as_seen(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    let raised = alarm::raised(etcd);
    let shown = evidence.cib.known()?.own_alarm.clone();
    (shown != raised).then_some(Effect::SetAlarm(raised))
}

/// Publishes the image from which etcd runs, and the image of its next start, if one of them differs from what is published.
fn image_as_seen(evidence: &Evidence) -> Option<Effect> {
    let seen = evidence.local.image.known()?;
    let published = evidence.cib.known()?.own_image.as_ref();
    (published != Some(seen)).then(|| Effect::PublishImage(Some(seen.clone())))
}

/// Publishes whether there are two voters (`etcd_redundancy`) if that has changed. Only the leader does this: it has a majority,
/// so its member list is current. An unreadable value is overwritten.
fn redundancy_as_seen(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    let said = match &evidence.cib.known()?.redundancy {
        Fact::NotAsked => return None,
        Fact::Known(said) => Some(said.is_redundant),
        Fact::Absent | Fact::Unknown(_) => None,
    };
    let seen = etcd.is_redundant();
    (etcd.leads() && said != Some(seen)).then_some(Effect::SetRedundancy(seen))
}
