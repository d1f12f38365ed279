//! The conditions that are not true in each state of a cluster, derived from OpenShift's rules and not from the
//! program.

use tandem::adapters::pacemaker::seen::{Failure, FenceDevice, Node, Resource};
use tandem::base::Fact;
use tandem::operate::cluster::Cluster;

use crate::states::{INFINITY, NODES, configured, each, instance, node, on, power_off, seen, stop};

/// A state of the cluster: its name, its difference from the healthy state, and its conditions that are not true. Each
/// of those is written as `PLACE TYPE=REASON`.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) change: fn(&mut Cluster),
    pub(crate) expected: &'static [&'static str],
}

const fn row(name: &'static str, change: fn(&mut Cluster), expected: &'static [&'static str]) -> Row {
    Row { name, change, expected }
}

pub(crate) const ROWS: &[Row] = &[
    row("healthy", |_| {}, &[]),
    row("promotable", promotable, &[]),
    row("no kubelet", no_kubelet, NO_KUBELET),
    row("peer off", |cluster| power_off(cluster, "node2"), PEER_OFF),
    row("peer off, whose device ran there alone", peer_off_with_device, PEER_OFF_WITH_DEVICE),
    row("unclean", unclean, UNCLEAN),
    row("standby", standby, STANDBY),
    row(
        "pending",
        |cluster| node(cluster, "node2").pending = true,
        &["cluster Healthy=ClusterUnhealthy", "node2 Healthy=NodeUnhealthy", "node2 Ready=Pending"],
    ),
    row("node maintenance", node_maintenance, NODE_MAINTENANCE),
    row("cluster maintenance", cluster_maintenance, CLUSTER_MAINTENANCE),
    row(
        "unmanaged",
        |cluster| each(cluster, "etcd").for_each(|etcd| etcd.managed = false),
        &[
            "node1/Etcd Healthy=ResourceUnhealthy",
            "node1/Etcd Managed=Unmanaged",
            "node2/Etcd Healthy=ResourceUnhealthy",
            "node2/Etcd Managed=Unmanaged",
        ],
    ),
    row("disabled", disabled, DISABLED),
    row("failed start", failed_start, ETCD_STOPPED),
    row(
        "failed, and not recovered yet",
        |cluster| on(cluster, "etcd", "node2").failed = true,
        &["node2/Etcd Healthy=ResourceUnhealthy", "node2/Etcd Operational=Failed"],
    ),
    row(
        "blocked",
        |cluster| on(cluster, "etcd", "node2").blocked = true,
        &["node2/Etcd Healthy=ResourceUnhealthy", "node2/Etcd Schedulable=Unschedulable"],
    ),
    row(
        "starting",
        |cluster| "Starting".clone_into(&mut on(cluster, "etcd", "node2").role),
        &[
            "cluster Healthy=ClusterUnhealthy",
            "node2 Healthy=NodeUnhealthy",
            "node2/Etcd Healthy=ResourceUnhealthy",
            "node2/Etcd Started=Stopped",
        ],
    ),
    row(
        "failed fence device",
        |cluster| on(cluster, "node2_redfish", "node1").failed = true,
        &[
            "cluster Healthy=ClusterUnhealthy",
            "node2 Healthy=NodeUnhealthy",
            "node2 FencingAvailable=FencingUnavailable",
            "node2 FencingHealthy=FencingUnhealthy",
            "node2/node2_redfish Healthy=ResourceUnhealthy",
            "node2/node2_redfish Operational=Failed",
        ],
    ),
    row("disabled device", disabled_device, DISABLED_DEVICE),
    row("device that nothing shows", missing_device, MISSING_DEVICE),
    row(
        "unmanaged device",
        |cluster| on(cluster, "node2_redfish", "node1").managed = false,
        &[
            "node2 FencingHealthy=FencingUnhealthy",
            "node2/node2_redfish Healthy=ResourceUnhealthy",
            "node2/node2_redfish Managed=Unmanaged",
        ],
    ),
    row(
        "one of two devices failed",
        one_of_two_devices,
        &[
            "node2 FencingHealthy=FencingUnhealthy",
            "node2/node2_ipmi Healthy=ResourceUnhealthy",
            "node2/node2_ipmi Operational=Failed",
        ],
    ),
    row(
        "no device",
        no_device,
        &[
            "cluster Healthy=ClusterUnhealthy",
            "node2 Healthy=NodeUnhealthy",
            "node2 FencingAvailable=FencingUnavailable",
            "node2 FencingHealthy=FencingUnhealthy",
        ],
    ),
    row("devices that name no node", unnamed_targets, &[]),
    row("node missing in crm_mon", missing_node, NODE_MISSING),
    row(
        "remote node",
        |cluster| "remote".clone_into(&mut node(cluster, "node2").kind),
        &["cluster Healthy=ClusterUnhealthy", "node2 Healthy=NodeUnhealthy", "node2 Member=NotMember"],
    ),
    row("one node", one_node, &["cluster Healthy=ClusterUnhealthy", "cluster NodeCountAsExpected=InsufficientNodes"]),
    row("three nodes", three_nodes, THREE_NODES),
    row("Pacemaker stopped here", |cluster| cluster.pacemaker = Fact::Absent, UNKNOWN),
    row("Pacemaker does not answer", hanging, UNKNOWN),
    row("the CIB does not answer", |cluster| cluster.configuration = Fact::Unknown("no answer".to_owned()), &[]),
    row(
        "nothing answers",
        nothing,
        &["cluster Healthy=NotObserved", "cluster InService=NotObserved", "cluster NodeCountAsExpected=NotObserved"],
    ),
];

const NO_KUBELET: &[&str] = &["node1/Kubelet *=NotConfigured", "node2/Kubelet *=NotConfigured"];

fn no_kubelet(cluster: &mut Cluster) {
    configured(cluster).kubelet = None;
    seen(cluster).resources.retain(|instance| instance.id != "kubelet");
}

fn promotable(cluster: &mut Cluster) {
    "Promoted".clone_into(&mut on(cluster, "etcd", "node1").role);
    "Unpromoted".clone_into(&mut on(cluster, "etcd", "node2").role);
}

const PEER_OFF: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "node2 Healthy=NodeUnhealthy",
    "node2 Online=Offline",
    "node2/Kubelet Healthy=ResourceUnhealthy",
    "node2/Kubelet Active=Inactive",
    "node2/Kubelet Started=Stopped",
    "node2/Etcd Healthy=ResourceUnhealthy",
    "node2/Etcd Active=Inactive",
    "node2/Etcd Started=Stopped",
];

