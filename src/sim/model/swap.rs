//! Exchanges the two nodes in a state, for symmetry reduction. Each pattern names every field. A new field does not
//! compile until its author has decided whether it names a node.

use super::log::Data;
use super::world::{Action, Cib, Newer, Node, Vars, World};

/// Exchanges the names of the two nodes and of their members in `node`. Does not change values that are stored by number.
pub(in crate::sim) fn swap_names(node: &mut Node) {
    let Node {
        data,
        cib,
        action,
        note: _,
        memory: _,
        etcd: _,
        on: _,
        quorum: _,
        forces: _,
        word: _,
        failed: _,
        unclean: _,
        wanted: _,
        promoted: _,
        blind: _,
        led: _,
        lingers: _,
        erased: _,
        asked: _,
        stack: _,
        launching: _,
        torn: _,
        failures: _,
        damage: _,
    } = node;
    let is_blank = data.is_blank();
    let Data { mid, cluster: _, log: _, commit: _, durable: _, folded: _ } = data;
    if !is_blank {
        *mid ^= 8;
    }
    swap_cib(cib);
    cib.lineage = cib.lineage.map(|(forks, by)| (forks, if by == 0 { 0 } else { 3 - by }));
    swap_action(action);
}

/// Exchanges the two nodes in a CIB. Does not change values that are stored by number, nor the nodes that forced new clusters.
pub(in crate::sim) fn swap_cib(cib: &mut Cib) {
    let Cib { machine, agent, record: _, standalone, lineage, recorded, score, told, primary, reached: _, said: _ } =
        cib;
    machine.swap(0, 1);
    agent.swap(0, 1);
    lineage.swap(0, 1);
    for flags in [recorded, score, told] {
        flags.swap(0, 1);
    }
    for node in [standalone, primary] {
        *node = node.map(|node| 1 - node);
    }
}

/// Exchanges the two nodes in an action's notify variables.
pub(in crate::sim) fn swap_action(action: &mut Option<Action>) {
    if let Some(Action { notify, request: _, progress: _, plan: _ }) = action {
        let Vars { active, start, stop, given: _, moment: _, operation: _, in_vain: _ } = notify;
        for nodes in [active, start, stop] {
            *nodes = swapped_set(*nodes);
        }
    }
}

fn swapped_set(nodes: u8) -> u8 {
    (nodes & 1) << 1 | (nodes >> 1)
}

/// Exchanges the two nodes in all fields of `world` except `nodes`.
pub(in crate::sim) fn swap_between(world: &mut World) {
    let World {
        lagging,
        newer,
        nodes: _,
        link: _,
        joined: _,
        acked: _,
        given_up: _,
        words,
        unheard,
        writes: _,
        faults: _,
        tampered: _,
        third_voter: _,
        lost_to_users,
        delay_over,
        etcd_parted: _,
        kept,
        bmc,
        lone,
    } = world;
    kept.swap(0, 1);
    bmc.swap(0, 1);
    lone.swap(0, 1);
    lost_to_users.swap(0, 1);
    delay_over.swap(0, 1);
    *lagging = lagging.map(|node| 1 - node);
    for nodes in [words, unheard] {
        *nodes = swapped_set(*nodes);
    }
    if let Newer::Of(node) = newer {
        *node = 1 - *node;
    }
}
