//! Roles of a promotable clone: Promoted is a voting member, Unpromoted a learner (or a voter that is not promoted yet).

use super::fact::Fact;
use super::plan::{Effect, Exit, Plan, Progress, Via};
use super::reason::{Health, Reason, Refusal, Step};
use super::serve::{health, remember_voter};
use super::snapshot::{BootMemory, Etcd, Snapshot};

/// The promotion score of a voter. A learner has none, so Pacemaker does not promote it.
const VOTER_SCORE: u32 = 1000;
/// A voter has the score, a learner has none.
pub(super) fn score_as_seen(snapshot: &Snapshot, etcd: &Etcd) -> Option<Effect> {
    let wanted = (!etcd.is_learner).then_some(VOTER_SCORE);
    let seen = snapshot.cib.known()?.own_promotion_score;
    (snapshot.promotable && seen != wanted).then_some(Effect::SetPromotionScore(wanted))
}

/// How long a promotion waits for the vote.
const PATIENCE_MS: u64 = 15_000;

/// A voter is promoted; a learner asks to become one.
pub(super) fn decide_promote(snapshot: &Snapshot, progress: &Progress) -> Plan {
    let Fact::Known(etcd) = &snapshot.own_etcd else {
        return snapshot.refuse(Refusal::EtcdDoesNotAnswer { why: snapshot.own_etcd.why_unknown().to_owned() });
    };
    if !etcd.is_learner {
        return Plan::exit(vec![remember_voter(snapshot, etcd, true)], Exit::Success, Reason::Running(health(etcd)));
    }
    if snapshot.elapsed_ms > PATIENCE_MS {
        return snapshot.refuse(Refusal::NotAVoterYet);
    }
    let lag = snapshot.peer_etcd.known().map(|peer| peer.index.saturating_sub(etcd.index));
    let close = lag.is_some_and(|lag| lag <= snapshot.promote_max_lag);
    let polls = if close { progress.polls_caught_up + 1 } else { 0 };
    let effects =
        if polls >= 2 { vec![Effect::PromoteMember { id: etcd.member_id, via: Via::Peer }] } else { Vec::new() };
    let because = Reason::Step(Step::AskPeerToPromote { peer: snapshot.peer_name().to_owned() });
    Plan::then_look(effects, 250, Progress { polls_caught_up: polls, ..progress.clone() }, because)
}

/// A vote cannot be laid down without leaving, and leaving belongs to `stop`: only the role is given back.
pub(super) fn decide_demote(snapshot: &Snapshot) -> Plan {
    let memory = snapshot.memory().cloned().unwrap_or_default();
    let effects = vec![Effect::Remember(BootMemory { boot_id: snapshot.boot_id.clone(), promoted: false, ..memory })];
    if snapshot.container_may_run() {
        return Plan::exit(effects, Exit::Success, Reason::NothingToDo);
    }
    Plan::exit(effects, Exit::NotRunning, Reason::Running(Health::NotRunning))
}
