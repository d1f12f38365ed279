//! Dead-variable reduction. A part of a state that no later move reads gets one fixed value, so that states which
//! differ only in it become one. Each rule names every reader of what it drops. A state has the same successors before
//! and after, unless a rule states that it is not exact.

use crate::decide::Request;
use crate::decide::evidence::{BootState, Lineage, Moment, Operation, PublishedState, RunningVoter};
use crate::decide::plan::Phase;
use crate::sim::model::leading;
use crate::sim::model::log;
use crate::sim::model::view::THIS_BOOT;
use crate::sim::model::world::{Action, Node, Run, Vars, Wanted, Word, World};
use crate::sim::store::intern::Id;
use crate::sim::{Sim, Violation};

/// Drops the parts of `world` that no later move reads.
pub(in crate::sim) fn drop_dead(sim: &mut Sim, world: &mut World) {
    if !sim.bounds.keeps_dead {
        drop_of_nodes(sim, world);
    }
    for n in 0..2 {
        world.nodes[n].data.folded = 0;
        // The delay counts from the moment at which it was remembered, and is read only while it is.
        world.delay_over[n] &= leading::counts(sim.memories.get(world.nodes[n].memory));
    }
}

fn drop_of_nodes(sim: &mut Sim, world: &mut World) {
    for n in 0..2 {
        let node = &mut world.nodes[n];
        drop_of_a_sole_voter(sim, node);
        if node.etcd == Run::Off {
            // Read only while a container runs, and every start writes it again.
            node.forces = false;
        }
        node.memory = remembered(sim, node);
        if node.unclean {
            // No action begins here before the power is cut, and that deletes the confirmation.
            node.word = Word::None;
        }
    }
    for node in &mut world.nodes {
        // Only a vote proxy reads it, and it is cleared before one waits.
        node.led &= node.action.is_some_and(|action| sim.stands_in(action));
    }
    for node in world.nodes.iter_mut().filter(|node| !world.joined && !node.on) {
        // A boot resets both before any move reads them.
        (node.asked, node.wanted) = (false, Wanted::Running);
    }
    for n in 0..2 {
        drop_of_an_action(sim, world, n);
        drop_of_a_record(sim, world, n);
    }
    // Folds the committed entries, as the next move would.
    let [one, other] = &mut world.nodes;
    if !sim.bounds.puts_back {
        log::fold(&mut sim.logs, &mut one.data, &mut other.data);
    }
}

/// Drops the commit index of a sole voter. Only a forced new cluster reads it, and no agent forces one from a sole voter's data. A sole
/// voter commits its whole log when it starts.
fn drop_of_a_sole_voter(sim: &Sim, node: &mut Node) {
    let is_sole = log::Data::applied(node.data, &sim.logs).conf.has_one_voter()
        && node.data.newest(&sim.logs).conf.has_one_voter();
    if !node.etcd.is_on() && is_sole {
        node.data.commit = node.data.len(&sim.logs);
        node.data.durable = node.data.commit;
    }
}

/// Drops the notify variables that no later decision of an action reads.
///
/// - A notification reads its moment and operation, and whether the peer is the node that starts or stops. `decide::peer` reads these
///   before the active nodes, so it does not need the active nodes. A recurring monitor has no variables.
/// - A start reads the active nodes only if the transition does not start the peer. Once it has started its etcd, it reads only whether
///   the peer's machine is there, which is not in the variables. This is not exact: once no fault may happen any more, notify variables
///   that are older than the CIB are not explored.
/// - A stop reads whether it is half of a restart only if there is a claim to keep. After so many failed starts that the agent gives up
///   the claim, it counts as no restart.
/// - A stop reads the other variables only before it leaves the member list. It does not leave the list if the peer stops, too, nor
///   once its etcd is gone. The etcd stays gone, because only a start or a recovery runs etcd.
fn drop_of_an_action(sim: &Sim, world: &mut World, n: usize) {
    let Some(action) = world.nodes[n].action.filter(|action| action.plan.is_none()) else { return };
    let node = &world.nodes[n];
    let (me, peer) = (1_u8 << n, 1_u8 << (1 - n));
    let mut notify = action.notify;
    match action.request {
        Request::Notify => notify.active = 0,
        Request::Start if is_past_its_decision(sim, world, n, action) => notify = DROPPED,
        Request::Start if world.faults == 0 => notify = Vars { active: 0, start: me, ..notify },
        Request::Start if notify.start & peer != 0 => notify.active = 0,
        Request::Stop => {
            let may_keep_a_claim = sim.memories.get(node.memory).voter.is_some() && !has_left(sim, node);
            if notify.in_vain || !may_keep_a_claim {
                (notify.start, notify.in_vain) = (notify.start & peer, false);
            }
            if node.etcd == Run::Off {
                notify = Vars { active: 0, start: notify.start & me, stop: me, ..notify };
            } else if notify.stop & peer != 0 {
                (notify.active, notify.start) = (0, notify.start & me);
            }
        }
        _ => {}
    }
    world.nodes[n].action = Some(Action { notify, ..action });
}

