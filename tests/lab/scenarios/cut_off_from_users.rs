//! The preferred node, which leads, is cut off from its peer and from the users' gateway at once. The configuration in
//! `docs/operate/fencing.md` forbids it to fence then, so the node that users reach survives.

use std::time::Duration;

use super::address::blocks;
use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{CLIENT_IP, NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::programs::fence_agents;
use crate::sh::{self, Result};

const PAGE: &str = include_str!("../../../docs/operate/fencing.md");
/// The gateway's address in the commands of the guide, which the lab replaces with its client's address.
const OF_THE_PAGE: &str = "192.0.2.254";
const HEURISTICS: &str = "users-reach";
/// The node that Pacemaker prefers in a split, because its fence device has the longer delay.
const PREFERRED: Node = Node::One;
/// The time-out until one node is reset: Corosync's token, the pings, both fencing delays, and the reset.
const DECIDED: Duration = Duration::from_secs(90);

pub(super) const SCENARIOS: &[Scenario] = &[scenario(
    "cut_off_from_users",
    "the preferred node, which leads, loses its peer and the users' gateway: the other node is left",
    run,
)
.nightly()];

fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    if leader != PREFERRED {
        etcd::move_leader(lab, leader, PREFERRED)?;
    }
    NODES.into_iter().try_for_each(|node| fence_agents::install(lab, node))?;
    for block in blocks(PAGE) {
        let commands = block.replace(OF_THE_PAGE, CLIENT_IP);
        host::must(lab, PREFERRED, &["bash", "-e", "-c", &commands])?;
    }
    pcs::run_and_wait(
        lab,
        PREFERRED,
        &["resource", "update", cluster::ETCD, &format!("configured_primary={PREFERRED}")],
    )?;
    let mut writers = super::writing(lab)?;
    cut_off(lab, PREFERRED)?;
    lab.event(&format!("{PREFERRED} reaches neither its peer nor the gateway"));
    let fenced = sh::wait_for("one node to be reset", DECIDED, Duration::from_millis(50), || {
        NODES.into_iter().find(|node| !power::is_on(lab, *node))
    })?;
    must("the node that users do not reach is reset", fenced, |fenced| *fenced == PREFERRED)?;
    must("the other node writes", steps::wait_write(&writers, DECIDED)?, |node| *node == PREFERRED.other())?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    let by = PREFERRED.other();
    pcs::run_and_wait(lab, by, &["resource", "update", cluster::ETCD, "configured_primary="])?;
    NODES.into_iter().try_for_each(|node| pcs::run(lab, by, &["stonith", "level", "clear", "target", node.name()]))?;
    pcs::run(lab, by, &["stonith", "delete", HEURISTICS])?;
    super::ends_well(lab, &mut writers)
}

/// Drops all packets of a node on the cluster network until it boots. The BMCs are on another network, and stay
/// reachable.
fn cut_off(lab: &Lab, node: Node) -> Result<()> {
    let rule = |chain, side| format!("iptables --insert {chain} --{side}-interface eth0 --jump DROP");
    let rules = [rule("INPUT", "in"), rule("OUTPUT", "out")].join(" && ");
    host::must(lab, node, &["sh", "-ec", &rules]).map(drop)
}
