//! The Machine of each member, and the machines without a member. A machine has none only if each member has another Machine.

use crate::adapters::openshift::machines::{Machine, Machines};
use crate::decide::evidence::MemberId;
use crate::decide::members::{Member, Membership};
use crate::operate::members::look::{MembersSeen, machine_names};

/// The Machine of each member, or the reason why it is unknown.
#[derive(Debug)]
pub(super) struct Owners<'a> {
    found: Vec<(MemberId, Result<Option<&'a Machine>, String>)>,
}

impl<'a> Owners<'a> {
    pub(super) fn of(machines: &'a Machines, seen: &MembersSeen) -> Self {
        let members = seen.membership.members.iter();
        Self { found: members.map(|member| (member.id, machines.of(&machine_names(member)))).collect() }
    }

    pub(super) fn machine_of(&self, member: &Member) -> Option<&'a Machine> {
        self.found.iter().find(|(id, _)| *id == member.id).and_then(|(_, found)| found.as_ref().ok().copied().flatten())
    }

    /// Returns the reasons why the Machines of some members are unknown.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(|(_, found)| found.as_ref().err().map(String::as_str))
    }

    /// Returns whether it is certain that no member runs on `machine`. `machine` must name its node or addresses, and no member may
    /// have one of these. The Machine of every member must be known and another one, because a member without a known Machine might
    /// run on `machine`.
    pub(super) fn has_no_member(&self, machine: &Machine, membership: &Membership) -> bool {
        let names: Vec<&str> = machine.node().into_iter().chain(machine.addresses()).collect();
        let is_named = |member: &Member| machine_names(member).iter().any(|name| names.contains(name));
        let has_another = |found: &Result<Option<&Machine>, String>| {
            found.as_ref().is_ok_and(|found| found.is_some_and(|one| one.uid().is_some() && one.uid() != machine.uid()))
        };
        !names.is_empty()
            && !membership.members.iter().any(is_named)
            && self.found.iter().all(|(_, found)| has_another(found))
    }
}
