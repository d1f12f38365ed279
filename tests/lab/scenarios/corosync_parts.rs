//! Only Corosync's network parts, and the members of etcd still reach each other. etcd continues until one node is
//! fenced. Then the node that the longer delay protects takes all writes.

use std::time::Duration;

use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::judge::figures;
use crate::sh::{self, Result};

/// The node that survives a split, because its fence device has the longer delay.
const PREFERRED: Node = Node::One;
/// The time-out until one node is reset: Corosync's token, the longer fencing delay, and the reset.
const DECIDED: Duration = Duration::from_secs(60);

pub(super) const SCENARIOS: &[Scenario] = &[scenario(
    "corosync_parts",
    "only Corosync's packets between the hosts are dropped: etcd continues, and the preferred node is left",
    run,
)];

fn run(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    let mut writers = super::writing(lab)?;
    let began = writers.now();
    drop_packets(lab, &NODES, true)?;
    lab.event("Corosync's packets between the hosts are dropped");
    let fenced = sh::wait_for("one node to be reset", DECIDED, Duration::from_millis(50), || {
        NODES.into_iter().find(|node| !power::is_on(lab, *node))
    });
    let survived = fenced.and_then(|fenced| {
        must("the node of the shorter delay is fenced", fenced, |fenced| *fenced == PREFERRED.other())?;
        let until = writers.now();
        let waits: Vec<Duration> =
            writers.acknowledged().iter().map(|ack| ack.ended.saturating_sub(ack.began)).collect();
        let longest = waits.into_iter().max().unwrap_or_default();
        figures::print(format!(
            "{fenced} was reset after {:.1} s, longest write {:.1} s",
            until.saturating_sub(began).as_secs_f64(),
            longest.as_secs_f64()
        ));
        must("etcd took writes all the time", longest, |longest| *longest < Duration::from_secs(3))?;
        must("the other node writes", steps::wait_write(&writers, DECIDED)?, |node| *node == PREFERRED)
    });
    // The network is repaired even after a failure, so that the logs show the consequence. A reset removes the rule on
    // its node.
    drop_packets(lab, &[PREFERRED], false)?;
    survived?;
    super::ends_well(lab, &mut writers)
}

fn drop_packets(lab: &Lab, on: &[Node], dropped: bool) -> Result<()> {
    let verb = if dropped { "--insert" } else { "--delete" };
    on.iter().try_for_each(|node| {
        let peer = node.other().ip();
        let rule =
            ["iptables", verb, "INPUT", "--source", &peer, "--protocol", "udp", "--dport", "5405", "--jump", "DROP"];
        host::must(lab, *node, &rule).map(drop)
    })
}
