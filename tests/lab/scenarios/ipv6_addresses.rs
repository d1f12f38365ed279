//! The members reach each other only over IPv6.

use std::time::Duration;

use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::cluster::{self, CloneKind};
use crate::demo::Victim;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::Result;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let map = NODES.map(|node| format!("{node}:{}", node.ipv6())).join(";");
    cluster::create_etcd_with(lab, NODES[0], CloneKind::Plain, &[("node_ip_map", &map)], false)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    let config = crate::host::must(lab, NODES[0], &["cat", "/var/lib/etcd/config.yaml"])?;
    let url = format!("https://[{}]:2380", NODES[0].ipv6());
    must("the member's URL is of IPv6", config, |config| config.contains(&url))?;
    let mut writers = super::writing(lab)?;
    let leader = Victim::Leader.node(etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader);
    crate::host::power::cut(lab, leader)?;
    super::ends_well(lab, &mut writers)
}
