//! A node that boots without its peer, and the process there that asks the peer's BMC (`tandem lone-boot`).
//!
//! Each observation is one decision of the real core. The decided effect happens later, so that anything may come in
//! between. The time for which the peer is off is abstracted: a row of answers Off is long enough at any time, unless
//! the peer is switched on.

use super::pacemaker;
use super::view;
use super::world::{Action, Bmc, Cib, Lone, NAMES, Said, Stack, Vars, World};
use crate::base::Fact;
use crate::decide::evidence::{Done, Evidence, Identity, LoneBoot, PeerBmc, PeerNode, Power, Version};
use crate::decide::reason::LoneBootStep;
use crate::decide::{self, Effect, Plan, Progress, Reason, Request};
use crate::sim::mutant::Mutant;
use crate::sim::{Sim, Violation};

/// Returns the power state of node `n`'s peer, as the peer's BMC reports it.
fn power(world: &World, n: usize) -> Power {
    match (world.bmc[1 - n], world.nodes[1 - n].on) {
        (Bmc::Silent, _) => Power::Silent { why: "no answer".to_owned() },
        (Bmc::Honest, true) => Power::On,
        (Bmc::Honest, false) | (Bmc::Anothers, _) => {
            let for_ms = if world.lone[n] == Lone::Looks { 0 } else { u64::MAX };
            Power::Off { for_ms, age_ms: 0 }
        }
    }
}

fn uuid(n: usize) -> String {
    format!("uuid of {}", NAMES[n])
}

/// Returns the facts that `tandem lone-boot` on node `n` observes.
fn facts(sim: &Sim, world: &World, n: usize) -> LoneBoot {
    let me = &world.nodes[n];
    let [newest, applied] = [me.data.newest(&sim.logs).conf, me.data.applied(&sim.logs).conf];
    let found = if world.bmc[1 - n] == Bmc::Anothers { "another".to_owned() } else { uuid(1 - n) };
    let release = if sim.bounds.acks_before_sync { 4 } else { 21 };
    LoneBoot {
        is_wanted: true,
        wait_s: 120,
        quorum: Fact::Known(me.quorum),
        waits_for_all: Fact::Known(!me.quorum),
        // Without quorum, only a peer that this boot has held off is known to be down.
        peer_was_seen: Fact::Known(!matches!(me.cib.machine[1 - n], PeerNode::NeverSeen | PeerNode::Down)),
        voters_are_committed: Fact::Known(newest.voters == applied.voters),
        release: Fact::Known(Version { minor: 5, patch: release }),
        peer_bmc: Fact::Known(PeerBmc {
            power: power(world, n),
            found: Some(found),
            by_device: Some(uuid(1 - n)),
            by_agent: Some(uuid(1 - n)),
        }),
        own_uuid: Fact::Known(uuid(n)),
        done: Done {
            is_announced: !matches!(world.lone[n], Lone::Looks | Lone::OffForLong),
            is_held_off: matches!(world.lone[n], Lone::HeldOff | Lone::Ends),
        },
    }
}

/// Returns the evidence from which `tandem lone-boot` on node `n` decides. If a rule is broken on purpose (see [`Mutant`]), the
/// evidence may differ.
fn evidence(sim: &Sim, world: &World, n: usize) -> Evidence {
    let action = Action { request: Request::LoneBoot, notify: Vars::default(), progress: 0, plan: None };
    let mut evidence = view::evidence(sim, &view::look(sim, world, n, action), 0);
    let me = &world.nodes[n];
    evidence.data_in_use = Fact::Known(me.etcd.is_on());
    evidence.lone_boot = Some(Box::new(facts(sim, world, n)));
    if let Fact::Known(cib) = &mut evidence.cib {
        // The published ids are those of the data, unless the disk is a copy of the other node's.
        let is_own = super::log::node_of(me.data.mid) == n;
        cib.own_identity = (me.cib.recorded[n] && is_own)
            .then(|| Identity { cluster_id: me.data.cluster.into(), member_id: me.data.mid.into() });
    }
    sim.mutant.blind(&mut evidence, &Progress::default());
    evidence
}

fn plan(sim: &Sim, world: &World, n: usize) -> Plan {
    decide::decide(Request::LoneBoot, &evidence(sim, world, n), &Progress::default()).plan
}

/// Returns whether `tandem lone-boot` runs on node `n`. It runs until the node has quorum, or until Pacemaker ends.
fn runs(sim: &Sim, world: &World, n: usize) -> bool {
    let node = &world.nodes[n];
    sim.bounds.lone_boot && node.on && node.stack == Stack::Up && !node.quorum
}

/// Lets so much time pass that `tandem lone-boot` on node `n` no longer has to wait, because the peer has been off for long enough.
/// Returns false if the process is not in this wait.
pub(in crate::sim) fn off_for_long(sim: &Sim, world: &mut World, n: usize) -> bool {
    let waits = |plan: &Plan| matches!(plan.because, Reason::LoneBoot { step: LoneBootStep::Waits { .. }, .. });
    let is_over = runs(sim, world, n) && world.lone[n] == Lone::Looks && waits(&plan(sim, world, n));
    if is_over {
        world.lone[n] = Lone::OffForLong;
    }
    is_over
}

