//! Leadership that moves while both nodes are well: back to the configured primary, or away from a node that users do not reach. Only a
//! monitor of the leader's node moves it, and only where nothing else is to be done.
//!
//! F1 this node leads, the peer is the primary, and both vote. F2 the peer follows this leader closely in two looks, and users reach it. F3
//! nothing is amiss: no alarm, no maintenance, no standby, no change of members. F4 all of that has held for the delay. F5 there is one
//! try in each delay; after three in vain none follows until F1, F2 or F3 has failed once. F6 a try that fails changes nothing: etcd
//! keeps its leader. F7 a leader that users do not reach hands over to a peer that they reach, by the same conditions.

use std::collections::BTreeSet;

use super::alarm;
use super::membership::{has_caught_up, lag_behind, polls_caught_up};
use crate::base::Fact;
use crate::decide::evidence::{
    BootState, Cause, Etcd, Evidence, HandOver, Leading, Member, PeerAgent, PeerNode, Reach,
};
use crate::decide::plan::{Effect, Exit, Plan, Progress};
use crate::decide::reason::{Held, Reason, ReasonStep, Wait};
use crate::decide::recovery::slow;
use crate::decide::timing::{LOOK_AT_A_LEARNER_MS, PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS};

/// Seconds after which this node hands over leadership to the peer because users cannot reach this node.
const CUT_OFF_FOR_S: u64 = 10;
/// Number of consecutive hand-overs that the agent tries before it gives up.
pub const TRIES: u8 = 3;

/// Hands leadership to the peer if a hand-over has been due for long enough; `None` if no hand-over is to be made now.
pub(super) fn decide(evidence: &Evidence, progress: &Progress, etcd: &Etcd, exit: Exit) -> Option<Plan> {
    let (leading, memory) = (evidence.leading.as_deref()?, evidence.boot_state()?);
    let due = memory.hand_over.filter(|due| counted(evidence, etcd) == Some(*due))?;
    let patience_ms = slow::patience_ms(evidence, PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS);
    if due.tries >= TRIES || left_s(leading, due.cause) != Some(0) || evidence.elapsed_ms >= patience_ms {
        return None;
    }
    let (peer, follower) = (evidence.peer_name().to_owned(), evidence.peer_etcd.known()?);
    let polls = polls_caught_up(evidence, progress, Some(lag_behind(etcd, follower)));
    if !has_caught_up(polls) {
        let progress = Progress { polls_caught_up: polls, ..progress.clone() };
        let because = Reason::Waiting(Wait::SecondLook { peer });
        return Some(Plan::then_look(Vec::new(), LOOK_AT_A_LEARNER_MS, progress, because));
    }
    // A try counts before it is made: an agent that dies in between has made it.
    let tried = HandOver { since_s: leading.boot_s, tries: due.tries + 1, ..due };
    let remembered = Effect::Remember(BootState { hand_over: Some(tried), ..memory.clone() });
    let effects = vec![remembered, Effect::MoveLeader { to: follower.member_id }];
    let because = Reason::Step(ReasonStep::GiveLeadership { peer, cause: due.cause });
    Some(Plan::exit(effects, exit, because))
}

/// Returns the hand-over that the agent is to store as due for this boot, with the time since when no obstacle prevents it;
/// `None` if none is due.
pub(super) fn counted(evidence: &Evidence, etcd: &Etcd) -> Option<HandOver> {
    let leading = evidence.leading.as_deref()?;
    let cause = cause(evidence, etcd).filter(|_| held(evidence, etcd).is_none())?;
    let before = evidence.boot_state().and_then(|memory| memory.hand_over);
    let counts = before.filter(|before| before.cause == cause);
    Some(counts.unwrap_or(HandOver { cause, since_s: leading.boot_s, tries: 0 }))
}

/// Returns whether the peer's agent may soon hand leadership to this node. The monitors of this node then observe etcd each time,
/// so that its node attribute `etcd_leader` follows the hand-over with the next monitor.
pub fn may_be_handed_leadership(evidence: &Evidence) -> bool {
    let follows = evidence.own_etcd.known().is_some_and(|etcd| etcd.leader.is_some() && !etcd.leads());
    let gets_it_back = |leading: &Leading| leading.failback && leading.primary.as_ref() == Some(&evidence.me.name);
    let peer_is_cut_off = |reach: &Reach| reach.own == Fact::Known(true) && reach.peer == Fact::Known(false);
    let is_reached = evidence.cib.known().and_then(|cib| cib.reach.as_deref()).is_some_and(peer_is_cut_off);
    follows && (is_reached || evidence.leading.as_deref().is_some_and(gets_it_back))
}

/// Returns why leadership is to leave this node: the peer is the configured primary, or users cannot reach this node. Obstacles
/// to the hand-over do not matter here.
fn cause(evidence: &Evidence, etcd: &Etcd) -> Option<Cause> {
    let leading = evidence.leading.as_deref().filter(|_| etcd.leads())?;
    let peer = evidence.peer.as_ref()?;
    let is_cut_off = |reach: &Reach| reach.own == Fact::Known(false) && reach.peer == Fact::Known(true);
    if evidence.cib.known().and_then(|cib| cib.reach.as_deref()).is_some_and(is_cut_off) {
        return Some(Cause::Reach);
    }
    (leading.failback && leading.primary.as_ref() == Some(&peer.name)).then_some(Cause::Primary)
}

