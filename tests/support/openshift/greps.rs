//! The greps of OpenShift's end-to-end tests, its operators and their scripts on a node, in their own commands, each
//! with its source. This is only the table: the lab runs it in `openshift_created`, and `tests/repo_checks/contract.rs`
//! compares it with `tests/contract.md`.

/// The stage of the scenario `openshift_created` at which one of OpenShift's commands runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Both nodes serve under the agent. Pacemaker's log is searched from the first start on.
    Created,
    /// The clone of etcd was disabled, and is stopped on both nodes.
    Disabled,
    /// The clone of etcd was disabled and enabled again, and both nodes serve. Pacemaker's log is searched from the disabling on.
    Enabled,
}

/// The nodes on which a command of OpenShift must find its pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The pattern must be found on each node.
    Everywhere,
    /// The pattern must be found on the second node, and not on the first one.
    OnTheSecond,
    /// The pattern must be found on neither node.
    Nowhere,
    /// The result deliberately differs from what OpenShift expects. The text is the line of `tests/contract.md` that
    /// gives the reason.
    Differently(&'static str),
    /// The command does not run here. Another scenario checks it, or it needs a part of OpenShift that the lab does
    /// not have. The text has the reason.
    Elsewhere(&'static str),
}

pub struct Look {
    pub when: When,
    /// The shell command, which succeeds if its pattern is found. The word `LOG` in it means the part of Pacemaker's log since the stage
    /// `when`.
    pub command: &'static str,
    pub found: Found,
    /// The origin of the command: the repository, the file in it, and the test or function.
    pub from: &'static str,
}

const fn look(when: When, command: &'static str, found: Found, from: &'static str) -> Look {
    Look { when, command, found, from }
}

pub const LOOKS: &[Look] = &[
    look(
        When::Created,
        "LOG | grep -F -- 'a new working copy of /etc/kubernetes'",
        Found::Everywhere,
        "openshift/origin test/extended/edge_topologies/tnf_recovery.go: kernel panic",
    ),
    look(
        When::Created,
        "podman inspect --format '{{.State.Running}}' etcd | grep -x true",
        Found::Everywhere,
        "openshift/origin test/extended/edge_topologies/tnf_topology.go: the podman container runs",
    ),
    look(
        When::Created,
        "pcs resource describe ocf:heartbeat:podman-etcd | grep -i 'default: -997'",
        Found::Everywhere,
        "openshift/origin test/extended/edge_topologies/tnf_topology.go: the default of oom",
    ),
    look(
        When::Created,
        "grep -x -e -997 /proc/$(podman inspect --format '{{.State.Pid}}' etcd)/oom_score_adj",
        Found::Elsewhere(
            "what podman is told: `the_run_line_is_the_shell_agents`; a host of the lab may not lower a score",
        ),
        "openshift/origin test/extended/edge_topologies/tnf_topology.go: the oom score of etcd's process",
    ),
    look(
        When::Created,
        "pcs resource config etcd | grep node_ip_map=",
        Found::Everywhere,
        "openshift/cluster-etcd-operator pkg/tnf/update-setup: whether the map has changed",
    ),
    look(
        When::Created,
        "test \"$(pcs status xml | grep -c 'id=\"etcd\".*role=\"Started\"')\" = 2",
        Found::Everywhere,
        "openshift/cluster-etcd-operator cluster-restore-tnf.sh: both are started",
    ),
    look(
        When::Disabled,
        "crm_attribute --query --name learner_node; case $? in 6|105) ;; *) false;; esac",
        Found::Everywhere,
        "openshift/origin test/extended/edge_topologies/tnf_etcd_disruption.go: learner_node is cleared at a stop",
    ),
    look(
        When::Enabled,
        "crm_attribute --query --name learner_node; case $? in 6|105) ;; *) false;; esac",
        Found::Everywhere,
        "openshift/origin test/extended/edge_topologies/tnf_etcd_disruption.go: learner_node is cleared at a start",
    ),
    look(
        When::Enabled,
        "LOG | grep -F -- 'active etcd resources'",
        Found::Everywhere,
        "openshift/origin test/extended/edge_topologies/tnf_etcd_disruption.go: a stopping node is not counted active",
    ),
    look(
        When::Enabled,
        "LOG | grep -F -- 'Unexpected active resource count'",
        Found::Nowhere,
        "openshift/origin test/extended/edge_topologies/tnf_etcd_disruption.go: a stopping node is not counted active",
    ),
    look(
        When::Enabled,
        "LOG | grep -F -- 'stopping etcd resources'",
        Found::Everywhere,
        "openshift/origin test/extended/edge_topologies/tnf_etcd_disruption.go: the second node's stop",
    ),
    look(
        When::Enabled,
        "LOG | grep -F -- 'delaying stop for'",
        Found::OnTheSecond,
        "openshift/origin test/extended/edge_topologies/tnf_etcd_disruption.go: the second node's stop",
    ),
    look(
        When::Enabled,
        "LOG | grep -F -- 'peer active but not a voter'",
        Found::Differently("`peer active but not a voter` after a spoofed `standalone_node`"),
        "openshift/origin test/extended/edge_topologies/tnf_etcd_disruption.go: identify the standalone voter",
    ),
    look(
        When::Enabled,
        "pcs status | sed -n '/Failed Resource Actions/,$p' | grep -F node1 | grep -F node2",
        Found::Differently("one etcd is killed: both nodes stand in `Failed Resource Actions`"),
        "openshift/origin test/extended/edge_topologies/tnf_etcd_disruption.go: coordinated recovery of a killed etcd",
    ),
    look(
        When::Enabled,
        "journalctl -u pacemaker | grep -E '\"bump-amount\":[0-9]+'",
        Found::Elsewhere("only OpenShift's own etcd writes it; there is no journal in the lab"),
        "openshift/origin test/extended/edge_topologies/tnf_recovery.go: kernel panic",
    ),
    look(
        When::Enabled,
        "grep -E 'force-new-cluster-bump-amount: [0-9]+' /var/lib/etcd/config.yaml",
        Found::Elsewhere("after a forced start only: `openshifts_etcd_is_told_by_how_much_to_raise_its_revisions`"),
        "openshift/origin test/extended/edge_topologies/tnf_recovery.go: kernel panic",
    ),
    look(
        When::Enabled,
        "podman inspect etcd-previous",
        Found::Elsewhere("`lab:openshift_manifest_change`"),
        "openshift/origin test/extended/edge_topologies/tnf_recovery.go: kernel panic",
    ),
    look(
        When::Enabled,
        "podman exec etcd sh -lc 'etcdctl member list -w json'",
        Found::Elsewhere("the lab's image holds etcd and nothing else; what is listed is asked by a client"),
        "openshift/machine-config-operator taint-fenced-node.sh",
    ),
    look(
        When::Enabled,
        "journalctl --since '60 min ago' --no-pager | grep -m1 'force.new.cluster'",
        Found::Elsewhere("it only notes which way a recovery went, and fails nothing"),
        "openshift/origin test/extended/edge_topologies/tnf_recovery.go: logRecoveryPath",
    ),
];
