//! A snapshot is restored on one node, as OpenShift's restore script does it. Both nodes come back with its data.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::two_node_openshift;
use crate::cluster::up::Wish;
use crate::cluster::{self, ETCD_CLONE};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::programs::image;
use crate::sh::Result;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    two_node_openshift::up(lab)?;
    let old = etcd::wait_view(lab, NODES[0])?.member;
    let [restored, other] = NODES;
    pcs::run(lab, restored, &["resource", "disable", ETCD_CLONE])?;
    steps::wait_stopped(lab, &NODES)?;
    let attributes = format!(
        "crm_attribute --delete --name standalone_node; crm_attribute --delete --name learner_node;
         for node in {restored} {other}; do
             crm_attribute --lifetime reboot --node $node --delete --name force_new_cluster
         done; pcs resource cleanup etcd; true"
    );
    host::must(lab, restored, &["sh", "-c", &attributes])?;
    restore(lab, restored)?;
    let words = ["crm_attribute", "--lifetime", "reboot", "--node", restored.name(), "--name", "force_new_cluster"];
    host::must(lab, restored, &[&words[..], &["--update", restored.name()]].concat())?;
    pcs::run(lab, restored, &["resource", "enable", ETCD_CLONE])?;
    etcd::wait_two_voters(lab, Duration::from_secs(300))?;
    must("the restored node runs the snapshot's member", etcd::wait_view(lab, restored)?.member, |now| *now != old)?;
    let mut writers = super::writing(lab)?;
    super::ends_well(lab, &mut writers)?;
    host::must(lab, other, &["sh", "-c", "ls -d /var/lib/etcd/member-backup-* /var/lib/etcd/snapshot-*.db"])?;
    for node in NODES {
        let flag = || cluster::attribute(lab, node, "reboot", "force_new_cluster");
        eventually("force_new_cluster is taken back", flag, Option::is_none)?;
    }
    Ok(())
}

/// Makes a data dir as `etcdutl snapshot restore` does: that of a new cluster with this node as its only member. The lab's image has no
/// etcdutl, so an etcd starts such a cluster and stops.
fn restore(lab: &Lab, node: Node) -> Result<()> {
    let image = image::name(&lab.setting("etcd").unwrap_or_default());
    let url = format!("https://{}:2380", node.ip());
    let script = format!(
        "rm -rf /var/lib/etcd && mkdir -m 700 /var/lib/etcd &&
         podman run --detach --name restore --network=host --volume=/var/lib/etcd:/var/lib/etcd --entrypoint=etcd {image} \
             --name={node} --data-dir=/var/lib/etcd --initial-cluster={node}={url} --initial-cluster-token=restored \
             --initial-advertise-peer-urls={url} --listen-peer-urls=http://127.0.0.1:2380 &&
         sleep 4 && podman stop restore && podman rm restore && test -d /var/lib/etcd/member"
    );
    host::must(lab, node, &["sh", "-c", &script]).map(drop)
}
