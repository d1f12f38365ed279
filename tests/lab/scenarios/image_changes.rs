//! The image of etcd changes: a typo stops no member, and an upgrade restarts one member after the other.

use std::time::Duration;

use super::steps;
use crate::cluster;
use crate::cluster::asked;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::programs::image::{self, Tools, Version};
use crate::sh::Result;

const LIMIT: Duration = Duration::from_secs(120);
const TYPO: &str = "localhost/tandem/etcd:TYPO";
const NOT_HERE: &str = "image-not-here";
/// The name of a second etcd image. It has the same release as the lab's image, and another id.
const NEXT: &str = "localhost/tandem/etcd:next";
/// The limit for a writer's gap while both members are restarted one after the other.
const LONGEST_GAP: Duration = Duration::from_secs(1);

/// Returns the name of the lab's own etcd image.
fn own(lab: &Lab) -> String {
    image::name(&lab.setting("etcd").unwrap_or_default())
}

fn set(lab: &Lab, image: &str) -> Result<()> {
    pcs::run_and_wait(lab, NODES[0], &["resource", "update", cluster::ETCD, &format!("image={image}")])?;
    lab.event(&format!("image={image}"));
    Ok(())
}

pub fn typo(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    let own = own(lab);
    let before = NODES.map(|node| etcd::pid(lab, node));
    let mut writers = super::writing(lab)?;
    set(lab, TYPO)?;
    for node in NODES {
        let warns = || asked::ask(lab, node).is_ok_and(|answer| answer.names(NOT_HERE));
        eventually(&format!("status on {node} names the image that is not here"), warns, |warns| *warns)?;
    }
    let (code, told) = host::typed(lab, NODES[0], "tandem status")?;
    let resolves = format!("pcs resource update {} image={own}", cluster::ETCD);
    must("status ends as degraded and names what resolves it", (code, told), |(code, told)| {
        *code == 3 && told.contains(&resolves) && told.contains(&format!("podman pull {TYPO}"))
    })?;
    must("both members run on", NODES.map(|node| etcd::pid(lab, node)), |after| *after == before)?;
    // A killed member comes back from the image that it had.
    etcd::kill(lab, NODES[1])?;
    std::thread::sleep(steps::THREE_MONITORS);
    etcd::wait_two_voters(lab, LIMIT)?;
    let killed = NODES.map(|node| etcd::pid(lab, node));
    set(lab, &own)?;
    for node in NODES {
        let warns =
            || asked::ask(lab, node).map_or(true, |answer| answer.names(NOT_HERE) || answer.names("image-pending"));
        eventually(&format!("status on {node} names no image"), warns, |warns| !warns)?;
    }
    must("the way back restarts nothing", NODES.map(|node| etcd::pid(lab, node)), |after| *after == killed)?;
    super::ends_well(lab, &mut writers)
}

/// Imports an image of the running etcd release under the name [`NEXT`] on both hosts.
pub fn import_next(lab: &Lab, tools: Tools) -> Result<&'static str> {
    let rootfs = image::rootfs(Version::parse(&lab.setting("etcd").unwrap_or_default())?, tools)?;
    NODES.into_iter().try_for_each(|node| host::import_image(lab, node, &rootfs, NEXT))?;
    Ok(NEXT)
}

pub fn upgrade(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let own = own(lab);
    let next = import_next(lab, Tools::None)?;
    let mut writers = super::writing(lab)?;
    host::must(lab, leader, &["tandem", "upgrade", next, "--yes"])?;
    let (gap, _) = writers.longest_wait();
    println!("   an upgrade of both members: longest gap {:.2} s", gap.as_secs_f64());
    must("the writes went on", gap, |gap| *gap <= LONGEST_GAP)?;
    both_run(lab, next)?;
    let (code, told) = host::typed(lab, leader, &format!("tandem upgrade {next} --yes"))?;
    must("there is nothing left to do", (code, told), |(code, told)| *code == 0 && !told.contains("restart"))?;
    // The way back is the same command, interrupted and typed again.
    cut_off(lab, leader, &format!("tandem upgrade {own} --yes"))?;
    host::must(lab, leader, &["tandem", "upgrade", &own])?;
    both_run(lab, &own)?;
    let (gap, _) = writers.longest_wait();
    must("the writes went on, also where the command was killed", gap, |gap| *gap <= LONGEST_GAP)?;
    let constraints = host::must(lab, leader, &["cibadmin", "--query", "--scope", "constraints"])?;
    must("no constraint is left", constraints, |constraints| !constraints.contains("tandem-upgrade"))?;
    super::ends_well(lab, &mut writers)
}

/// Runs an upgrade, and kills it as soon as its constraint is in the CIB. The constraint keeps etcd off a node, where etcd is being
/// restarted or is about to be.
pub fn cut_off(lab: &Lab, on: Node, command: &str) -> Result<()> {
    let line = format!(
        "{command} & for i in $(seq 300); do cibadmin --query --scope constraints | grep -q tandem-upgrade && break; sleep 0.1; done; \
         kill -KILL $!; wait $!"
    );
    must("the command was killed", host::typed(lab, on, &line)?, |(code, _)| *code == 137).map(drop)
}

fn both_run(lab: &Lab, image: &str) -> Result<()> {
    let of = |node| host::must(lab, node, &["podman", "inspect", "--format", "{{.ImageName}}", "etcd"]);
    let names = NODES.map(|node| of(node).map(|name| name.trim().to_owned()).unwrap_or_default());
    must(&format!("both members run from {image}"), names, |names| names.iter().all(|name| name == image)).map(drop)
}
