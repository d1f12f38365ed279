//! Both etcd processes die within two seconds. The data of both is whole, so both come back with it as the same
//! members.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::sh::Result;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut chance = steps::chance()?;
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let before = steps::members(lab)?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let mut writers = super::writing(lab)?;
    etcd::kill(lab, leader)?;
    std::thread::sleep(chance.up_to(Duration::from_secs(2)));
    etcd::kill(lab, leader.other())?;
    super::ends_well(lab, &mut writers)?;
    steps::same_members(lab, before)?;
    steps::nothing_forced(lab, logs)
}
