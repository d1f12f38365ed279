//! An etcd that was started: it is to answer, and what others rely on is written down once it serves.

use super::alarm;
use super::cold_start::classify;
use super::fact::Fact;
use super::membership;
use super::others;
use super::peer::{PeerWord, peer_has_nothing, peer_word};
use super::plan::{Effect, Exit, Phase, Plan, Progress, RunMode};
use super::reason::{Health, Reason, Refusal, Rule, Wait};
use super::roles;
use super::snapshot::{BootMemory, Etcd, Identity, RunningVoter, Snapshot};
use super::start::is_listed;
use super::timing::{
    LEFT_OUT_GRACE_S, LOOK_AT_ONCE_MS, LOOK_FOR_A_LEADER_MS, LOOK_FOR_A_WRITE_MS, PATIENCE_FOR_A_LEADER_MS,
    PATIENCE_WITH_A_STALE_RECORD_MS, START_RESERVE_MS,
};
use super::unstartable;

/// The container was started, by us or before us: its etcd is to answer.
pub(super) fn started(snapshot: &Snapshot, progress: &Progress, mode: &RunMode) -> Plan {
    if !snapshot.container_may_run() {
        let exit = snapshot.container.known().and_then(|container| container.exit.clone());
        let last_words = exit.unwrap_or_else(|| "the container is gone".to_owned());
        let effects = unstartable::counted(snapshot, mode).into_iter().collect();
        return Plan { effects, ..snapshot.refuse(Refusal::EtcdExited { last_words }) };
    }
    match &snapshot.own_etcd {
        Fact::Known(etcd) if etcd.leader.is_some() => serving(snapshot, progress, mode, etcd),
        Fact::Known(_) => await_leader(snapshot, progress, mode, Wait::OwnLeader),
        Fact::Absent => {
            let why = "nothing listens on its client port".to_owned();
            await_leader(snapshot, progress, mode, Wait::OwnAnswer { why })
        }
        Fact::Unknown(_) if snapshot.serves_unseen() => serving_unseen(snapshot, mode),
        Fact::Unknown(_) | Fact::NotAsked => {
            let why = snapshot.own_etcd.why_unknown().to_owned();
            await_leader(snapshot, progress, mode, Wait::OwnAnswer { why })
        }
    }
}

/// etcd answers clients only once it has seen a leader. A plain start without the peer has none; it runs on, and the
/// peer's start, which may come only after ours has ended, gives it one.
fn await_leader(snapshot: &Snapshot, progress: &Progress, mode: &RunMode, wait: Wait) -> Plan {
    let waited_ms = progress.in_phase_ms(snapshot.elapsed_ms);
    if *mode == RunMode::Normally && waited_ms > PATIENCE_WITH_A_STALE_RECORD_MS && is_left_out(snapshot) {
        let effects = vec![Effect::StopContainer { grace_s: LEFT_OUT_GRACE_S }];
        return Plan::then_look(
            effects,
            LOOK_AT_ONCE_MS,
            Progress::default(),
            snapshot.rule(Rule::PeerServesAndThisDataIsNotIts),
        );
    }
    let needs_the_peer = *mode == RunMode::Normally && !peer_leads(snapshot);
    if needs_the_peer && waited_ms > PATIENCE_FOR_A_LEADER_MS {
        let wait = Wait::PeerVote { peer: snapshot.peer_name().to_owned() };
        return Plan::exit(Vec::new(), Exit::Success, Reason::Waiting(wait));
    }
    // Nobody will send the data, and while this action runs Pacemaker does not even fence the peer.
    let peer_is_lost = matches!(peer_word(snapshot), PeerWord::Lost | PeerWord::Down) || peer_has_nothing(snapshot);
    if matches!(mode, RunMode::JoinAsLearner { .. }) && peer_is_lost {
        return snapshot.refuse(Refusal::PeerLostWhileJoining);
    }
    if snapshot.elapsed_ms + START_RESERVE_MS > snapshot.budget_ms {
        return snapshot.refuse(Refusal::EtcdDoesNotAnswer { why: wait.to_string() });
    }
    Plan::then_look(Vec::new(), LOOK_FOR_A_LEADER_MS, progress.clone(), Reason::Waiting(wait))
}

