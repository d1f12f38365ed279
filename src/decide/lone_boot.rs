//! Whether a node that boots without its peer may have quorum: rules L1 to L5. `docs/design/lone-boot.md` has the argument.
//!
//! Nothing of etcd is decided here. A node that is let through has quorum, and Pacemaker starts etcd by the rules of a start.

use super::evidence::{Cib, DataDir, Evidence, History, Lineage, LoneBoot, Obstacle, Power, PublishedState, Version};
use super::plan::{Effect, Exit, Plan, Progress};
use super::reason::{LoneBootStep, NoLoneBoot, Reason, Refusal};
use super::standing::{Standing, classify};
use super::start::put_back;
use crate::base::Fact;

/// Milliseconds between two observations of the cluster and the BMC.
const LOOK_AGAIN_MS: u64 = 10_000;
/// Greatest age, in milliseconds, that the BMC's last report may have for a lone boot.
const OLDEST_LOOK_MS: u64 = 5_000;
/// First releases of etcd 3.4 and 3.5 that sync a write to disk before acknowledging it. Every release from 3.6 on does so.
const SYNCS: [Version; 2] = [Version { minor: 4, patch: 21 }, Version { minor: 5, patch: 5 }];

/// Result of the rules of a lone boot, which decide whether this node may have quorum without its peer. A script reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoneBootOutlook {
    /// The node has quorum already, or boots alone once its peer has been off for long enough.
    Would,
    WouldNot,
    /// A fact that the rules need could not be asked.
    NotKnown,
}

/// Returns the result that a script reads, from the reason of a decision on [`super::Request::LoneBoot`].
pub fn lone_boot_outlook(because: &Reason) -> LoneBootOutlook {
    match because {
        Reason::Refused { refusal: Refusal::LoneBoot { why }, .. } if why.is_unknown() => LoneBootOutlook::NotKnown,
        Reason::Refused { .. } => LoneBootOutlook::WouldNot,
        _ => LoneBootOutlook::Would,
    }
}

/// Decides one round (observe, decide, act) of a lone boot. Before each step it checks all rules L1 to L5, and that the previous
/// step is done.
pub(super) fn decide(evidence: &Evidence) -> Plan {
    let Some(lone_boot) = evidence.lone_boot.as_deref() else { return refuse(evidence, NoLoneBoot::NotWanted) };
    if lone_boot.quorum == Fact::Known(true) {
        return Plan::exit(Vec::new(), Exit::Success, step(evidence, LoneBootStep::HasQuorum));
    }
    match off_for_ms(evidence, lone_boot) {
        Err(why) => refuse(evidence, why),
        Ok(for_ms) => next_step(evidence, lone_boot, for_ms),
    }
}

fn refuse(evidence: &Evidence, why: NoLoneBoot) -> Plan {
    evidence.refuse(Refusal::LoneBoot { why })
}

fn step(evidence: &Evidence, step: LoneBootStep) -> Reason {
    Reason::LoneBoot { step, peer: evidence.peer_name().to_owned() }
}

fn next_step(evidence: &Evidence, lone_boot: &LoneBoot, for_ms: u64) -> Plan {
    let peer = evidence.peer_name().to_owned();
    let wait_s = lone_boot.wait_s;
    let (effect, to_do) = match (for_ms < wait_s.saturating_mul(1_000), lone_boot.done) {
        (true, _) => (None, LoneBootStep::Waits { off_s: for_ms / 1_000, wait_s }),
        (false, done) if !done.is_announced => {
            (Some(Effect::AnnounceLoneBoot(evidence.me.name.clone())), LoneBootStep::Announces)
        }
        (false, done) if !done.is_held_off => (Some(Effect::HoldPeerOff(peer)), LoneBootStep::HoldsPeerOff),
        (false, _) => (Some(Effect::CancelWaitForAll), LoneBootStep::EndsTheWait),
    };
    let after_ms = if effect.is_some() { 0 } else { LOOK_AGAIN_MS };
    Plan::then_look(effect.into_iter().collect(), after_ms, Progress::default(), step(evidence, to_do))
}

