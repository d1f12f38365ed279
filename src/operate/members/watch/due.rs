//! A replacement that is due: the Machine of a voter is being deleted, and another machine of the control plane runs without a member.

use std::net::IpAddr;

use serde::Serialize;

use super::owners::Owners;
use crate::adapters::openshift::machines::{Machine, Machines};
use crate::operate::members::look::MembersSeen;

/// The options of the BMC without which a pair refuses a node of another name. The operator fills in the words in capitals.
const FENCE: &str = " --fence ip=ADDRESS --fence username=USER --fence password_file=FILE";

/// A proposal to replace a voter by a node that runs without a member, because the voter's Machine is being deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Due {
    /// Name of the voter that is to be replaced, because its Machine is being deleted.
    pub old: String,
    /// Name of the node that runs without a member.
    pub new: String,
    /// The command that replaces the voter by the node.
    pub command: String,
}

/// Returns the member replacements to propose to the operator. Each machine without a member is proposed for one voter only.
pub(super) fn due(machines: &Machines, seen: &MembersSeen, owners: &Owners<'_>) -> Vec<Due> {
    // The etcd operator replaces members by itself, except those of a pair.
    if machines.has_operator && !seen.membership.is_pair {
        return Vec::new();
    }
    let old = seen.membership.voters().filter(|voter| owners.machine_of(voter).is_some_and(Machine::is_being_deleted));
    let free = machines.all().iter().filter(|machine| {
        machine.runs() && !machine.is_being_deleted() && owners.has_no_member(machine, &seen.membership)
    });
    let placed = free.filter_map(|machine| Some((machine.node()?, address(machine)?)));
    let fence = if seen.membership.is_pair { FENCE } else { "" };
    let command = |old: &str, new: &str, address: IpAddr| {
        // On OpenShift the new machine takes over the old one's name, and with it the fence device.
        let new = if machines.has_operator { String::new() } else { format!(" --new {new}={address}{fence}") };
        format!("tandem member replace {old}{new}")
    };
    old.zip(placed)
        .map(|(voter, (new, address))| {
            let old = voter.shown();
            Due { command: command(&old, new, address), new: new.to_owned(), old }
        })
        .collect()
}

fn address(machine: &Machine) -> Option<IpAddr> {
    machine.addresses().into_iter().find_map(|address| address.parse().ok())
}

impl Due {
    /// Describes the proposed replacement for the operator, with the command to type.
    pub fn sentence(&self) -> String {
        let Self { old, new, command } = self;
        format!("the Machine of {old} is being deleted, and {new} runs without a member: type '{command}'")
    }
}