const PEER_OFF_WITH_DEVICE: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "node1 Healthy=NodeUnhealthy",
    "node1 FencingAvailable=FencingUnavailable",
    "node1 FencingHealthy=FencingUnhealthy",
    "node1/node1_redfish Healthy=ResourceUnhealthy",
    "node1/node1_redfish Active=Inactive",
    "node1/node1_redfish Started=Stopped",
    "node2 Healthy=NodeUnhealthy",
    "node2 Online=Offline",
    "node2/Kubelet Healthy=ResourceUnhealthy",
    "node2/Kubelet Active=Inactive",
    "node2/Kubelet Started=Stopped",
    "node2/Etcd Healthy=ResourceUnhealthy",
    "node2/Etcd Active=Inactive",
    "node2/Etcd Started=Stopped",
];

fn peer_off_with_device(cluster: &mut Cluster) {
    power_off(cluster, "node2");
    stop(on(cluster, "node1_redfish", "node1"));
}

/// The conditions that are not true before a lost node is fenced. In this time Pacemaker reports the lost node's
/// resources as running.
const UNCLEAN: &[&str] =
    &["cluster Healthy=ClusterUnhealthy", "node2 Healthy=NodeUnhealthy", "node2 Online=Offline", "node2 Clean=Unclean"];

fn unclean(cluster: &mut Cluster) {
    let node = node(cluster, "node2");
    node.online = false;
    node.unclean = true;
}

const STANDBY: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "node2 Healthy=NodeUnhealthy",
    "node2 Active=Standby",
    "node2/Kubelet Healthy=ResourceUnhealthy",
    "node2/Kubelet Active=Inactive",
    "node2/Kubelet Started=Stopped",
    "node2/Etcd Healthy=ResourceUnhealthy",
    "node2/Etcd Active=Inactive",
    "node2/Etcd Started=Stopped",
];

fn standby(cluster: &mut Cluster) {
    node(cluster, "node2").standby = true;
    stop(on(cluster, "etcd", "node2"));
    stop(on(cluster, "kubelet", "node2"));
    on(cluster, "node1_redfish", "node2").nodes = vec!["node1".to_owned()];
}

