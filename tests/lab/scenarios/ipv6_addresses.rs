//! The members reach each other only over IPv6.

use std::time::Duration;

use crate::check::must;
use crate::cluster::{self, CloneKind};
use crate::demo::Victim;
use crate::etcd;
use crate::node::NODES;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let map = NODES.map(|node| format!("{node}:{}", node.ipv6())).join(";");
    cluster::create_etcd_with(lab, NODES[0], CloneKind::Plain, &[("node_ip_map", &map)], false)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    let config = crate::host::must(lab, NODES[0], &["cat", "/var/lib/etcd/config.yaml"])?;
    let url = format!("https://[{}]:2380", NODES[0].ipv6());
    must("the member's URL is of IPv6", config, |config| config.contains(&url))?;
    let mut writers = super::writing(lab)?;
    let leader = Victim::Leader.node(etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader);
    crate::power::cut(lab, leader)?;
    super::ends_well(lab, &mut writers)
}
