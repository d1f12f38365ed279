//! The table of all scenarios: each with its name, its description, and its needs.

#[expect(clippy::wildcard_imports, reason = "the table names every module beside it")]
use super::*;
use crate::judge::journals::BOTH_RETURN;

/// Returns every scenario, for all kinds of hosts.
pub(super) fn all() -> impl Iterator<Item = &'static Scenario> {
    let topics = [
        knowing::SCENARIOS,
        SCENARIOS,
        api_address::SCENARIOS,
        corosync_parts::SCENARIOS,
        cut_off_from_users::SCENARIOS,
        etcd_network_parts::SCENARIOS,
        fence_race::SCENARIOS,
        leader_address::SCENARIOS,
        lone_boot::SCENARIOS,
        two_histories::SCENARIOS,
        voter_wins_the_race::SCENARIOS,
        cut_at_random::SCENARIOS,
        parameters_change::SCENARIOS,
        failback::SCENARIOS,
        attributes::SCENARIOS,
        setup::SCENARIOS,
        certs::SCENARIOS,
        member::SCENARIOS,
        vm::SCENARIOS,
    ];
    topics.into_iter().flatten().chain(LAST)
}

pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) needs: Needs,
    /// True if the next scenario may use the lab that this scenario left.
    pub(super) leaves_healthy: bool,
    /// True if the scenario runs only nightly, because it is long or random.
    pub(super) nightly: bool,
    /// The kinds of hosts on which the scenario runs. A scenario selected by name runs on any.
    pub(super) hosts: Hosts,
    /// The errors that programs log because of this scenario's failures, in addition to those that are known for every scenario.
    pub(super) errors: &'static [&'static [&'static str]],
    pub(super) run: fn(&Lab, Wish) -> Result<()>,
}

pub(super) const fn scenario(name: &'static str, about: &'static str, run: fn(&Lab, Wish) -> Result<()>) -> Scenario {
    Scenario {
        name,
        about,
        needs: Needs::Healthy,
        leaves_healthy: true,
        nightly: false,
        hosts: Hosts::Namespaces,
        errors: &[],
        run,
    }
}

impl Scenario {
    pub(super) const fn nightly(self) -> Self {
        Self { nightly: true, ..self }
    }

    pub(super) const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    pub(super) const fn on(self, hosts: Hosts) -> Self {
        Self { hosts, ..self }
    }

