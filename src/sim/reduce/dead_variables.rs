//! Parts of a state that nothing reads any more: each is brought to one value, so that states which differ by it only are
//! one. Each rule names every reader of what it drops; what follows from a state is the same before and after.

use crate::decide::Request;
use crate::decide::plan::Phase;
use crate::decide::snapshot::{BootMemory, Lineage, Moment, Record, RunningVoter};
use crate::sim::model::log;
use crate::sim::model::view::THIS_BOOT;
use crate::sim::model::world::{Action, Node, Operation, Run, Vars, Wanted, Word, World};
use crate::sim::store::intern::Id;
use crate::sim::{Sim, Violation};

/// Drops what is dead in `world`.
pub(in crate::sim) fn drop_dead(sim: &mut Sim, world: &mut World) {
    if !sim.bounds.keeps_dead {
        drop_of_nodes(sim, world);
    }
    for node in &mut world.nodes {
        node.data.folded = 0;
    }
}

fn drop_of_nodes(sim: &mut Sim, world: &mut World) {
    for n in 0..2 {
        let node = &mut world.nodes[n];
        drop_of_a_sole_voter(sim, node);
        if node.etcd == Run::Off {
            // Told of a container that runs only, and each start of one writes it anew.
            node.forces = false;
        }
        node.memory = remembered(sim, node);
        if node.unclean {
            // No action begins here before the power was cut, which takes the word along.
            node.word = Word::None;
        }
    }
    for node in world.nodes.iter_mut().filter(|node| !world.joined && !node.on) {
        // Asked when a membership changes, and a machine that boots asks nothing yet; nor does it know what was wanted of it.
        (node.asked, node.wanted) = (false, Wanted::Running);
    }
    for n in 0..2 {
        drop_of_an_action(sim, world, n);
        drop_of_a_record(sim, world, n);
    }
    // As the next move would: what is committed by now is folded.
    let [one, other] = &mut world.nodes;
    log::fold(&mut sim.logs, &mut one.data, &mut other.data);
}

/// What a sole voter knows to be committed counts only where a new cluster is forced, and its never is; when it starts it
/// commits all that it has.
fn drop_of_a_sole_voter(sim: &Sim, node: &mut Node) {
    let is_sole = log::Data::applied(node.data, &sim.logs).conf.has_one_voter()
        && node.data.newest(&sim.logs).conf.has_one_voter();
    if !node.etcd.is_on() && is_sole {
        node.data.commit = node.data.len(&sim.logs);
        node.data.durable = node.data.commit;
    }
}

/// The notify variables that an action's decisions do not ask for.
///
/// - A notification asks which moment of which operation it is, and whether its peer is the one that starts or stops: for
///   the word on the peer (`decide::peer`) that comes before the active ones. A recurring monitor has no variables.
/// - A start asks for the active ones only where the peer's start is not part of the transition; and once its etcd was
///   started, for nothing but whether the peer's machine is there, which the variables do not say.
///   Given up, and not dead, is once no fault is left that they may disagree with what the CIB says by then.
/// - A stop asks whether it is half of a restart only where there is a claim to keep, and after starts in vain it is as good
///   as none; for the rest only before it leaves the member list, which it does not where the peer stops too, nor once
///   etcd is gone, which stays so: only a start or a recovery runs it.
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

/// The nonce of a node's record: asked for at the barrier only, where one of its own comes first.
fn drop_of_a_record(sim: &mut Sim, world: &mut World, n: usize) {
    let phase = |action: Action| sim.progresses.get(action.progress).phase.clone();
    let is_asked = |action: Action| action.plan.is_some() || matches!(phase(action), Phase::Barrier { .. });
    if world.nodes[n].action.is_some_and(is_asked) {
        return;
    }
    for node in &mut world.nodes {
        let record = &mut node.cib.record[n];
        if let Some(told) = sim.records.get(*record).as_ref().filter(|record| record.nonce.is_some()) {
            *record = sim.records.id(Some(Record { nonce: None, ..told.clone() }));
        }
    }
}

/// Whether a start has its etcd running and nothing can lead it back to its first decision: that does only a peer that
/// serves without our member (`decide::serve::is_left_out`). [`DROPPED`] is what no start has: see [`check_progress`].
fn is_past_its_decision(sim: &Sim, world: &World, n: usize, action: Action) -> bool {
    let (mine, others) = (world.nodes[n].data, world.nodes[1 - n].data);
    let may_be_left_out =
        !others.is_blank() && (others.cluster != mine.cluster || !others.newest(&sim.logs).conf.lists(mine.mid));
    matches!(sim.progresses.get(action.progress).phase, Phase::Started(_)) && !may_be_left_out
}

/// The variables of a start that has none to ask for.
const DROPPED: Vars = Vars {
    given: true,
    moment: Moment::Outside,
    operation: Operation::None,
    active: 0,
    start: 0,
    stop: 0,
    in_vain: false,
};

/// A start that decides anew asks for its variables: had they been dropped, the search would go on from a world that is
/// not there.
pub(in crate::sim) fn check_progress(request: Request, notify: Vars, phase: &Phase) -> Result<(), Violation> {
    if request == Request::Start && notify == DROPPED && !matches!(phase, Phase::Started(_)) {
        return Err(Violation::new("the search has dropped what a start asks for".to_owned()));
    }
    Ok(())
}

fn has_left(sim: &Sim, node: &Node) -> bool {
    node.note != 0 && sim.notes.get(node.note).left_at.is_some()
}

/// This boot's memory of a voter. One that holds no voter is written as if there were none: it tells the same, and is
/// written again. On a machine that waits to be fenced no agent asks for it; only whether there is a voter is asked, by
/// the invariant that nobody forces a new cluster beside a peer that may go on (`agent::check_plan`).
fn remembered(sim: &mut Sim, node: &Node) -> Id {
    let BootMemory { voter, promoted, .. } = sim.memories.get(node.memory);
    if voter.is_none() && !promoted {
        return 0;
    }
    if !node.unclean {
        return node.memory;
    }
    let voter = RunningVoter { cluster_id: 0, member_id: 0, lineage: Lineage::default(), sole: false };
    sim.memories.id(BootMemory { boot_id: THIS_BOOT.to_owned(), voter: Some(voter), ..BootMemory::default() })
}
