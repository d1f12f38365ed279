//! One turn of the upkeep: from the Machines and the members to the changes of hooks.

use std::path::Path;

use serde::Serialize;

use super::due::{Due, due};
use super::memory::Memory;
use super::owners::Owners;
use crate::adapters::openshift::machines::{Machine, Machines, Written};
use crate::operate::failure::Failure;
use crate::operate::members::look::{MembersSeen, machine_names};

/// The results of setting and removing the deletion hooks of Machines once.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// True if an etcd operator keeps the deletion hooks, so that no hook was written.
    pub operator: bool,
    /// Names of the nodes with a Machine that got its deletion hook.
    pub put_on: Vec<String>,
    /// Names of the nodes with a Machine that lost its deletion hook, because the Machine is being deleted and the node has no member.
    pub taken_off: Vec<String>,
    /// Names of the nodes with a Machine that gets no deletion hook any more, because another client removed the hook too often.
    pub given_up: Vec<String>,
    pub due: Vec<Due>,
    /// The failures while hooks were set or removed, each as a sentence.
    pub problems: Vec<String>,
}

/// Sets and removes the deletion hooks of Machines once. If `writes` is false, only finds replacements to propose.
///
/// `machines` must have been read before `seen`. In this order, a hook is removed only from a version of the Machine that is older than
/// the majority's answer about its member.
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
    // Without a stored count no hook is set, because the removals of a second writer would not be counted, and both would write for
    // ever.
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
    /// Returns the warning that the deletion hook of the node's Machine is not set any more.
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
        // The next turn sees the other client's version.
        Ok(false) => {}
        Err(why) => kept.problems.push(format!("the hook of {node}'s Machine is not taken off: {why}")),
    }
}