/// Lets `tandem lone-boot` on node `n` observe and decide. Returns whether the decision changes its progress.
pub(in crate::sim) fn look(sim: &mut Sim, world: &mut World, n: usize) -> bool {
    if !runs(sim, world, n) || is_pending(world.lone[n]) {
        return false;
    }
    let Plan { effects, because, .. } = plan(sim, world, n);
    sim.said.id(Some(because));
    let next = match effects.first() {
        // Only the next decision of this process reads the announcement.
        Some(Effect::AnnounceLoneBoot(_)) => Lone::Announced,
        Some(Effect::HoldPeerOff(_)) => Lone::Holds,
        Some(Effect::CancelWaitForAll) => Lone::Ends,
        _ => return false,
    };
    std::mem::replace(&mut world.lone[n], next) != next
}

fn is_pending(lone: Lone) -> bool {
    matches!(lone, Lone::Holds | Lone::Ends)
}

/// Performs the effect that `tandem lone-boot` on node `n` has decided on. Returns false if no effect is pending.
pub(in crate::sim) fn act(sim: &Sim, world: &mut World, n: usize) -> Result<bool, Violation> {
    if !runs(sim, world, n) {
        return Ok(false);
    }
    match world.lone[n] {
        Lone::Holds => hold_off(sim, world, n)?,
        Lone::Ends => end_the_wait(sim, world, n)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Asks the peer's BMC once more. If it reports Off, has the fencer fence the peer, so that the peer stays off. If not, for example
/// because the peer was switched on meanwhile, changes nothing. The node then waits again until the peer has been off for long enough.
fn hold_off(sim: &Sim, world: &mut World, n: usize) -> Result<(), Violation> {
    let bmc = evidence(sim, world, n).lone_boot.and_then(|lone_boot| lone_boot.peer_bmc.known().cloned());
    let is_off = |bmc: PeerBmc| matches!(bmc.power, Power::Off { .. }) && bmc.found == bmc.by_device;
    if !bmc.is_some_and(is_off) && sim.mutant != Mutant::OneLookIsEnough {
        world.lone[n] = Lone::Looks;
        return Ok(());
    }
    if sim.judges() && world.nodes[1 - n].on {
        return Err(Violation::new(format!("{} boots alone and switches {} off, which is on", NAMES[n], NAMES[1 - n])));
    }
    pacemaker::confirm_down(world, n);
    world.lone[n] = Lone::HeldOff;
    Ok(())
}

/// Gives node `n` quorum without its peer, and asserts that its data has all acknowledged writes.
///
/// There is one exception. A confirmation on the other node may have made a history there, and `n` could not learn of it. In that case
/// `n`'s data may lack the writes of that history, and an operator chooses one of the two later.
fn end_the_wait(sim: &Sim, world: &mut World, n: usize) -> Result<(), Violation> {
    let missing = world.acked & !world.given_up & !world.nodes[n].data.newest(&sim.logs).writes;
    let is_unheard = world.unheard & (1 << n) != 0;
    if sim.judges() && missing != 0 && !is_unheard {
        return Err(Violation::new(format!("{} boots alone, and its data lacks an acknowledged write", NAMES[n])));
    }
    world.nodes[n].quorum = true;
    world.lone[n] = Lone::Looks;
    Ok(())
}

/// On each node, lets `tandem lone-boot` measure anew how long the peer has been off, unless the peer's BMC still reports Off. An effect
/// that was already decided on still happens, unless the node or its Pacemaker is gone.
pub(in crate::sim) fn settle(sim: &Sim, world: &mut World) {
    if !sim.bounds.lone_boot {
        return;
    }
    for n in 0..2 {
        let is_off = world.bmc[1 - n] == Bmc::Honest && !world.nodes[1 - n].on;
        // Under some mutants, the node takes a machine for off that is on. Then the time passes, too.
        let is_believed = is_taken_for_off(sim, world, n);
        if !runs(sim, world, n) || !is_off && !is_believed && !is_pending(world.lone[n]) {
            world.lone[n] = Lone::Looks;
        }
    }
}

fn is_taken_for_off(sim: &Sim, world: &World, n: usize) -> bool {
    match sim.mutant {
        Mutant::OneLookIsEnough | Mutant::OnIsOff => world.bmc[1 - n] == Bmc::Honest,
        Mutant::SilenceIsOff => world.bmc[1 - n] == Bmc::Silent,
        Mutant::AnothersOffCounts => world.bmc[1 - n] == Bmc::Anothers,
        _ => false,
    }
}

/// Records in the CIB whether the leader has two voters (`etcd_redundancy`).
pub(super) fn say(cib: &mut Cib, is_redundant: bool) {
    cib.said = if is_redundant { Said::Redundant } else { Said::Alone };
}