/// Checks rules L1 to L5. Returns for how many milliseconds the peer was off, or the rule that forbids a lone boot.
fn off_for_ms(evidence: &Evidence, lone_boot: &LoneBoot) -> Result<u64, NoLoneBoot> {
    if !lone_boot.is_wanted {
        return Err(NoLoneBoot::NotWanted);
    }
    let cib = waits_for_a_peer_unseen(evidence, lone_boot)?;
    let history = is_the_only_voter(evidence, lone_boot, cib)?;
    knows_of_nothing_newer(evidence, cib, history)?;
    release_syncs(lone_boot)?;
    peer_is_off(lone_boot)
}

/// Returns the value of a fact that a rule needs, or an error if the fact is unknown.
fn is(fact: &Fact<bool>) -> Result<bool, NoLoneBoot> {
    fact.known().copied().ok_or_else(|| NoLoneBoot::ClusterUnknown { why: fact.why_unknown().to_owned() })
}

/// Checks rule L1: Corosync waits for a peer that it has not seen in this boot, no etcd runs on this node, and Pacemaker manages
/// etcd.
fn waits_for_a_peer_unseen<'a>(evidence: &'a Evidence, lone_boot: &LoneBoot) -> Result<&'a Cib, NoLoneBoot> {
    if evidence.peer.is_none() {
        return Err(NoLoneBoot::NoPeer);
    }
    let why = || NoLoneBoot::ClusterUnknown { why: evidence.cib.why_unknown().to_owned() };
    let cib = evidence.cib.known().ok_or_else(why)?;
    is(&lone_boot.quorum)?;
    if !is(&lone_boot.waits_for_all)? {
        return Err(NoLoneBoot::NotWaiting);
    }
    if is(&lone_boot.peer_was_seen)? {
        return Err(NoLoneBoot::PeerWasSeen);
    }
    let is_open = evidence.data_in_use != Fact::Known(false);
    let runs = evidence.container_may_run() || is_open || !evidence.own_etcd.is_absent();
    if runs || evidence.may_be_launching() || evidence.local.obstacle == Some(Obstacle::StaticPod) {
        return Err(NoLoneBoot::EtcdRuns);
    }
    if cib.in_maintenance { Err(NoLoneBoot::Maintenance) } else { Ok(cib) }
}

/// Checks rule L2. A committed change in this node's data has to leave this node's member as the only voter. The data has to
/// belong to the member that last served on this node.
fn is_the_only_voter<'a>(evidence: &'a Evidence, lone_boot: &LoneBoot, cib: &Cib) -> Result<&'a History, NoLoneBoot> {
    let why = || NoLoneBoot::DataUnknown { why: evidence.disk.why_unknown().to_owned() };
    let disk = evidence.disk.known().ok_or_else(why)?;
    let why = || NoLoneBoot::DataUnknown { why: evidence.note.why_unknown().to_owned() };
    let note = evidence.last_note().ok_or_else(why)?;
    let DataDir::Present(history) = disk else { return Err(NoLoneBoot::NoData) };
    match classify(disk) {
        Standing::SoleVoter => {}
        Standing::VoterBeside(_) | Standing::VoterAmongMany => return Err(NoLoneBoot::OthersVote),
        Standing::Learner => return Err(NoLoneBoot::Learner),
        Standing::Departed => return Err(NoLoneBoot::Left),
        Standing::Nothing => return Err(NoLoneBoot::NoData),
    }
    if let Some(third_voter) = &cib.third_voter {
        return Err(NoLoneBoot::ThirdVoter { name: third_voter.name.clone() });
    }
    // A note about other data counts as one that has left, and so does a copied disk's.
    if note.left_at.is_some() {
        return Err(NoLoneBoot::Left);
    }
    if note.joins {
        return Err(NoLoneBoot::Joins);
    }
    if history.database_ahead.is_some() {
        return Err(NoLoneBoot::DatabaseAhead);
    }
    // A removal that only this log has does not bind the peer, which votes by its own log.
    match &lone_boot.voters_are_committed {
        Fact::Known(true) => {}
        Fact::Known(false) => return Err(NoLoneBoot::NotCommitted),
        other => return Err(NoLoneBoot::DataUnknown { why: other.why_unknown().to_owned() }),
    }
    // A snapshot that was restored, another machine's disk, and a CIB that began anew prove nothing of the peer.
    let served = cib.own_identity.map(|ran| (ran.cluster_id, ran.member_id));
    if served != Some((history.cluster_id, history.member_id)) {
        return Err(NoLoneBoot::AnotherMember { member: history.member_id });
    }
    Ok(history)
}

