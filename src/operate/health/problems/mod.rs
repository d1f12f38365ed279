//! Every problem that follows from the facts, with a stable id, a sentence in the words of the recovery guide, and a command. Each part
//! of the cluster has a file here, and each sentence has a row in the guide.

mod attempts;
pub(super) mod bmc;
pub(super) mod certificates;
pub(super) mod collector;
mod data;
mod etcd;
pub(super) mod fencing;
mod image;
mod leading;
pub(super) mod machine;
mod power;
mod resource;
pub(super) mod stack;

pub(in crate::operate) use self::etcd::NEARLY_FULL;
pub use self::leading::{primary, two_histories};
use super::{Problem, Severity, view};
use crate::base::shell;
use crate::operate::cluster::Cluster;

/// End of the id of a problem that means that a source could not be queried.
const UNKNOWN: &str = "-unknown";

/// Returns whether the problem `id` means that a source could not be queried. `primary-unknown` does not: it means that the configured
/// primary is none of the nodes.
pub(super) fn is_unasked(id: &str) -> bool {
    id.ends_with(UNKNOWN) && id != "primary-unknown" || id == "not-asked"
}

/// The ids of all problems of `tandem status`, in the order of the modules that report them. `tandem fencing check` also reports those
/// that keep a node from being fenced.
pub const IDS: &[&str] = &[
    "pacemaker-stopped",
    "pacemaker-starting",
    "pacemaker-unknown",
    "cib-unknown",
    "quorum-unknown",
    "waits-for-peer",
    "no-quorum",
    "cluster-maintenance",
    "stonith-disabled",
    "one-node",
    "node-unclean",
    "node-stop-failed",
    "node-offline",
    "node-pending",
    "node-standby",
    "node-maintenance",
    "no-leader",
    "no-etcd",
    "etcd-unknown",
    "reads-unknown",
    "etcd-stopped",
    "etcd-starting",
    "two-clusters",
    "learner-catches-up",
    "learner-lags",
    "alarm-nospace",
    "alarm",
    "quota",
    "more-voters",
    "image-not-here",
    "image-pending",
    "primary-unknown",
    "primary-follows",
    "start-failed",
    "operation-failed",
    "failure-healed",
    "resource-blocked",
    "resource-given-up",
    "resource-unmanaged",
    "resource-disabled",
    "resource-banned",
    "no-backups",
    "load-threshold",
    "fence-device-missing",
    "fence-device-disabled",
    "fence-device-blocked",
    "fence-device-failed",
    "fence-device-stopped",
    "fence-device-unmanaged",
    "bmc-check-failed",
    "bmc-other-machine",
    "bmc-contradiction",
    "bmc-says-off",
    "password-copies",
    "password-staged",
    "fencing-secret-differs",
    "fencing-pending",
    "fencing-failed",
    "certificate-ended",
    "certificate-ends-soon",
    "certificate-ends",
    "collector-missing",
    "collector-stale",
    "collector-unknown",
    "lone-boot-not-enabled",
    "tandem-versions",
    "etcd-versions",
    "disk-full",
    "histories-split",
    "left-behind",
    "moved-aside",
    "stale-join-file",
];

/// The ids of the problems that only `tandem fencing check` reports. `tandem status` does not ask the BMCs, the fence devices' options and
/// OpenShift's API for them.
pub const IDS_OF_THE_CHECK: &[&str] = &[
    "not-two-voters",
    "not-enabled",
    "host-not-detached",
    "hosts-not-known",
    "other-remediation",
    "remediation-under-way",
    "remediation-not-known",
    "not-bound",
    "no-such-node",
    "device-banned",
    "not-asked",
    "options-wrong",
    "no-system-uuid",
    "not-verified",
    "may-not-reset",
    "account-locked",
    "reset-types",
    "bmc-clock",
    "restore-policy",
    "slow-answer",
    "slow-off",
    "one-network",
    "delays",
    "delays-against-primary",
    "race",
    "race-preferred",
    "race-address",
    "race-user",
    "race-flag",
];

/// Returns all problems of `cluster`, with the worst first.
pub(super) fn of(cluster: &Cluster) -> Vec<Problem> {
    let mut found = Found::default();
    stack::find(cluster, &mut found);
    machine::find(cluster, &mut found);
    etcd::find(cluster, &mut found);
    image::find(cluster, &mut found);
    leading::find(cluster, &mut found);
    data::find_histories(cluster, &mut found);
    resource::find(cluster, &mut found);
    fencing::find(cluster, &mut found);
    certificates::find(cluster, &mut found);
    collector::find(cluster, &mut found);
    data::find_moved_aside(cluster, &mut found);
    certificates::find_stale_join_files(cluster, &mut found);
    // The sort is stable, so that related problems of one severity stay together.
    found.problems.sort_by_key(|problem| problem.severity);
    found.problems
}