/// Drops the nonce of the record of node `n`. Only the barrier and a vote proxy's announcement read a nonce, and they read the one that
/// they have just written.
fn drop_of_a_record(sim: &mut Sim, world: &mut World, n: usize) {
    let phase = |action: Action| sim.progresses.get(action.progress).phase.clone();
    let is_asked = |action: Action| {
        action.plan.is_some()
            || matches!(phase(action), Phase::Barrier { .. } | Phase::VoteProxy { .. } | Phase::StoodIn)
    };
    if world.nodes[n].action.is_some_and(is_asked) {
        return;
    }
    for node in &mut world.nodes {
        let record = &mut node.cib.record[n];
        if let Some(told) = sim.records.get(*record).as_ref().filter(|record| record.nonce.is_some()) {
            *record = sim.records.id(Some(PublishedState { nonce: None, ..told.clone() }));
        }
    }
}

/// Returns whether a start has run its etcd and can no longer return to its first decision. It would return only if the peer had a
/// leader and did not list this node's member (`decide::serve::is_left_out`).
///
/// A peer that lists this member drops it only by a forced new cluster. The peer forces one only if it does not see that this start is
/// running: it decided on an older observation, its CIB lags, or its CIB is not joined with this node's. No real start has the
/// variables [`DROPPED`]: see [`check_progress`].
fn is_past_its_decision(sim: &Sim, world: &World, n: usize, action: Action) -> bool {
    let (mine, others) = (world.nodes[n].data, world.nodes[1 - n].data);
    let may_be_left_out =
        !others.is_blank() && (others.cluster != mine.cluster || !others.newest(&sim.logs).conf.lists(mine.mid));
    let may_miss_it =
        world.faults > 0 || world.lagging.is_some() || !world.joined || world.nodes[1 - n].action.is_some();
    let has_run = matches!(sim.progresses.get(action.progress).phase, Phase::Started(_));
    has_run && !may_be_left_out && (others.is_blank() || !may_miss_it)
}

/// The notify variables that replace those of a start once the start no longer reads them.
const DROPPED: Vars = Vars {
    given: true,
    moment: Moment::Outside,
    operation: Operation::None,
    active: 0,
    start: 0,
    stop: 0,
    in_vain: false,
};

/// Asserts that [`is_past_its_decision`] is right. If a start returns to its first decision, it reads its notify variables, so they
/// must not have been dropped.
pub(in crate::sim) fn check_progress(request: Request, notify: Vars, phase: &Phase) -> Result<(), Violation> {
    if request == Request::Start && notify == DROPPED && !matches!(phase, Phase::Started(_)) {
        return Err(Violation::new("the search has dropped what a start asks for".to_owned()));
    }
    Ok(())
}

fn has_left(sim: &Sim, node: &Node) -> bool {
    node.note != 0 && sim.notes.get(node.note).left_at.is_some()
}

/// Returns the number of the [`BootState`] of `node`, or that of a simpler one. Returns 0 if no rule reads anything in it, because it
/// has no voter, no promotion, no end of the log and no counted time.
///
/// On a machine that waits to be fenced, no agent reads the `BootState`. Only an invariant reads whether it has a voter: no node forces
/// a new cluster next to a peer that may run standalone (`agent::check_plan`).
fn remembered(sim: &mut Sim, node: &Node) -> Id {
    let BootState { voter, promoted, ended_at, leaderless_since_s, .. } = sim.memories.get(node.memory);
    if voter.is_none() && !promoted && ended_at.is_none() && leaderless_since_s.is_none() {
        return 0;
    }
    if !node.unclean {
        return node.memory;
    }
    if voter.is_none() {
        return 0;
    }
    let voter =
        RunningVoter { cluster_id: 0, member_id: 0, lineage: Lineage::default(), sole: false, among_many: false };
    sim.memories.id(BootState { boot_id: THIS_BOOT.to_owned(), voter: Some(voter), ..BootState::default() })
}
