//! One turn: what was seen of the Machines and the members, and what follows for the hooks.

use std::path::Path;

use serde::Serialize;

use super::due::{Due, due};
use super::memory::Memory;
use super::owners::Owners;
use crate::adapters::openshift::machines::{Machine, Machines, Written};
use crate::operate::failure::Failure;
use crate::operate::members::look::{MembersSeen, machine_names};

/// What a turn did and found.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Whether an etcd operator keeps the hooks, so that nothing was written.
    pub operator: bool,
    /// Nodes with a Machine that got the hook.
    pub put_on: Vec<String>,
    /// Nodes with a Machine that lost it: the Machine is being deleted, and the node has no member.
    pub taken_off: Vec<String>,
    /// Nodes with a Machine that gets it no more from now on.
    pub given_up: Vec<String>,
    pub due: Vec<Due>,
    /// What could not be done, in sentences.
    pub problems: Vec<String>,
}

/// Does one turn. `machines` were read before the members, so that a hook is taken off the version of a Machine that is older than
/// the majority's word. With `writes` unset, only replacements that are due are found.
pub(super) fn turn(machines: &mut Machines, seen: &MembersSeen, path: &Path, writes: bool) -> Result<Kept, Failure> {
    let mut kept = Kept { operator: machines.has_operator, ..Kept::default() };
    if !machines.is_of_use() {
        return Ok(kept);
    }
    if !seen.membership.is_confirmed {
        kept.problems.push("no majority confirmed the member list: no hook is written".to_owned());
        return Ok(kept);
    }
    let owners = Owners::of(machines, seen);
    kept.due = due(machines, seen, &owners);
    if !writes || machines.has_operator {
        return Ok(kept);
    }
    kept.problems.extend(owners.unknown().map(str::to_owned));
    let before = Memory::read(path)?;
    let mut memory = before.clone();
    memory.forget_all_but(machines);
    let mut lacking = Vec::new();
    for voter in seen.membership.voters() {
        let Some(machine) = owners.machine_of(voter) else { continue };
        if memory.see(machine) {
            kept.given_up.push(voter.shown());
        }
        if !machine.is_protected() && !machine.is_being_deleted() && !memory.gave_up(machine) {
            lacking.push((voter, machine.uid().unwrap_or_default().to_owned()));
        }
    }
    let is_done = |machine: &&Machine| machine.is_being_deleted() && machine.is_protected();
    for machine in machines.all().iter().filter(is_done) {
        if owners.has_no_member(machine, &seen.membership) {
            take_off(machines, machine, &mut kept);
        }
    }
    // Where nothing can be written down, no hook is put on: a second writer would not be counted, and the fight be endless.
    if memory != before || !lacking.is_empty() {
        memory.write(path)?;
    }
    for (voter, uid) in lacking {
        match machines.write(&machine_names(voter), None, true) {
            Ok(Written::Yes) => {
                kept.put_on.push(voter.shown());
                memory.puts_on(&uid);
                memory.write(path)?;
            }
            Ok(Written::Already | Written::BeingDeleted | Written::NoMachine) => {}
            Err(why) => kept.problems.push(format!("the hook of {}'s Machine is not written: {why}", voter.shown())),
        }
    }
    Ok(kept)
}

impl Kept {
    /// Returns the sentence on a hook that is given up.
    pub fn gave_up(node: &str) -> String {
        format!(
            "another writer took the hook off {node}'s Machine three times, and it is put on no more: end that, then type 'tandem member \
             protect {node}'"
        )
    }
}

fn take_off(machines: &Machines, machine: &Machine, kept: &mut Kept) {
    let node = machine.node().unwrap_or_else(|| machine.name()).to_owned();
    match machines.take_off(machine) {
        Ok(true) => kept.taken_off.push(node),
        // The next turn sees what the other client wrote.
        Ok(false) => {}
        Err(why) => kept.problems.push(format!("the hook of {node}'s Machine is not taken off: {why}")),
    }
}