/// Returns `command` in the form that runs on `node` when it is typed on this node. On another node, ssh runs it.
pub(super) fn on(cluster: &Cluster, node: &str, command: impl Into<String>) -> String {
    let (here, command) = (view::here(cluster), command.into());
    if here.is_empty() || here == node {
        return command;
    }
    // The remote shell splits the text of ssh once more.
    let handed = if command.contains('\'') { shell::quoted(&command) } else { command };
    format!("ssh {} {handed}", shell::quoted(node))
}

/// The problems that were found so far.
#[derive(Default)]
pub(super) struct Found {
    pub(super) problems: Vec<Problem>,
}

impl Found {
    fn critical(&mut self, id: &'static str, node: Option<&str>, text: String) -> Typed<'_> {
        self.put(id, Severity::Critical, node, text)
    }

    fn warning(&mut self, id: &'static str, node: Option<&str>, text: String) -> Typed<'_> {
        self.put(id, Severity::Warning, node, text)
    }

    fn notice(&mut self, id: &'static str, node: Option<&str>, text: String) -> Typed<'_> {
        self.put(id, Severity::Notice, node, text)
    }

    fn put(&mut self, id: &'static str, severity: Severity, node: Option<&str>, text: String) -> Typed<'_> {
        self.add(Problem::new(id, severity, node, text))
    }

    pub(super) fn add(&mut self, problem: Problem) -> Typed<'_> {
        debug_assert!(IDS.contains(&problem.id) || IDS_OF_THE_CHECK.contains(&problem.id));
        self.problems.push(problem);
        Typed(self.problems.last_mut())
    }
}

/// A new problem that still lacks its command. The caller adds one with [`Typed::typed`].
pub(super) struct Typed<'a>(Option<&'a mut Problem>);

impl Typed<'_> {
    /// Names the fence device with the problem.
    fn of_device(mut self, id: &str) -> Self {
        if let Some(problem) = &mut self.0 {
            problem.device = Some(id.to_owned());
        }
        self
    }

    /// Sets the command that the operator should type.
    fn typed(self, command: impl Into<String>) {
        if let Some(problem) = self.0 {
            problem.command = Some(command.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::base::shell::command;
    use crate::operate::health::samples;

    #[test]
    fn the_worst_comes_first_and_each_says_what_to_type() {
        for (name, cluster) in samples::all() {
            let problems = of(&cluster);
            assert!(problems.is_sorted_by_key(|problem| problem.severity), "{name}");
            for problem in problems {
                assert!(problem.command.is_some(), "{name}: {problem:?}");
                assert!(!problem.text.ends_with('.') && !problem.text.contains("  "), "{name}: {problem:?}");
            }
        }
    }

    /// Asserts that a shell parses each command as intended. Most commands contain a node's name, which may have any characters.
    #[test]
    fn a_shell_splits_each_command_as_it_is_meant() {
        const ODD: &str = "no;de '2$(x)";
        for (name, cluster) in samples::all() {
            let odd = serde_json::to_string(&cluster).unwrap().replace("node2", ODD).replace("etcd-clone", "et|cd");
            let odd: Cluster = serde_json::from_str(&odd).unwrap();
            for command in of(&cluster).into_iter().chain(of(&odd)).filter_map(|problem| problem.command) {
                assert!(shell::split(&command).is_some(), "{name}: {command}");
            }
        }
    }

    /// Asserts that a command about the other node runs there through ssh. Without ssh it would apply to the node where the operator
    /// types it.
    #[test]
    fn what_is_about_the_other_node_alone_is_run_there() {
        let cluster = samples::read("healthy");
        assert_eq!(on(&cluster, "node1", "tandem explain"), "tandem explain");
        assert_eq!(on(&cluster, "node2", "tandem explain"), "ssh node2 tandem explain");
        let handed = shell::split(&on(&cluster, "node2", command!("rm {}", "/a b"))).unwrap();
        assert_eq!(handed, ["ssh", "node2", "rm '/a b'"]);
        for (name, cluster) in samples::all() {
            for problem in of(&cluster).into_iter().filter(|problem| problem.node.is_some()) {
                let (node, command) = (problem.node.unwrap_or_default(), problem.command.unwrap_or_default());
                let is_local = ["rm ", "df ", "systemctl ", "openssl ", "tandem certs renew", "tandem data-dir"];
                let is_local = is_local.iter().any(|begin| command.starts_with(begin));
                assert!(!is_local || node == view::here(&cluster), "{name}: {} of {node}: {command}", problem.id);
            }
        }
    }

    /// Asserts that some fixture shows each id of [`IDS`].
    #[test]
    fn every_id_is_seen_in_some_state() {
        let seen: BTreeSet<&str> =
            samples::all().iter().flat_map(|(_, cluster)| of(cluster)).map(|problem| problem.id).collect();
        let missing: Vec<&&str> = IDS.iter().filter(|id| !seen.contains(**id)).collect();
        assert!(missing.is_empty(), "no file in tests/data/fixtures/cluster shows {missing:?}");
        let unique: BTreeSet<&&str> = IDS.iter().chain(IDS_OF_THE_CHECK).collect();
        assert_eq!(unique.len(), IDS.len() + IDS_OF_THE_CHECK.len());
    }
}