    pub(super) const fn errors(self, errors: &'static [&'static [&'static str]]) -> Self {
        Self { errors, ..self }
    }

    pub(super) const fn leaves_a_mess(self) -> Self {
        Self { leaves_healthy: false, ..self }
    }
}

/// The scenarios, in the order in which they run. Scenarios that share a lab are adjacent.
pub(super) const SCENARIOS: &[Scenario] = &[
    scenario("node_failure_leader", "the power of the node that leads etcd is cut", node_failure::leader)
        .on(Hosts::Both),
    scenario("node_failure_follower", "the power of the node that follows is cut", node_failure::follower)
        .on(Hosts::Both),
    scenario(
        "graceful_stop_and_return_leader",
        "the leader's node goes to standby and comes back",
        graceful_stop_and_return::leader,
    ),
    scenario(
        "graceful_stop_and_return_follower",
        "the follower's node goes to standby and comes back",
        graceful_stop_and_return::follower,
    ),
    scenario("both_stopped_and_started", "the etcd resource is disabled and enabled", both_stopped_and_started::run),
    scenario(
        "both_stopped_one_returns",
        "both are stopped together and one comes back first: it waits, and nothing is forced",
        both_stopped_one_returns::run,
    ),
    scenario(
        "both_powered_off_and_on",
        "both nodes lose power under writes and get it back",
        both_powered_off_and_on::run,
    )
    .errors(&[BOTH_RETURN])
    .on(Hosts::Both),
    scenario(
        "cold_boot",
        "both nodes were off and one boots long before the other: it stays inert until then",
        cold_boot::run,
    ),
    scenario(
        "clients_over_a_cut",
        "the leader's power is cut with auth on: a lease, a lock and a watch live through it, the dead node's are freed",
        clients_over_a_cut::run,
    ),
    scenario("disk_lost", "both nodes lose power, and one of them its etcd disk as well", disk_lost::with_the_power),
    scenario(
        "disk_lost_while_running",
        "an etcd dies and its data is gone, while its node lives",
        disk_lost::while_it_runs,
    ),
    scenario(
        "two_failures",
        "one node is lost, then the survivor; it alone gets power back, and an operator grants it quorum",
        two_failures::run,
    ),
    scenario("etcd_killed", "one etcd process gets SIGKILL", etcd_killed::run),
    scenario("both_etcds_killed", "both etcd processes get SIGKILL within two seconds", both_etcds_killed::run),
    scenario("etcd_hung", "one etcd process gets SIGSTOP: it is found out and restarted", etcd_hung::run),
    scenario("kubelet_failure", "a service that is ordered before etcd fails", kubelet_failure::run),
    scenario("check_levels", "each OCF_CHECK_LEVEL finds what it looks for, and no more", check_levels::run).nightly(),
    scenario(
        "peer_black_holed",
        "etcd's packets between the hosts are dropped: monitor and start stay within their times",
        peer_black_holed::run,
    )
    .nightly(),
    scenario(
        "restart_wish_stays",
        "restart_no_leave cannot be taken back: the start does not succeed before it is",
        restart_wish_stays::run,
    )
    .nightly(),
    scenario(
        "podman_broken",
        "podman cannot start etcd on one node: it says why, mends what it can, or lets its peer go on",
        podman_broken::run,
    )
    .nightly(),
    scenario("podman_hangs", "podman hangs: a stop ends etcd all the same, and in time", podman_hangs::run).nightly(),
    scenario(
        "slow_machine",
        "both machines are slow, podman slower than an agent waits at first, and one loses power: it takes longer",
        slow_machine::run,
    )
    .leaves_a_mess()
    .nightly(),
    scenario("cib_hangs", "Pacemaker's CIB hangs: a stop ends etcd all the same, and in time", cib_hangs::run)
        .nightly(),
    scenario("partition", "the hosts lose each other: one fences the other, never do both take writes", partition::run),
    scenario(
        "partition_without_fencing",
        "the hosts lose each other and both BMCs: nobody forces anything, and it heals",
        partition_without_fencing::run,
    ),
    scenario(
        "all_returns_at_once",
        "the hosts lose each other and both BMCs, and all of it returns at once: one is fenced at most, not both",
        all_returns_at_once::run,
    )
    // The result is a race: the agent does not control which delay ends in the very second of the return.
    .nightly(),
    scenario(
        "bmc_refuses",
        "a node is lost and its BMC refuses the password: the other waits until it is confirmed off",
        bmc_refuses::run,
    ),
    scenario(
        "new_voters_peer_dies",
        "a learner's only voter loses power during the initial transfer",
        new_voters_peer_dies::run,
    ),
    scenario(
        "survivor_etcd_killed_too",
        "the leader loses power and the survivor's etcd gets SIGKILL: nothing acknowledged is lost",
        survivor_etcd_killed_too::nothing_lost,
    ),
    scenario(
        "left_behind",
        "a node returns after its peer ran standalone and died: it refuses, until an operator confirms",
        left_behind::run,
    )
    .nightly(),
    scenario(
        "shutdown_then_partition",
        "both are asked to shut down, and lose each other before their etcds stop: neither runs standalone",
        shutdown_then_partition::both,
    )
    .nightly(),
    scenario(
        "one_shuts_down_then_partition",
        "one is asked to shut down, and they lose each other before its etcd stops: the other does not run standalone",
        shutdown_then_partition::one,
    )
    .nightly(),
    scenario(
        "cable_pulled_in_maintenance",
        "Pacemaker ends on a node in maintenance and its cable is pulled: the other one does not go on beside its etcd",
        pacemaker_ends_in_maintenance::cable_is_pulled,
    )
    .nightly(),
    scenario(
        "pacemaker_ends_in_maintenance",
        "Pacemaker ends on a node in maintenance, the other goes on and dies: back in the same boot, it does not serve",
        pacemaker_ends_in_maintenance::comes_back_alone,
    ),
    scenario(
        "refused_for_long",
        "a node refuses so long that Pacemaker's count is nearly full: it starts when its peer is back",
        refused_for_long::run,
    )
    .nightly(),
    scenario(
        "agent_killed_while_etcd_starts",
        "an agent is killed while podman starts etcd: the stop that follows ends that, too",
        agent_killed::while_etcd_starts,
    )
    .nightly(),
    scenario(
        "agent_killed_in_a_recovery",
        "a survivor's agent is killed while podman starts etcd: the stop that follows ends that, too",
        agent_killed::while_it_goes_on_alone,
    )
    .nightly(),
    scenario(
        "force_attribute_left_behind",
        "force_new_cluster is left on a voter of two: it is taken back",
        force_attribute_left_behind::taken_back,
    )
    .nightly(),
    scenario(
        "force_attribute_is_not_enough",
        "force_new_cluster on a node that was left behind: it refuses all the same",
        force_attribute_left_behind::not_enough,
    )
    .nightly(),
    scenario(
        "database_damaged",
        "both nodes lose power and one's database is damaged where only etcd sees it",
        database_damaged::run,
    )
    .nightly(),
    scenario(
        "certificates_rotated",
        "somebody else restarts etcd's container: on a node, on both, on the only voter, while a learner is promoted",
        certificates_rotated::run,
    )
    .nightly(),
    scenario(
        "auth_enabled",
        "etcd's authentication is switched on: both members run on although the agents may not ask",
        auth_enabled::run,
    )
    .nightly(),
    scenario(
        "promote_slow_etcd",
        "a voter's etcd is slow while Pacemaker promotes it, and its peer loses power: it takes over",
        promote_slow_etcd::run,
    )
    .needs(Needs::Promotable)
    .nightly(),
    scenario("contracts", "pcs, crm_resource and ocf-tester find in both agents what they look for", contracts::run),
    scenario("disk_full", "the file system of one data dir runs full, and is given room again", disk_full::run)
        .leaves_a_mess(),
    scenario(
        "loss_is_seen",
        "the same as survivor_etcd_killed_too with the commit-index step switched off: the loss is reported",
        survivor_etcd_killed_too::loss_is_seen,
    )
    .nightly()
    .leaves_a_mess(),
    scenario(
        "fencing_by_hand",
        "pcs, stonith_admin and the shell: levels, a delay, an unfence, a refusal",
        fencing_by_hand::run,
    )
    .nightly()
    .needs(Needs::NoEtcd)
    .leaves_a_mess(),
    scenario("fencing_update", "a node's power is cut while its BMC's password changes", fencing_update::run)
        .nightly()
        .leaves_a_mess(),
    scenario(
        "fencing_check_and_test",
        "'tandem fencing check' and 'tandem fencing test', whose times are compared with the lab's own",
        fencing_check_and_test::run,
    )
    .leaves_a_mess(),
    scenario(
        "takeover_there_and_back",
        "the shell agent's cluster is taken over in maintenance mode and handed back, and etcd never stops",
        takeover::there_and_back,
    )
    .needs(Needs::ShellAgent)
    .leaves_a_mess(),
    scenario(
        "takeover_and_kept",
        "the shell agent's cluster is taken over in maintenance mode, and survives a power cut",
        takeover::and_kept,
    )
    .needs(Needs::ShellAgent)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "rolling_upgrade",
        "one node after the other gets a newer version under writes, and each loses power beside the older one",
        rolling_upgrade::run,
    )
    .nightly(),
    scenario(
        "upgrade_by_may_stop",
        "each node is upgraded once it may be stopped, and no writer waits",
        rolling_upgrade::as_it_may_be_stopped,
    )
    .nightly(),
    scenario(
        "mixed_pair",
        "the shell agent on one host and Tandem on the other: either loses power, then both",
        mixed_pair::run,
    )
    .needs(Needs::ShellAgent)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "ipv6_addresses",
        "the members reach each other over IPv6; the leader's power is cut",
        ipv6_addresses::run,
    )
    .nightly()
    .needs(Needs::NoEtcd)
    .leaves_a_mess(),
    scenario(
        "openshift_created",
        "OpenShift's static pods hand etcd over to resources made with its operator's own commands",
        openshift_created::run,
    )
    .needs(Needs::NoEtcd)
    .leaves_a_mess(),
    scenario(
        "openshift_manifest_change",
        "the pod manifest changes: the container stays, or is replaced and kept",
        openshift_manifest_change::run,
    )
    .nightly()
    .needs(Needs::NoEtcd)
    .leaves_a_mess(),
    scenario(
        "openshift_node_replaced",
        "a node is replaced as OpenShift's operator does it",
        openshift_node_replaced::run,
    )
    .nightly()
    .needs(Needs::NoEtcd)
    .leaves_a_mess(),
    scenario("openshift_restored", "a snapshot is restored as OpenShift's script does it", openshift_restored::run)
        .nightly()
        .needs(Needs::NoEtcd)
        .leaves_a_mess(),
    scenario(
        "openshift_two_to_one_to_two",
        "a node is taken out of the cluster and of the map, the other goes on as a single one, and it comes back",
        openshift_two_to_one_to_two::run,
    )
    .nightly()
    .needs(Needs::NoEtcd)
    .leaves_a_mess(),
    scenario("names_alike", "the nodes are called node1 and node10", names_alike::run)
        .nightly()
        .needs(Needs::Nothing)
        .leaves_a_mess(),
    scenario("wrong_input", "wrong parameters, files, image and password: one clear sentence each", wrong_input::run)
        .nightly()
        .needs(Needs::NoEtcd)
        .leaves_a_mess(),
    scenario(
        "patroni",
        "PostgreSQL under Patroni: the replica's host dies, the primary's dies: no row is lost, and all go on in time",
        patroni::run,
    )
    .leaves_a_mess()
    .nightly(),
    // After `make package`: `make lab-installed` runs it by name.
    scenario(
        "readme",
        "the commands in README.md and by-hand.md, as printed, from the packages to two voters",
        readme::run,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
];

/// Scenarios that make labs of their own, in the daily run and on both kinds of hosts. They are last, because they take down a shared
/// lab.
const LAST: &[Scenario] = &[scenario(
    "teardown_leaves_nothing",
    "after a lab with dead parts is taken away, nothing of it is on the machine",
    teardown_leaves_nothing::run,
)
.on(Hosts::Both)
.needs(Needs::Nothing)
.leaves_a_mess()];