/// Checks rule L3: nothing in the CIB is newer than this node's data.
fn knows_of_nothing_newer(evidence: &Evidence, cib: &Cib, history: &History) -> Result<(), NoLoneBoot> {
    let record = PublishedState::of(String::new(), DataDir::Present(history.clone()), Lineage::default());
    if put_back::copied(evidence, &record, cib).is_some() {
        return Err(NoLoneBoot::AnotherMember { member: history.member_id });
    }
    if evidence.was_left_behind() {
        return Err(NoLoneBoot::LeftBehind);
    }
    if put_back::put_back_from(evidence, history).is_some() {
        return Err(NoLoneBoot::PutBack);
    }
    match &cib.redundancy {
        Fact::Known(said) if said.is_redundant => return Err(NoLoneBoot::Redundant),
        Fact::Known(_) => {}
        _ => return Err(NoLoneBoot::NotSaidAlone),
    }
    let names_the_peer = |name: &Option<String>| name.as_deref() == Some(evidence.peer_name());
    if names_the_peer(&cib.standalone_node) || names_the_peer(&cib.primary) {
        return Err(NoLoneBoot::PeerIsNamed);
    }
    Ok(())
}

/// Checks rule L4: the release of etcd that wrote the data syncs every entry to disk before acknowledging it. This includes the
/// entry that promotes the peer.
fn release_syncs(lone_boot: &LoneBoot) -> Result<(), NoLoneBoot> {
    let version = match &lone_boot.release {
        Fact::Known(version) => *version,
        Fact::Absent => return Err(NoLoneBoot::ReleaseUnknown { why: "no container of it is here".to_owned() }),
        other => return Err(NoLoneBoot::ReleaseUnknown { why: other.why_unknown().to_owned() }),
    };
    let first = SYNCS.iter().find(|first| first.minor == version.minor);
    let syncs = first.map_or(version.minor > SYNCS[1].minor, |first| version.patch >= first.patch);
    if syncs { Ok(()) } else { Err(NoLoneBoot::Release { version }) }
}

/// Checks rule L5: the BMC of the peer's own machine has reported Off and nothing else. Returns for how many milliseconds it has
/// done so.
fn peer_is_off(lone_boot: &LoneBoot) -> Result<u64, NoLoneBoot> {
    let bmc = match &lone_boot.peer_bmc {
        Fact::Known(bmc) => bmc,
        Fact::Absent => return Err(NoLoneBoot::NoDevice),
        other => return Err(NoLoneBoot::DeviceUnknown { why: other.why_unknown().to_owned() }),
    };
    if let Power::Silent { why } = &bmc.power {
        return Err(NoLoneBoot::Silent { why: why.clone() });
    }
    let expected = [&bmc.by_device, &bmc.by_agent].map(|uuid| uuid.as_ref());
    let Some(found) = bmc.found.as_ref().filter(|_| expected.iter().any(Option::is_some)) else {
        return Err(NoLoneBoot::NoUuid);
    };
    // Where both name a machine, both have to name this one: a peer with disks that were moved runs on another machine.
    if expected.into_iter().flatten().any(|uuid| uuid != found) {
        return Err(NoLoneBoot::AnotherMachine { found: found.clone() });
    }
    // Some boards have one UUID in all machines, and a device may name this node's own BMC.
    if lone_boot.own_uuid.known().is_none_or(|own| own == found) {
        return Err(NoLoneBoot::OwnUuid);
    }
    match &bmc.power {
        Power::Off { age_ms, .. } if *age_ms > OLDEST_LOOK_MS => Err(NoLoneBoot::OldLook { age_s: age_ms / 1_000 }),
        Power::Off { for_ms, .. } => Ok(*for_ms),
        Power::On => Err(NoLoneBoot::On),
        Power::Unclear { says } => Err(NoLoneBoot::Unclear { says: says.clone() }),
        Power::Silent { why } => Err(NoLoneBoot::Silent { why: why.clone() }),
    }
}