/// Whether the peer serves without the member that we started: our start was decided from a record of the peer that it
/// has replaced since, as after a restored snapshot. Nobody will ever vote for us then.
fn is_left_out(snapshot: &Snapshot) -> bool {
    let record = snapshot.cib.known().and_then(|cib| cib.own_record.as_ref());
    let peer = snapshot.peer_etcd.known().filter(|etcd| etcd.is_voter_with_leader());
    record.zip(peer).is_some_and(|(record, peer)| !is_listed(&record.disk, peer))
}

fn peer_leads(snapshot: &Snapshot) -> bool {
    snapshot.peer_etcd.known().is_some_and(|etcd| etcd.leader.is_some())
}

/// Our etcd serves: write down what must be known of it, in the order in which others may rely on it.
fn serving(snapshot: &Snapshot, progress: &Progress, mode: &RunMode, etcd: &Etcd) -> Plan {
    let mut effects = Vec::new();
    let forces = snapshot.container.known().is_some_and(|container| container.forces_new_cluster);
    if forces {
        effects.push(Effect::SettleConfig);
    }
    if let Some(plan) = claim(snapshot, progress, mode, etcd, &effects) {
        return plan;
    }
    effects.extend(identity_as_seen(snapshot, etcd));
    effects.extend(standalone_as_seen(snapshot, etcd));
    effects.extend(membership::settle(snapshot, etcd));
    effects.extend(others::served(snapshot));
    effects.extend(others::failures(snapshot));
    let promoted = snapshot.memory().is_some_and(|memory| memory.promoted);
    effects.extend(remember_voter(snapshot, etcd, promoted));
    effects.extend(unstartable::forgotten(snapshot));
    if snapshot.authorisation.known().is_some() {
        effects.push(Effect::ConsumeAuthorisation);
    }
    effects.extend(roles::score_as_seen(snapshot, etcd));
    let health = health(etcd);
    Plan::exit(effects, Exit::Success, Reason::Running(health))
}

/// Our etcd serves and tells nothing of itself. What is known of it without that is written down; the rest is not, so that a
/// later loss of the peer may need an operator.
fn serving_unseen(snapshot: &Snapshot, mode: &RunMode) -> Plan {
    let mut effects = Vec::new();
    if snapshot.container.known().is_some_and(|container| container.forces_new_cluster) {
        effects.push(Effect::SettleConfig);
    }
    effects.extend(others::served(snapshot));
    effects.extend(others::failures(snapshot));
    // What was forced has one voter. Should it be slow once, it is not forced once more.
    if let Some(memory) = snapshot.memory().filter(|_| *mode == RunMode::ForceNewCluster) {
        let voter = memory.voter.clone().map(|voter| RunningVoter { sole: true, ..voter });
        effects.push(Effect::Remember(BootMemory { voter, ..memory.clone() }));
    }
    if snapshot.authorisation.known().is_some() {
        effects.push(Effect::ConsumeAuthorisation);
    }
    effects.extend(alarm::no_permission(snapshot));
    Plan::exit(effects, Exit::Success, Reason::Running(unseen(snapshot)))
}

/// How a member stands that tells nothing of itself.
pub(super) fn unseen(snapshot: &Snapshot) -> Health {
    Health::NoPermission { user: snapshot.own_refuses.as_ref().and_then(|refuses| refuses.user.clone()) }
}

/// A voter's claim to go on alone is visible in the CIB before anything counts on it: see [`Record::claims`].
fn claim(snapshot: &Snapshot, progress: &Progress, mode: &RunMode, etcd: &Etcd, first: &[Effect]) -> Option<Plan> {
    let mut effects = first.to_vec();
    effects.push(missing_claim(snapshot, etcd)?);
    let progress = match progress.phase {
        Phase::Started(_) => progress.clone(),
        _ => Progress::enter(Phase::Started(mode.clone()), snapshot.elapsed_ms),
    };
    Some(Plan::then_look(effects, LOOK_FOR_A_WRITE_MS, progress, Reason::Waiting(Wait::OwnRecord)))
}

