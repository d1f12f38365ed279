//! A node that boots without its peer. As the sole voter, with a peer that its BMC proves to be off, it serves without
//! an operator. In every other state it does nothing.

mod inert;

use std::time::{Duration, Instant};

use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::{self, must};
use crate::load::writer::Writers;
use crate::sh::Result;

pub const SCENARIOS: &[Scenario] = &[
    scenario(
        "lone_boot",
        "one went on alone, both lose power and it boots alone: it serves without an operator, and its peer stays off",
        run,
    ),
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
/// The value of `lone_boot_wait`, the shortest that the parameter allows.
const WAIT: Duration = Duration::from_secs(30);
/// The time that a lone boot takes in addition to [`WAIT`]: the boot itself, its steps and etcd's start.
const BESIDES: Duration = Duration::from_secs(30);
/// The boot delay in seconds of a machine that fencing has switched on. It is so long that the machine does not boot
/// within a scenario.
const NEVER: &str = "3600";

fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    allow(lab)?;
    lose_both(lab, &writers)?;
    let (kept, old) = (moved_aside(lab, LAST)?, moved_aside(lab, FIRST)?);
    let (asked, forced) = (switched_on(lab), forced_off(lab));
    let began = Instant::now();
    steps::on(lab, LAST, 3600)?;
    start_unit(lab, LAST)?;
    let served_by = steps::wait_write(&writers, WAIT + 3 * BESIDES)?;
    let took = began.elapsed();
    println!("   served {:.1} s after its boot, with lone_boot_wait={}", took.as_secs_f64(), WAIT.as_secs());
    must("the sole voter serves", served_by, |node| *node == LAST)?;
    must("it serves in time", took, |took| *took <= WAIT + BESIDES)?;
    must("no BMC was asked to switch a machine on", switched_on(lab), |count| *count == asked)?;
    must("one ForceOff at most is sent to its peer", forced_off(lab), |count| *count <= forced + 1)?;
    must("its peer is off", power::is_on(lab, FIRST), |is_on| !is_on)?;
    is_told(lab)?;
    steps::on(lab, FIRST, wish.boot_delay)?;
    start_unit(lab, FIRST)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    must("the sole voter's data stays in its place", moved_aside(lab, LAST)?, |now| *now == kept)?;
    must("its peer moves its old data aside", moved_aside(lab, FIRST)?, |now| now.len() == old.len() + 1)?;
    units_end(lab)?;
    super::ends_well(lab, &mut writers)?;
    forbid(lab)
}

/// Sets the parameters that allow a lone boot, and waits until both agents have published the UUIDs of their
/// machines.
fn allow(lab: &Lab) -> Result<()> {
    let wait = format!("lone_boot_wait={}", WAIT.as_secs());
    pcs::run_and_wait(lab, LAST, &["resource", "update", cluster::ETCD, "lone_boot=sole_voter", &wait])?;
    let published = || NODES.map(|node| cluster::attribute(lab, node, "forever", "etcd_system_uuid"));
    let wanted = NODES.map(|node| Some(node.uuid()));
    check::eventually("both agents have published their machines' UUIDs", published, |seen| *seen == wanted).map(drop)
}

fn forbid(lab: &Lab) -> Result<()> {
    pcs::run_and_wait(lab, LAST, &["resource", "update", cluster::ETCD, "lone_boot=", "lone_boot_wait="])
}

/// Starts `tandem lone-boot` as `tandem-lone-boot.service` does at each boot, because these hosts have no systemd.
fn start_unit(lab: &Lab, node: Node) -> Result<()> {
    let line = "(setsid tandem lone-boot 2>&1 | logger --tag tandem-lone-boot) > /dev/null 2>&1 &";
    host::must(lab, node, &["sh", "-c", line]).map(drop)
}

/// Checks that `tandem lone-boot` ends on both nodes once there is quorum.
fn units_end(lab: &Lab) -> Result<()> {
    let running =
        || NODES.map(|node| host::output(lab, node, &["pgrep", "-f", "tandem lone-boot"]).map(|done| done.ok));
    check::eventually("no lone boot runs where there is quorum", running, |seen| {
        seen.iter().all(|seen| matches!(seen, Ok(false)))
    })
    .map(drop)
}

/// Cuts the power of the node [`FIRST`], and then that of the other node, which runs standalone. Fencing does not
/// bring either of them back.
fn lose_both(lab: &Lab, writers: &Writers) -> Result<()> {
    lab.set("boot-delay", NEVER)?;
    steps::cut(lab, FIRST)?;
    steps::wait_write(writers, Duration::from_secs(90))?;
    std::thread::sleep(Duration::from_secs(2));
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

/// Returns the names of the directories of moved-aside etcd data on a node, which may be off.
fn moved_aside(lab: &Lab, node: Node) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(crate::host::disks::data_dir(lab, node))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("member-") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Checks that the cluster property `etcd_lone_boot` and an event name the node that booted alone.
fn is_told(lab: &Lab) -> Result<()> {
    let property = ["crm_attribute", "--type", "crm_config", "--name", "etcd_lone_boot", "--query", "--quiet"];
    must("the CIB names the node", host::must(lab, LAST, &property)?, |said| said.starts_with(&format!("{LAST}:")))?;
    let events = host::must(lab, LAST, &["tandem", "events", "--json", "--since", "10m"])?;
    must("an event names it", events, |said| said.contains("EtcdLoneBoot")).map(drop)
}
