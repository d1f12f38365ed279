//! A node that boots without its peer. As the sole voter, with a peer that its BMC proves to be off, it serves without
//! an operator. In every other state it does nothing.

mod inert;

use std::time::{Duration, Instant};

use super::needs::Hosts;
use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster::etcd;
use crate::cluster::lone_boot::{self, BESIDES, WAIT};
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::load::writer::Writers;
use crate::sh::{self, Result};

pub const SCENARIOS: &[Scenario] = &[
    scenario(
        "lone_boot",
        "one went on alone, both lose power and it boots alone: it serves without an operator, and its peer stays off",
        run,
    )
    .on(Hosts::Both),
    scenario(
        "lone_boot_inert",
        "a node boots alone with two voters' data, or beside a peer that its BMC does not prove to be off: it does nothing",
        inert::daily,
    ).nightly(),
    scenario(
        "lone_boot_inert_long",
        "the same for longer, and with a learner's data, a departed member's, one that was left behind, and a cut network",
        inert::nightly,
    )
    .nightly(),
];

/// The node that is lost first. From then on the other node, [`LAST`], runs standalone.
const FIRST: Node = Node::Two;
const LAST: Node = Node::One;
/// The boot delay in seconds of a machine that fencing has switched on. It is so long that the machine does not boot
/// within a scenario.
const NEVER: &str = "3600";

fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    lone_boot::allow(lab)?;
    let (kept, old) = (moved_aside(lab, LAST)?, moved_aside(lab, FIRST)?);
    lose_both(lab, &writers)?;
    let (asked, forced) = (switched_on(lab), forced_off(lab));
    let began = Instant::now();
    steps::on(lab, LAST, 3600)?;
    let served_by = steps::wait_write(&writers, WAIT + 3 * BESIDES)?;
    let took = began.elapsed();
    println!("   served {:.1} s after its boot, with lone_boot_wait={}", took.as_secs_f64(), WAIT.as_secs());
    must("the sole voter serves", served_by, |node| *node == LAST)?;
    must("it serves in time", took, |took| *took <= sh::patience(WAIT + BESIDES))?;
    must("no BMC was asked to switch a machine on", switched_on(lab), |count| *count == asked)?;
    must("one ForceOff at most is sent to its peer", forced_off(lab), |count| *count <= forced + 1)?;
    must("its peer is off", power::is_on(lab, FIRST), |is_on| !is_on)?;
    is_told(lab)?;
    steps::on(lab, FIRST, wish.boot_delay)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    must("the sole voter's data stays in its place", moved_aside(lab, LAST)?, |now| *now == kept)?;
    must("its peer moves its old data aside", moved_aside(lab, FIRST)?, |now| now.len() == old.len() + 1)?;
    lone_boot::ends(lab)?;
    super::ends_well(lab, &mut writers)?;
    lone_boot::forbid(lab)
}

/// Cuts the power of the node [`FIRST`], and then that of the other node, which runs standalone. Fencing does not
/// bring either of them back.
fn lose_both(lab: &Lab, writers: &Writers) -> Result<()> {
    lab.set("boot-delay", NEVER)?;
    steps::cut(lab, FIRST)?;
    steps::wait_write(writers, Duration::from_secs(90))?;
    std::thread::sleep(sh::patience(Duration::from_secs(2)));
    steps::cut(lab, LAST)?;
    // Fencing has switched the node on, so its power is cut again.
    steps::cut(lab, FIRST)
}

/// Returns how often a BMC of this lab was requested to switch its machine on.
fn switched_on(lab: &Lab) -> usize {
    resets(lab, "", "On")
}

/// Returns how often the BMC of the node [`FIRST`] was requested to switch its machine off.
fn forced_off(lab: &Lab) -> usize {
    resets(lab, &format!("bmc-{FIRST}: "), "ForceOff")
}

/// Counts the requests for a reset of the type `kind` in those lines of the BMCs' log that contain `bmc`.
fn resets(lab: &Lab, bmc: &str, kind: &str) -> usize {
    let log = std::fs::read_to_string(lab.bmc_log()).unwrap_or_default();
    let reset = format!("ComputerSystem.Reset {kind} ");
    log.lines().filter(|line| line.contains(bmc) && line.contains(": POST ") && line.contains(&reset)).count()
}

/// Returns the names of the directories of moved-aside etcd data on a running node.
fn moved_aside(lab: &Lab, node: Node) -> Result<Vec<String>> {
    let names = host::must(lab, node, &["ls", "/var/lib/etcd"])?;
    Ok(names.lines().filter(|name| name.starts_with("member-")).map(str::to_owned).collect())
}

/// Checks that the cluster property `etcd_lone_boot` and an event name the node that booted alone.
fn is_told(lab: &Lab) -> Result<()> {
    let property = ["crm_attribute", "--type", "crm_config", "--name", "etcd_lone_boot", "--query", "--quiet"];
    must("the CIB names the node", host::must(lab, LAST, &property)?, |said| said.starts_with(&format!("{LAST}:")))?;
    let events = host::must(lab, LAST, &["tandem", "events", "--json", "--since", "10m"])?;
    must("an event names it", events, |said| said.contains("EtcdLoneBoot")).map(drop)
}
