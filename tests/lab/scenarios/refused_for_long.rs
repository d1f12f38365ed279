//! A node refuses to start while its peer is away, possibly for hours. Pacemaker counts each refusal, and at
//! `migration-threshold` it would give etcd up on this node. When the peer is back, no operator has to clean up first.

use std::time::Duration;

use super::steps;
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::within;
use crate::sh::Result;

/// The node that has left the members' list, and so may not start etcd without its peer.
const REFUSES: Node = Node::One;
const COUNT: &str = "fail-count-etcd#start_0";
/// The count of failed starts after about an hour of refusals. Two more reach [`THRESHOLD`].
const NEARLY_ALL: u32 = 58;
/// The count of failed starts (`migration-threshold`) after which Pacemaker starts etcd no more on the node.
const THRESHOLD: u32 = 60;
/// The time-out for two starts. At this count of failures a start takes 15 s.
const TWO_STARTS: Duration = Duration::from_secs(90);

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let peer = REFUSES.other();
    let mut writers = super::writing(lab)?;
    steps::standby(lab, REFUSES, true)?;
    steps::wait_alone(lab, peer)?;
    steps::wait_stopped(lab, &[REFUSES])?;
    lab.set("boot-delay", "3600")?;
    steps::cut(lab, peer)?;
    steps::standby(lab, REFUSES, false)?;
    let refusal =
        steps::wait_failure(lab, REFUSES, "a start that is refused", |failure| failure.action == "etcd_start_0")?;
    println!("   {refusal}");
    let set = ["attrd_updater", "--name", COUNT, "--update", &NEARLY_ALL.to_string(), "--node", REFUSES.name()];
    host::must(lab, REFUSES, &set)?;
    lab.event(&format!("{COUNT} of {REFUSES} is {NEARLY_ALL}"));
    let counted = |count: &Option<u32>| count.is_none_or(|count| !(NEARLY_ALL..THRESHOLD).contains(&count));
    let count = within(TWO_STARTS, "the refusals are counted to the end, or taken back", || count(lab), counted)?;
    println!("   the count of failed starts is {count:?}");
    steps::on(lab, peer, wish.boot_delay)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    super::ends_well(lab, &mut writers)
}

/// Returns Pacemaker's count of failed starts on the node that refuses. `None` if there is no count.
fn count(lab: &Lab) -> Option<u32> {
    cluster::attribute(lab, REFUSES, "reboot", COUNT)?.parse().ok()
}
