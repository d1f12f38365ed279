//! A fake of Two Node OpenShift's nodes: etcd's certificates and pod manifest, kubelet's own etcd from a static pod,
//! kubelet itself, and the resources as OpenShift's etcd operator creates them.

use std::time::Duration;

use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::programs::image;
use crate::scenarios::steps;
use crate::sh::Result;

pub const CERTS: &str = "/etc/kubernetes/static-pod-resources/etcd-certs";
pub const MANIFEST: &str = "/etc/kubernetes/static-pod-resources/etcd-certs/configmaps/external-etcd-pod/pod.yaml";
const POD: &str = include_str!("../../data/fixtures/openshift/pod.json");
const POD_IMAGE: &str = "quay.example.com/openshift/etcd@sha256:1111";
const STATIC_POD: &str = "static-etcd";

/// Returns OpenShift's pod manifest for etcd, with the lab's image in it.
pub fn manifest(lab: &Lab) -> String {
    POD.replace(POD_IMAGE, &image::name(&lab.setting("etcd").unwrap_or_default()))
}

/// Puts OpenShift's files on both nodes, and installs the agent under the name that OpenShift uses.
pub fn prepare(lab: &Lab) -> Result<()> {
    for node in NODES {
        let secrets = format!("{CERTS}/secrets/etcd-all-certs");
        let script = format!(
            "mkdir -p {secrets} {CERTS}/configmaps/etcd-all-bundles /usr/lib/ocf/resource.d/heartbeat &&
             cp /etc/tandem/ca.crt {CERTS}/configmaps/etcd-all-bundles/server-ca-bundle.crt &&
             for kind in serving peer; do for file in crt key; do
                 cp /etc/tandem/etcd.$file {secrets}/etcd-$kind-{node}.$file || exit 1
             done; done &&
             rm -f /etc/tandem/etcd.* /etc/tandem/ca.crt &&
             ln -sf /usr/sbin/tandem /usr/lib/ocf/resource.d/heartbeat/podman-etcd"
        );
        host::must(lab, node, &["sh", "-c", &script])?;
        host::put(lab, node, MANIFEST, &manifest(lab))?;
    }
    Ok(())
}

/// Starts etcd on both nodes as kubelet runs static pods, in one of kubelet's cgroups.
pub fn start_static_pods(lab: &Lab) -> Result<()> {
    let image = image::name(&lab.setting("etcd").unwrap_or_default());
    let members = NODES.map(|node| format!("{node}=https://{}:2380", node.ip())).join(",");
    for node in NODES {
        let inside = "/etc/kubernetes/static-pod-certs";
        let pem = |kind: &str, file: &str| format!("{inside}/secrets/etcd-all-certs/etcd-{kind}-{node}.{file}");
        let ca = format!("{inside}/configmaps/etcd-all-bundles/server-ca-bundle.crt");
        let words = [
            "podman run --detach --network=host --cgroup-parent=/kubepods --entrypoint=etcd".to_owned(),
            format!("--name={STATIC_POD} --volume={CERTS}:{inside} --volume=/var/lib/etcd:/var/lib/etcd {image}"),
            format!("--name={node} --data-dir=/var/lib/etcd --initial-cluster={members}"),
            format!("--initial-advertise-peer-urls=https://{}:2380 --listen-peer-urls=https://0.0.0.0:2380", node.ip()),
            format!("--advertise-client-urls=https://{}:2379 --listen-client-urls=https://0.0.0.0:2379", node.ip()),
            format!("--cert-file={} --key-file={}", pem("serving", "crt"), pem("serving", "key")),
            format!("--peer-cert-file={} --peer-key-file={}", pem("peer", "crt"), pem("peer", "key")),
            format!("--trusted-ca-file={ca} --peer-trusted-ca-file={ca} --client-cert-auth --peer-client-cert-auth"),
        ];
        host::must(lab, node, &["sh", "-c", &words.join(" ")])?;
    }
    etcd::wait_two_voters(lab, Duration::from_secs(60)).map(drop)
}

/// Stops the etcd that [`start_static_pods`] started, and keeps its dead container, as kubelet does.
pub fn end_static_pod(lab: &Lab, node: Node) -> Result<()> {
    host::must(lab, node, &["podman", "stop", "--time=10", STATIC_POD]).map(drop)
}

/// The delay of kubelet's start that the etcd operator configures. Scenarios about later events use a shorter one.
pub const OPERATORS_DELAY: &str = "15s";
const SHORT_DELAY: &str = "3s";

/// Creates the cluster's resources by the commands that OpenShift's etcd operator uses. The kubelet resource is a
/// fake, because the hosts have no systemd.
pub fn create_resources(lab: &Lab, kubelet_delay: &str) -> Result<()> {
    let map = NODES.map(|node| format!("{node}:{}", node.ip())).join(";");
    let etcd = format!(
        "pcs resource create etcd ocf:heartbeat:podman-etcd node_ip_map=\"{map}\" drop_in_dependency=true clone \
         interleave=true notify=true meta migration-threshold=60"
    );
    let kubelet = format!(
        "pcs resource create kubelet ocf:pacemaker:Dummy op start timeout=180s start-delay={kubelet_delay} clone meta \
         interleave=true migration-threshold=60"
    );
    for command in [
        "pcs property set start-failure-is-fatal=false",
        &kubelet,
        &etcd,
        "pcs constraint order kubelet-clone then etcd-clone && pcs constraint colocation add etcd-clone with kubelet-clone",
    ] {
        host::must(lab, NODES[0], &["sh", "-c", command])?;
    }
    Ok(())
}

/// Brings up a Two Node OpenShift cluster from blank disks, until the agent runs two voters.
pub fn up(lab: &Lab) -> Result<()> {
    prepare(lab)?;
    create_resources(lab, SHORT_DELAY)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180)).map(drop)
}

/// Restarts etcd on a node as `pcs resource restart` does: bans the resource there, and removes the ban.
pub fn restart_etcd(lab: &Lab, node: Node) -> Result<()> {
    pcs::run(lab, node, &["resource", "ban", "etcd-clone", node.name()])?;
    steps::wait_stopped(lab, &[node])?;
    pcs::run(lab, node, &["resource", "clear", "etcd-clone", node.name()])?;
    etcd::wait_two_voters(lab, Duration::from_secs(120)).map(drop)
}
