//! Parts of a state that nothing reads any more: each is brought to one value, so that states which differ by it only are
//! one. Each rule names every reader of what it drops; what follows from a state is the same before and after.

use super::log;
use super::view::THIS_BOOT;
use super::world::{Action, Node, Run, Vars, Word, World};
use super::{Sim, intern::Id};
use crate::decide::Request;
use crate::decide::snapshot::{BootMemory, Lineage, RunningVoter};

/// Drops what is dead in `world`.
pub(super) fn drop_dead(sim: &mut Sim, world: &mut World) {
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
        drop_of_an_action(node, n);
        node.memory = remembered(sim, node);
        if node.unclean {
            // No action begins here before the power was cut, which takes the word along.
            node.word = Word::None;
        }
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
/// - A start asks for the active ones only where the peer's start is not part of the transition.
/// - A stop asks whether it is half of a restart; for the rest only before it leaves the member list, which it does not
///   where the peer stops too, nor once etcd is gone, which stays so: only a start or a recovery runs it.
fn drop_of_an_action(node: &mut Node, n: usize) {
    let Some(action) = node.action.filter(|action| action.plan.is_none()) else { return };
    let (me, peer) = (1_u8 << n, 1_u8 << (1 - n));
    let vars = action.notify;
    let (mut notify, mut progress) = (vars, action.progress);
    match action.request {
        Request::Notify => notify.active = 0,
        Request::Start if vars.start & peer != 0 => notify.active = 0,
        Request::Stop if node.etcd == Run::Off => {
            notify = Vars { active: 0, start: vars.start & me, stop: me, ..vars };
            // A stop that finds nothing running ends, however far it was.
            progress = 0;
        }
        Request::Stop if vars.stop & peer != 0 => {
            (notify.active, notify.start) = (0, vars.start & me);
        }
        _ => {}
    }
    node.action = Some(Action { notify, progress, ..action });
}

/// This boot's memory of a voter. One that holds no voter is written as if there were none: it tells the same, and is
/// written again. On a machine that waits to be fenced no agent asks for it; only whether there is a voter is asked, by
/// the invariant that nobody forces a new cluster beside a peer that may go on (`agent::check_plan`).
fn remembered(sim: &mut Sim, node: &Node) -> Id {
    let Some(_) = sim.memories.get(node.memory).voter else { return 0 };
    if !node.unclean {
        return node.memory;
    }
    let voter = RunningVoter { cluster_id: 0, member_id: 0, lineage: Lineage::default(), sole: false };
    sim.memories.id(BootMemory { boot_id: THIS_BOOT.to_owned(), voter: Some(voter), ..BootMemory::default() })
}
