//! Both nodes are stopped together, and only one returns. Both are still listed, so its etcd runs and waits for the
//! other one's vote. The agent forces nothing, and reports what it waits for. When the other node returns, all data is
//! available again.

use std::time::Duration;

use super::steps;
use crate::cluster::ETCD_CLONE;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::sh::{self, Result};

const RETURNS: Node = Node::One;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let before = steps::members(lab)?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let mut writers = super::writing(lab)?;
    pcs::run(lab, RETURNS, &["resource", "disable", ETCD_CLONE])?;
    steps::wait_stopped(lab, &NODES)?;
    steps::standby(lab, RETURNS.other(), true)?;
    pcs::run(lab, RETURNS, &["resource", "enable", ETCD_CLONE])?;
    sh::wait_for("one etcd to run", Duration::from_secs(120), Duration::from_millis(300), || etcd::pid(lab, RETURNS))?;
    steps::nobody_writes(&writers, Duration::from_secs(10))?;
    let explained = host::must(lab, RETURNS, &["tandem", "explain"])?;
    println!("   {}", explained.lines().find(|line| line.contains("because")).unwrap_or("it explains nothing").trim());
    steps::standby(lab, RETURNS.other(), false)?;
    super::ends_well(lab, &mut writers)?;
    steps::same_members(lab, before)?;
    steps::nothing_forced(lab, logs)
}
