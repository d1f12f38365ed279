//! A node is replaced: planned, and after a loss; by a machine of its own name, and by another.

use super::super::setup::described::Described;
use super::super::setup::typed::{HERE, THERE};
use super::world::{self, World};
use crate::check::must;
use crate::host;
use crate::node::{self, Second};
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

pub fn after_a_cut(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_replaced_after_a_cut", |world| {
        world.cut_for_good()?;
        world.bmc_of_node3()?;
        world.swap(Second::Node3)?;
        let command = world.begin(&format!("tandem member replace node2 {} --yes", World::as_node3()))?;
        world.join(command)?;
        world.ends_well(Some("node2"))
    })
}

pub fn after_a_cut_same_name(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_replaced_after_a_cut_same_name", |world| {
        world.cut_for_good()?;
        world.swap(Second::Node2)?;
        let command = world.begin("tandem member replace node2 --yes")?;
        world.join(command)?;
        world.ends_well(None)
    })
}

/// The machine is swapped once the command has let the old one go.
pub fn planned(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_replaced_planned", |world| {
        let command = world.begin("tandem member replace node2 --yes")?;
        World::wait_said(&command, "node2 is forgotten")?;
        world.swap(Second::Node2)?;
        world.join(command)?;
        world.ends_well(None)
    })
}

pub fn planned_other_name(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_replaced_planned_other_name", |world| {
        world.bmc_of_node3()?;
        let command = world.begin(&format!("tandem member replace node2 {} --yes", World::as_node3()))?;
        World::wait_said(&command, "node2 is forgotten")?;
        world.swap(Second::Node3)?;
        world.join(command)?;
        world.ends_well(Some("node2"))
    })
}

/// Corosync and etcd over IPv6, and a further link: the new machine has an address of its own on each.
pub fn planned_with_a_further_link(lab: &Lab, wish: Wish) -> Result<()> {
    let described = Described { ipv6: true, ..Described::default() };
    world::run_as_described(lab, wish, described, "member_replaced_further_link", |world| {
        world.bmc_of_node3()?;
        node::call_second(Second::Node3);
        let (address, link) = (THERE.ipv6(), THERE.ip());
        node::call_second(Second::Node2);
        let line = format!("tandem member replace node2 --new node3={address} {} --yes", World::fence(3));
        let refused = world.begin(&line)?.done()?;
        refused.must_be(1)?;
        must("the refusal names the option", refused.said, |said| said.contains("--link ADDRESS"))?;
        let command = world.begin(&format!("{line} --link {link}"))?;
        World::wait_said(&command, "node2 is forgotten")?;
        world.swap(Second::Node3)?;
        world.join(command)?;
        world.ends_well(Some("node2"))?;
        let conf = host::must(lab, HERE, &["cat", "/etc/corosync/corosync.conf"])?;
        let links = [format!("ring0_addr: {address}"), format!("ring1_addr: {link}")];
        must("Corosync has both of its links", conf, |conf| links.iter().all(|link| conf.contains(link))).map(drop)
    })
}

/// The old machine's BMC died with it: nobody can fence it, and the survivor waits until somebody has seen that it is off.
pub fn old_is_off(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_replaced_old_is_off", |world| {
        world.bmc_of_node3()?;
        world.cut_with_its_bmc()?;
        let line = format!("tandem member replace node2 {} --old-is-off", World::as_node3());
        // Nothing was seen by --yes.
        let refused = world.begin(&format!("{line} --yes"))?.done()?;
        refused.must_be(1)?;
        let command = world.begin(&format!("{line} --confirm node2"))?;
        World::wait_said(&command, "node2 is forgotten")?;
        world.swap(Second::Node3)?;
        world.join(command)?;
        world.ends_well(Some("node2"))
    })
}
