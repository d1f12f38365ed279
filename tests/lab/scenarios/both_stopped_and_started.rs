//! The resource is disabled and enabled: both nodes stop, both start, and no agent forces a new cluster.

use super::steps;
use crate::cluster::ETCD_CLONE;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::sh::Result;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    pcs::run(lab, NODES[0], &["resource", "disable", ETCD_CLONE])?;
    steps::wait_stopped(lab, &NODES)?;
    pcs::run(lab, NODES[0], &["resource", "enable", ETCD_CLONE])?;
    super::ends_well(lab, &mut writers)
}
