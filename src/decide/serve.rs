//! An etcd that was started: it is to answer, and what others rely on is written down once it serves.

use super::fact::Fact;
use super::membership;
use super::others;
use super::peer::{PeerWord, peer_has_nothing, peer_word};
use super::plan::{Effect, Exit, Phase, Plan, Progress, RunMode};
use super::reason::{Health, Reason, Refusal, Rule, Wait};
use super::roles;
use super::snapshot::{BootMemory, Etcd, Identity, RunningVoter, Snapshot};
use super::start::{RESERVE_MS, is_listed};

/// How long a plain start waits for a leader. Without one etcd runs on and waits for its peer's vote.
const PATIENCE_FOR_A_LEADER_MS: u64 = 5_000;
/// How long a plain start waits for a leader before it looks whether the peer serves without it.
const PATIENCE_WITH_A_STALE_RECORD_MS: u64 = 1_000;
/// A member that nobody lists has nothing to finish.
const LEFT_OUT_GRACE_S: u64 = 1;

/// The container was started, by us or before us: its etcd is to answer.
pub(super) fn started(snapshot: &Snapshot, progress: &Progress, mode: &RunMode) -> Plan {
    if !snapshot.container_may_run() {
        let exit = snapshot.container.known().and_then(|container| container.exit.clone());
        let last_words = exit.unwrap_or_else(|| "the container is gone".to_owned());
        return snapshot.refuse(Refusal::EtcdExited { last_words });
    }
    match &snapshot.own_etcd {
        Fact::Known(etcd) if etcd.leader.is_some() => serving(snapshot, progress, mode, etcd),
        Fact::Known(_) => await_leader(snapshot, progress, mode, Wait::OwnLeader),
        Fact::Absent => {
            let why = "nothing listens on its client port".to_owned();
            await_leader(snapshot, progress, mode, Wait::OwnAnswer { why })
        }
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
        return Plan::then_look(effects, 0, Progress::default(), snapshot.rule(Rule::PeerServesAndThisDataIsNotIts));
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
    if snapshot.elapsed_ms + RESERVE_MS > snapshot.budget_ms {
        return snapshot.refuse(Refusal::EtcdDoesNotAnswer { why: wait.to_string() });
    }
    Plan::then_look(Vec::new(), 100, progress.clone(), Reason::Waiting(wait))
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
    let promoted = snapshot.memory().is_some_and(|memory| memory.promoted);
    effects.push(remember_voter(snapshot, etcd, promoted));
    if snapshot.authorisation.known().is_some() {
        effects.push(Effect::ConsumeAuthorisation);
    }
    effects.extend(roles::score_as_seen(snapshot, etcd));
    let health = health(etcd);
    Plan::exit(effects, Exit::Success, Reason::Running(health))
}

/// A voter's claim to go on alone is visible in the CIB before anything counts on it: see [`Record::claims`].
fn claim(snapshot: &Snapshot, progress: &Progress, mode: &RunMode, etcd: &Etcd, first: &[Effect]) -> Option<Plan> {
    let mut effects = first.to_vec();
    effects.push(missing_claim(snapshot, etcd)?);
    let progress = match progress.phase {
        Phase::Started(_) => progress.clone(),
        _ => Progress::enter(Phase::Started(mode.clone()), snapshot.elapsed_ms),
    };
    Some(Plan::then_look(effects, 50, progress, Reason::Waiting(Wait::OwnRecord)))
}

/// The claim of a voter, where the CIB does not have it.
pub(super) fn missing_claim(snapshot: &Snapshot, etcd: &Etcd) -> Option<Effect> {
    let has_claim = snapshot.cib.known()?.own_record.as_ref().is_some_and(|record| record.claims);
    let may_claim = !etcd.is_learner && snapshot.peer.is_some();
    (may_claim && !has_claim).then(|| Effect::PublishRecord(snapshot.living_record(etcd)))
}

/// What this boot remembers of a serving etcd.
pub(super) fn remember_voter(snapshot: &Snapshot, etcd: &Etcd, promoted: bool) -> Effect {
    let voter = (!etcd.is_learner).then(|| RunningVoter {
        cluster_id: etcd.cluster_id,
        member_id: etcd.member_id,
        lineage: snapshot.own_lineage(),
        sole: etcd.has_one_voter(),
    });
    let start_failures = snapshot.cib.known().map_or(0, |cib| cib.own_start_failures);
    Effect::Remember(BootMemory { boot_id: snapshot.boot_id.clone(), voter, promoted, start_failures })
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
        (false, _) => Health::VoterOfTwo,
    }
}
