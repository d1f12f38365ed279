//! A node is replaced, planned or after a loss, by a machine of the same name or of another one.

use std::time::Duration;

use super::super::setup::described::{Described, give_certificates};
use super::super::setup::typed::{HERE, THERE};
use super::super::steps;
use super::super::third_voter;
use super::killed::killed_after;
use super::world::{self, World};
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{self, Second};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::Result;

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

/// Replaces a node by a machine of the same name, which takes the old one's place once the command has removed the
/// old node. The common ending checks that no acknowledged write is lost.
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

/// Replaces a node on a pair with Corosync and etcd on IPv6 and with a second link. The new machine has an address of
/// its own on each link.
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

/// Replaces a node while a third voter serves. The command is killed once it has removed the dead member, and typed
/// again.
pub fn beside_a_third_voter(lab: &Lab, wish: Wish) -> Result<()> {
    let described = Described { own_certificates: true, ..Described::default() };
    world::run_as_described(lab, wish, described, "member_replaced_beside_a_third_voter", |world| {
        world.bmc_of_node3()?;
        let third_voter = third_voter::joined(lab)?;
        world.cut_beside_a_third_voter(Duration::from_secs(15))?;
        let ran = etcd::pid(lab, HERE);
        let command = world.begin(&format!("tandem member replace node2 {} --yes", World::as_node3()))?;
        // On a busy machine the member list may show the removal before etcd answers.
        killed_after(command, &["tandem: leave: node2 is removed", "tandem: forget: pcs has removed node2"], 0)?;
        steps::wait_write(&world.writers, Duration::from_secs(15))?;
        let command = world.begin("tandem member replace --yes")?;
        World::wait_said(&command, "tandem: map: node_ip_map")?;
        world.swap(Second::Node3)?;
        give_certificates(lab, THERE)?;
        world.join(command)?;
        third_voter::three_voters(lab)?;
        must("the same etcd runs", etcd::pid(lab, HERE), |pid| *pid == ran)?;
        let alone = ["crm_attribute", "--type", "crm_config", "--name", "standalone_node", "--query", "--quiet"];
        must("nobody was alone", host::said(lab, HERE, &alone), |alone| !alone.contains("node1"))?;
        third_voter::removed(lab, third_voter)?;
        world.ends_well(Some("node2"))
    })
}

/// Replaces a node that cannot be fenced, because its BMC died too. The survivor waits until an operator confirms that the node is off.
pub fn old_is_off(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_replaced_old_is_off", |world| {
        world.bmc_of_node3()?;
        world.cut_with_its_bmc()?;
        let line = format!("tandem member replace node2 {} --old-is-off", World::as_node3());
        // `--yes` confirms no observation of the machine.
        let refused = world.begin(&format!("{line} --yes"))?.done()?;
        refused.must_be(1)?;
        let command = world.begin(&format!("{line} --confirm node2"))?;
        World::wait_said(&command, "node2 is forgotten")?;
        world.swap(Second::Node3)?;
        world.join(command)?;
        world.ends_well(Some("node2"))
    })
}
