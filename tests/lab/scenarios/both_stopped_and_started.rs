//! The resource is disabled and enabled: both stop, both start, nobody forces anything.

use std::time::Duration;

use crate::cluster::{self, ETCD_CLONE};
use crate::etcd;
use crate::node::NODES;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    cluster::pcs(lab, NODES[0], &["resource", "disable", ETCD_CLONE])?;
    sh::wait_for("both etcds to stop", Duration::from_secs(180), Duration::from_millis(300), || {
        NODES.iter().all(|node| etcd::pid(lab, *node).is_none()).then_some(())
    })?;
    cluster::pcs(lab, NODES[0], &["resource", "enable", ETCD_CLONE])?;
    super::ends_well(lab, &mut writers)
}