const NODE_MAINTENANCE: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "node1 FencingHealthy=FencingUnhealthy",
    "node1/node1_redfish Healthy=ResourceUnhealthy",
    "node1/node1_redfish InService=InMaintenance",
    "node1/node1_redfish Managed=Unmanaged",
    "node2 Healthy=NodeUnhealthy",
    "node2 InService=InMaintenance",
    "node2/Kubelet Healthy=ResourceUnhealthy",
    "node2/Kubelet InService=InMaintenance",
    "node2/Kubelet Managed=Unmanaged",
    "node2/Etcd Healthy=ResourceUnhealthy",
    "node2/Etcd InService=InMaintenance",
    "node2/Etcd Managed=Unmanaged",
];

fn node_maintenance(cluster: &mut Cluster) {
    node(cluster, "node2").maintenance = true;
    for id in ["etcd", "kubelet", "node1_redfish"] {
        let instance = on(cluster, id, "node2");
        (instance.maintenance, instance.managed) = (true, false);
    }
}

/// The conditions that are not true while the cluster is in maintenance. The nodes themselves still count as healthy.
const CLUSTER_MAINTENANCE: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "cluster InService=InMaintenance",
    "node1 FencingHealthy=FencingUnhealthy",
    "node1/Kubelet Healthy=ResourceUnhealthy",
    "node1/Kubelet InService=InMaintenance",
    "node1/Kubelet Managed=Unmanaged",
    "node1/Etcd Healthy=ResourceUnhealthy",
    "node1/Etcd InService=InMaintenance",
    "node1/Etcd Managed=Unmanaged",
    "node1/node1_redfish Healthy=ResourceUnhealthy",
    "node1/node1_redfish InService=InMaintenance",
    "node1/node1_redfish Managed=Unmanaged",
    "node2 FencingHealthy=FencingUnhealthy",
    "node2/Kubelet Healthy=ResourceUnhealthy",
    "node2/Kubelet InService=InMaintenance",
    "node2/Kubelet Managed=Unmanaged",
    "node2/Etcd Healthy=ResourceUnhealthy",
    "node2/Etcd InService=InMaintenance",
    "node2/Etcd Managed=Unmanaged",
    "node2/node2_redfish Healthy=ResourceUnhealthy",
    "node2/node2_redfish InService=InMaintenance",
    "node2/node2_redfish Managed=Unmanaged",
];

fn cluster_maintenance(cluster: &mut Cluster) {
    let seen = seen(cluster);
    seen.maintenance = true;
    for instance in &mut seen.resources {
        (instance.maintenance, instance.managed) = (true, false);
    }
}

const DISABLED: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "node1 Healthy=NodeUnhealthy",
    "node1/Etcd Healthy=ResourceUnhealthy",
    "node1/Etcd Enabled=Disabled",
    "node1/Etcd Active=Inactive",
    "node1/Etcd Started=Stopped",
    "node2 Healthy=NodeUnhealthy",
    "node2/Etcd Healthy=ResourceUnhealthy",
    "node2/Etcd Enabled=Disabled",
    "node2/Etcd Active=Inactive",
    "node2/Etcd Started=Stopped",
];

fn disabled(cluster: &mut Cluster) {
    each(cluster, "etcd").for_each(|etcd| {
        etcd.target_role = Some("Stopped".to_owned());
        stop(etcd);
    });
}

const ETCD_STOPPED: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "node2 Healthy=NodeUnhealthy",
    "node2/Etcd Healthy=ResourceUnhealthy",
    "node2/Etcd Active=Inactive",
    "node2/Etcd Started=Stopped",
];

fn failed_start(cluster: &mut Cluster) {
    stop(on(cluster, "etcd", "node2"));
    let seen = seen(cluster);
    let is_it = |history: &&mut tandem::adapters::pacemaker::seen::History| {
        history.node == "node2" && history.resource == "etcd"
    };
    seen.histories.iter_mut().find(is_it).unwrap().fail_count = INFINITY;
    seen.failures.push(Failure {
        node: "node2".to_owned(),
        resource: "etcd".to_owned(),
        task: "start".to_owned(),
        rc: 1,
        at: Some(crate::states::AT - 60),
        ..Failure::default()
    });
}

const DISABLED_DEVICE: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "node2 Healthy=NodeUnhealthy",
    "node2 FencingAvailable=FencingUnavailable",
    "node2 FencingHealthy=FencingUnhealthy",
    "node2/node2_redfish Healthy=ResourceUnhealthy",
    "node2/node2_redfish Enabled=Disabled",
    "node2/node2_redfish Active=Inactive",
    "node2/node2_redfish Started=Stopped",
];

fn disabled_device(cluster: &mut Cluster) {
    let device = on(cluster, "node2_redfish", "node1");
    device.target_role = Some("Stopped".to_owned());
    stop(device);
}

