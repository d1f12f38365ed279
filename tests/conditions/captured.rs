//! The expected conditions of captured states, by the same rules as in the table of the other module.

/// The captured clusters in `tests/data/fixtures/cluster`, each with its conditions that are not true. Their nodes have a
/// device `fence-NODE` each, and no kubelet.
pub(crate) const CAPTURED: &[(&str, &[&str])] = &[
    ("healthy", &[]),
    ("back-after-fencing", &[]),
    (
        "fenced",
        &[
            "cluster Healthy=ClusterUnhealthy",
            "node2 Healthy=NodeUnhealthy",
            "node2 Online=Offline",
            "node2/Etcd Healthy=ResourceUnhealthy",
            "node2/Etcd Active=Inactive",
            "node2/Etcd Started=Stopped",
        ],
    ),
    (
        "standby",
        &[
            "cluster Healthy=ClusterUnhealthy",
            "node2 Healthy=NodeUnhealthy",
            "node2 Active=Standby",
            "node2/Etcd Healthy=ResourceUnhealthy",
            "node2/Etcd Active=Inactive",
            "node2/Etcd Started=Stopped",
        ],
    ),
    (
        "maintenance",
        &[
            "cluster Healthy=ClusterUnhealthy",
            "cluster InService=InMaintenance",
            "node1 FencingHealthy=FencingUnhealthy",
            "node1/Etcd Healthy=ResourceUnhealthy",
            "node1/Etcd InService=InMaintenance",
            "node1/Etcd Managed=Unmanaged",
            "node1/fence-node1 Healthy=ResourceUnhealthy",
            "node1/fence-node1 InService=InMaintenance",
            "node1/fence-node1 Managed=Unmanaged",
            "node2 FencingHealthy=FencingUnhealthy",
            "node2/Etcd Healthy=ResourceUnhealthy",
            "node2/Etcd InService=InMaintenance",
            "node2/Etcd Managed=Unmanaged",
            "node2/fence-node2 Healthy=ResourceUnhealthy",
            "node2/fence-node2 InService=InMaintenance",
            "node2/fence-node2 Managed=Unmanaged",
        ],
    ),
    (
        "unmanaged",
        &[
            "node1/Etcd Healthy=ResourceUnhealthy",
            "node1/Etcd Managed=Unmanaged",
            "node2/Etcd Healthy=ResourceUnhealthy",
            "node2/Etcd Managed=Unmanaged",
        ],
    ),
    (
        "disabled",
        &[
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
        ],
    ),
    // The start runs until the learner is promoted.
    (
        "learner",
        &[
            "cluster Healthy=ClusterUnhealthy",
            "node2 Healthy=NodeUnhealthy",
            "node2/Etcd Healthy=ResourceUnhealthy",
            "node2/Etcd Started=Stopped",
        ],
    ),
    (
        "pacemaker-stopped",
        &[
            "cluster Healthy=NotObserved",
            "cluster InService=NotObserved",
            "node1 *=NotObserved",
            "node1/Etcd *=NotObserved",
            "node1/fence-node1 *=NotObserved",
            "node2 *=NotObserved",
            "node2/Etcd *=NotObserved",
            "node2/fence-node2 *=NotObserved",
        ],
    ),
];