/// The claim of a voter, where the CIB does not have it.
pub(super) fn missing_claim(snapshot: &Snapshot, etcd: &Etcd) -> Option<Effect> {
    let has_claim = snapshot.cib.known()?.own_record.as_ref().is_some_and(|record| record.claims);
    let may_claim = !etcd.is_learner && snapshot.peer.is_some();
    let record = snapshot.living_record(etcd).filter(|_| may_claim && !has_claim);
    record.map(Effect::PublishRecord)
}

/// The record of a voter whose membership has changed since it was published: the peer, and this node while its etcd is
/// silent, go by what it says of who votes.
pub(super) fn outdated_record(snapshot: &Snapshot, etcd: &Etcd) -> Option<Effect> {
    let published = snapshot.cib.known()?.own_record.as_ref().filter(|record| record.claims && !etcd.is_learner)?;
    let living = snapshot.living_record(etcd)?;
    (classify(&published.disk) != classify(&living.disk)).then_some(Effect::PublishRecord(living))
}

/// What this boot remembers of a serving etcd. Where the note cannot be read it stays as it is: the claim to go on alone
/// rests on what the note says.
pub(super) fn remember_voter(snapshot: &Snapshot, etcd: &Etcd, promoted: bool) -> Option<Effect> {
    let lineage = snapshot.own_lineage()?;
    let voter = has_all_that_was_acknowledged(snapshot, etcd).then(|| RunningVoter {
        cluster_id: etcd.cluster_id,
        member_id: etcd.member_id,
        lineage,
        sole: etcd.has_one_voter(),
    });
    let start_failures = snapshot.cib.known().map_or(0, |cib| cib.own_start_failures);
    Some(Effect::Remember(BootMemory { boot_id: snapshot.boot_id.clone(), voter, promoted, start_failures }))
}

/// Whether a voter holds all that was acknowledged until now. Between the entry that promotes a learner and its application the
/// leader acknowledges alone; what it has committed once it lists this member as a voter is the last of that, so a new
/// voter that has committed as much lacks nothing. The leader itself lacks nothing, and one that voted before has proved it.
fn has_all_that_was_acknowledged(snapshot: &Snapshot, etcd: &Etcd) -> bool {
    let voted = snapshot.running_voter().is_some_and(|voter| voter.member_id == etcd.member_id && !voter.sole);
    let has_caught_up = |leader: &Etcd| {
        let lists_me = leader.voters().any(|member| member.id == etcd.member_id);
        leader.cluster_id == etcd.cluster_id && lists_me && etcd.index >= leader.index
    };
    let is_caught_up = snapshot.peer_etcd.known().is_some_and(has_caught_up);
    !etcd.is_learner && (etcd.has_one_voter() || etcd.leads() || voted || is_caught_up)
}

/// The ids that others read in the CIB are those of the member that runs.
pub(super) fn identity_as_seen(snapshot: &Snapshot, etcd: &Etcd) -> Option<Effect> {
    let seen = Identity { cluster_id: etcd.cluster_id, member_id: etcd.member_id };
    let published = snapshot.cib.known()?.own_identity;
    (published != Some(seen)).then_some(Effect::PublishIdentity(seen))
}

/// `standalone_node` names the sole voter, and nobody while there are two.
pub(super) fn standalone_as_seen(snapshot: &Snapshot, etcd: &Etcd) -> Option<Effect> {
    let cib = snapshot.cib.known()?;
    if etcd.is_learner {
        return None;
    }
    let wanted = etcd.has_one_voter().then(|| snapshot.me.name.clone());
    (cib.standalone_node != wanted).then_some(Effect::SetStandalone(wanted))
}

/// How a serving member stands.
pub(super) fn health(etcd: &Etcd) -> Health {
    match (etcd.is_learner, etcd.voters().count()) {
        (true, _) => Health::Learner,
        (false, 1) => Health::SoleVoter,
        (false, 0 | 2) => Health::VoterOfTwo,
        (false, voters) => Health::VoterAmong { voters },
    }
}
