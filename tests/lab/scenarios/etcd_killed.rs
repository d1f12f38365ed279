//! One etcd process dies. Its data is whole, so it must come back with it as the same member.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host::state::Lab;
use crate::sh::Result;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let before = steps::members(lab)?;
    let mut writers = super::writing(lab)?;
    etcd::kill(lab, leader)?;
    steps::wait_write(&writers, Duration::from_secs(120))?;
    super::ends_well(lab, &mut writers)?;
    steps::same_members(lab, before)
}