/// Returns the obstacle that keeps the peer from leading. For example the peer lacks a vote or entries, users cannot reach it, or
/// the cluster is in a change.
fn held(evidence: &Evidence, etcd: &Etcd) -> Option<Held> {
    let Some(cib) = evidence.cib.known() else { return Some(Held::CibUnknown) };
    let Some(peer) = evidence.peer_etcd.known() else { return Some(Held::Silent) };
    let is_voter = |entry: &Member| entry.id == peer.member_id && entry.id != etcd.member_id && !entry.is_learner;
    let voters = |of: &Etcd| of.voters().map(|member| member.id).collect::<BTreeSet<_>>();
    let is_settled = |of: &Etcd| of.members.iter().all(|member| !member.is_learner && member.has_started());
    let lag = lag_behind(etcd, peer);
    let conditions = [
        (peer.is_learner || !etcd.members.iter().any(is_voter), Held::NoVoter),
        (peer.cluster_id != etcd.cluster_id || peer.leader != Some(etcd.member_id), Held::AnotherLeader),
        (lag > evidence.promote_max_lag, Held::Lags { lag }),
        (cib.reach.as_ref().is_some_and(|reach| reach.peer == Fact::Known(false)), Held::NotReached),
        (alarm::raised(etcd).is_some() || alarm::raised(peer).is_some(), Held::Alarm),
        (cib.peer_node != PeerNode::Online || cib.peer_agent != PeerAgent::Active, Held::NotActive),
        (cib.peer_leaves, Held::Leaves),
        (!is_settled(etcd) || voters(etcd) != voters(peer) || evidence.machine_is_deleted(), Held::MembersChange),
        (cib.in_maintenance, Held::Maintenance),
    ];
    conditions.into_iter().find(|(is_so, _)| *is_so).map(|(_, held)| held)
}

/// Returns the seconds that are left until a hand-over; `None` if none is stored as due in this boot.
fn left_s(leading: &Leading, cause: Cause) -> Option<u64> {
    let delay_s = match cause {
        Cause::Primary => leading.delay_s,
        Cause::Reach => CUT_OFF_FOR_S,
    };
    Some(delay_s.saturating_sub(leading.ready_for_s?))
}

/// Where leadership is to go, as operators read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// The configured primary already leads.
    PrimaryLeads,
    /// This node is the configured primary, and the peer leads. The peer's agent hands leadership over once this node has been
    /// well for `delay_s` seconds.
    PeerHandsOver { delay_s: u64 },
    /// The configured primary does not lead, and no parameter returns leadership to it.
    NotWanted,
    /// Leadership moves in `seconds` seconds, unless an obstacle appears before.
    In { cause: Cause, seconds: u64 },
    /// Leadership is to move, and the obstacle `by` prevents it. The delay begins once the obstacle ends.
    Held { cause: Cause, by: Held },
    /// Leadership is to move, but every allowed attempt failed, so the agent makes no other attempt for now.
    Rests { cause: Cause },
}

/// Returns where leadership is to go; `None` if no node is configured to lead, or etcd has no leader.
pub fn outlook(evidence: &Evidence) -> Option<Outlook> {
    let leading = evidence.leading.as_deref()?;
    let etcd = evidence.own_etcd.known().filter(|etcd| etcd.leader.is_some())?;
    if let Some(cause) = cause(evidence, etcd) {
        let due = evidence.boot_state().and_then(|memory| memory.hand_over).filter(|due| due.cause == cause);
        return Some(match (held(evidence, etcd), due) {
            (Some(by), _) => Outlook::Held { cause, by },
            (None, Some(due)) if due.tries >= TRIES => Outlook::Rests { cause },
            (None, due) => {
                let whole = Leading { ready_for_s: Some(0), ..leading.clone() };
                let counted = if due.is_some() { leading } else { &whole };
                Outlook::In { cause, seconds: left_s(counted, cause).unwrap_or_default() }
            }
        });
    }
    let primary = leading.primary.as_ref()?;
    let is_here = *primary == evidence.me.name;
    match (etcd.leads(), is_here) {
        (true, true) | (false, false) => Some(Outlook::PrimaryLeads),
        (false, true) if leading.failback => Some(Outlook::PeerHandsOver { delay_s: leading.delay_s }),
        (false, true) | (true, false) => Some(Outlook::NotWanted),
    }
}

impl Outlook {
    /// Returns the outlook as the second half of a sentence that begins with the configured primary. `me` is this node's name.
    pub fn sentence(&self, me: &str, peer: &str) -> String {
        match self {
            Self::PrimaryLeads => "it leads".to_owned(),
            Self::PeerHandsOver { delay_s } => {
                format!("{peer} hands leadership back once this node has been well for {delay_s} s")
            }
            Self::NotWanted => "it follows, and gets no leadership back: failback_to_primary is off".to_owned(),
            Self::In { cause: Cause::Primary, seconds } => format!("leadership goes back to {peer} in {seconds} s"),
            Self::In { cause: Cause::Reach, seconds } => {
                format!("users do not reach {me}: leadership goes to {peer} in {seconds} s")
            }
            Self::Held { cause: Cause::Primary, by } => {
                format!("leadership goes back to {peer} later: {}", by.about(peer))
            }
            Self::Held { cause: Cause::Reach, by } => {
                format!("users do not reach {me}, and leadership stays there: {}", by.about(peer))
            }
            Self::Rests { cause: Cause::Primary } => {
                format!("leadership does not go back to {peer}: {TRIES} tries were in vain")
            }
            Self::Rests { cause: Cause::Reach } => {
                format!("users do not reach {me}, and {TRIES} tries to hand leadership to {peer} were in vain")
            }
        }
    }
}