const MISSING_DEVICE: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "node2 Healthy=NodeUnhealthy",
    "node2 FencingAvailable=FencingUnavailable",
    "node2 FencingHealthy=FencingUnhealthy",
    "node2/node2_redfish Healthy=ResourceUnhealthy",
    "node2/node2_redfish Active=Inactive",
    "node2/node2_redfish Started=Stopped",
];

fn missing_device(cluster: &mut Cluster) {
    seen(cluster).resources.retain(|instance| instance.id != "node2_redfish");
}

fn one_of_two_devices(cluster: &mut Cluster) {
    let agent = "stonith:fence_ipmilan";
    let mut second = instance("node2_ipmi", None, agent, "node1", "Started");
    second.failed = true;
    seen(cluster).resources.push(second);
    configured(cluster).fence_devices.push(FenceDevice {
        resource: Resource { id: "node2_ipmi".to_owned(), agent: agent.to_owned(), ..Resource::default() },
        targets: vec!["node2".to_owned()],
        ..FenceDevice::default()
    });
}

fn no_device(cluster: &mut Cluster) {
    missing_device(cluster);
    configured(cluster).fence_devices.retain(|device| device.resource.id != "node2_redfish");
}

fn unnamed_targets(cluster: &mut Cluster) {
    configured(cluster).fence_devices.iter_mut().for_each(|device| device.targets.clear());
}

const NODE_MISSING: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "node2 Healthy=NodeUnhealthy",
    "node2 Online=Offline",
    "node2 Member=NotMember",
    "node2/Kubelet Healthy=ResourceUnhealthy",
    "node2/Kubelet Active=Inactive",
    "node2/Kubelet Started=Stopped",
    "node2/Etcd Healthy=ResourceUnhealthy",
    "node2/Etcd Active=Inactive",
    "node2/Etcd Started=Stopped",
];

fn missing_node(cluster: &mut Cluster) {
    power_off(cluster, "node2");
    seen(cluster).nodes.retain(|node| node.name != "node2");
}

fn one_node(cluster: &mut Cluster) {
    seen(cluster).nodes.truncate(1);
    on(cluster, "node1_redfish", "node2").nodes = vec!["node1".to_owned()];
    configured(cluster).nodes.truncate(1);
}

const THREE_NODES: &[&str] = &[
    "cluster Healthy=ClusterUnhealthy",
    "cluster NodeCountAsExpected=ExcessiveNodes",
    "node3 Healthy=NodeUnhealthy",
    "node3 FencingAvailable=FencingUnavailable",
    "node3 FencingHealthy=FencingUnhealthy",
    "node3/Kubelet Healthy=ResourceUnhealthy",
    "node3/Kubelet Active=Inactive",
    "node3/Kubelet Started=Stopped",
    "node3/Etcd Healthy=ResourceUnhealthy",
    "node3/Etcd Active=Inactive",
    "node3/Etcd Started=Stopped",
];

fn three_nodes(cluster: &mut Cluster) {
    let third = Node { name: "node3".to_owned(), ..node(cluster, "node2").clone() };
    seen(cluster).nodes.push(third);
    configured(cluster).nodes.push("node3".to_owned());
    let map = "node1:192.0.2.1;node2:192.0.2.2;node3:2001:db8::3".to_owned();
    configured(cluster).etcd.as_mut().unwrap().parameters.insert("node_ip_map".to_owned(), map);
}

/// The conditions that are not true if nothing is known of Pacemaker. The nodes are known from the CIB on this node's
/// disk.
const UNKNOWN: &[&str] = &[
    "cluster Healthy=NotObserved",
    "cluster InService=NotObserved",
    "node1 *=NotObserved",
    "node1/Kubelet *=NotObserved",
    "node1/Etcd *=NotObserved",
    "node1/node1_redfish *=NotObserved",
    "node2 *=NotObserved",
    "node2/Kubelet *=NotObserved",
    "node2/Etcd *=NotObserved",
    "node2/node2_redfish *=NotObserved",
];

fn hanging(cluster: &mut Cluster) {
    cluster.pacemaker = Fact::Unknown("no answer within 2 s".to_owned());
    for name in NODES {
        cluster.etcd.insert(name.to_owned(), Fact::Unknown("no answer within 2 s".to_owned()));
    }
}

fn nothing(cluster: &mut Cluster) {
    hanging(cluster);
    cluster.configuration = Fact::Unknown("no answer".to_owned());
}
