//! Scenarios that need hosts with a kernel, an init and a disk of their own.

pub mod cuts;
pub mod does_not_stop;
pub mod joining;
pub mod kubelet;
pub mod machine;
mod neighbours;
pub mod packages;
pub mod paused;
pub mod renamed;
pub mod setup;
pub mod synced;
pub mod units;
pub mod watchdogs;

use std::time::{Duration, Instant};

use super::needs::{Hosts, Needs};
use super::steps;
use super::table::{self, Scenario};
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::journals::{BOTH_RETURN, NO_FENCING_YET};
use crate::sh::{self, Result};

/// The scenarios that run only on virtual machines, in the order in which they run.
pub(super) const SCENARIOS: &[Scenario] = &[
    scenario(
        "vm_cut_in_the_recovery",
        "the leader is cut, and the survivor in the middle of its recovery",
        cuts::in_the_recovery,
    )
    .errors(&[BOTH_RETURN]),
    scenario(
        "vm_cut_while_it_joins",
        "a node that returns is cut as it moves its data aside, launches etcd, takes the snapshot",
        joining::cut_again,
    ),
    scenario(
        "vm_what_is_written_is_synced",
        "the survivor is cut as it says that its note and etcd's log are written: both are there",
        synced::nothing_lost,
    )
    .errors(&[BOTH_RETURN]),
    scenario("vm_kernel_panic", "the leader's kernel panics and stands still", machine::kernel_panic),
    scenario("vm_watchdog", "the leader's watchdog resets it", machine::watchdog),
    scenario("vm_reboots", "systemctl reboot: one node, the other one, both at once", machine::reboots)
        .errors(&[BOTH_RETURN]),
    scenario("vm_shutdowns", "systemctl poweroff: one node, then both at once", machine::shutdowns)
        .errors(&[BOTH_RETURN]),
    scenario("vm_paused", "the leader's machine stands still for a moment", paused::for_a_moment),
    scenario("vm_paused_and_fenced", "the leader's machine stands still until it is fenced", paused::fenced),
    scenario(
        "vm_paused_without_fencing",
        "the leader's machine stands still, cannot be fenced, and goes on",
        paused::not_fenced,
    )
    // Its BMC is unreachable. The machine was frozen, so its kernel reports lockups and RCU stalls, and systemd ends a
    // journald that was silent for too long. A monitor that was running exceeds its time-out. The fence device that was
    // moved off it, which is possible without fencing, still ran there when it resumed.
    .errors(&[&[
        "no route to it",
        "timed out without a connection",
        "soft lockup",
        "kernel: rcu: ",
        "Result of monitor operation for etcd on node1: Timed Out",
        "Result of monitor operation for etcd on node2: Timed Out",
        "Operation 'reboot'",
        "the BMC was out of reach and is back",
        "systemd-journald.service: ",
        "stonith resource fence-node1 might be active on 2 nodes",
        "stonith resource fence-node2 might be active on 2 nodes",
    ]]),
    scenario(
        "vm_packages",
        "the package is upgraded under a cluster that serves, and refuses to be removed",
        packages::under_a_cluster,
    )
    // A machine this slow may update its status so seldom that it counts as stale. On a young lab, the collector's
    // first run also reports decisions of the minutes before.
    .errors(&[&["TandemTest", "PacemakerStatusStale", "EtcdAlone"]])
    .leaves_a_mess(),
    scenario(
        "vm_watchdogs",
        "'watchdog-mux' and 'fencing-agent' by their units, with i6300esb and with softdog: what is to be reset is, in time, and nothing else",
        watchdogs::run,
    )
    // The last lines before a reset must reach the disk, so they have the priority at which the journal syncs at once.
    .errors(&[&["feeding ended: ", "quorum lost: ", "closed without V"]])
    .needs(Needs::Blank)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "vm_units",
        "tandem-collect.service, tandem-certs.service and its timer do their work under systemd, and are denied nothing",
        units::run,
    )
    .errors(&[TOLD, NO_FENCING_YET])
    .needs(Needs::NoEtcd)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "vm_kubelet_killed",
        "kubelet, a unit with RHCOS' own lines, is killed on the leader's node: it runs again, and writers hardly notice",
        kubelet::killed,
    )
    .needs(Needs::Kubelet)
    .nightly(),
    scenario(
        "vm_kubelet_does_not_start",
        "kubelet does not start on the leader's node: etcd stays off there, the other one serves, and status says so",
        kubelet::does_not_start,
    )
    .errors(&[NO_START])
    .needs(Needs::Kubelet)
    .nightly(),
    scenario(
        "vm_kubelet_does_not_stop",
        "kubelet does not stop on the leader's node, which goes to standby: the node is fenced, and writers hardly notice",
        kubelet::does_not_stop,
    )
    .errors(&[BOTH_RETURN, &["Result of stop operation for kubelet on "]])
    .needs(Needs::Kubelet)
    .nightly(),
    scenario(
        "vm_etcd_does_not_stop",
        "the disk of the leader's etcd stands still, so that not even SIGKILL ends it: the node is fenced, nothing is lost",
        does_not_stop::run,
    )
    .errors(&[BOTH_RETURN, STANDS_STILL])
    .needs(Needs::EtcdDisk)
    .nightly(),
    scenario(
        "vm_setup",
        "'tandem setup' on machines with a systemd of their own, as Debian's packages leave them; then the leader's power is cut",
        setup::to_two_voters,
    )
    .errors(&[TOLD, NO_FENCING_YET, BOTH_RETURN])
    .needs(Needs::BlankDebian)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "vm_fencing_test_both",
        "'tandem fencing test --both --ssh' with a systemd of its own: the unit outlives the login, and both records are there",
        setup::both_are_fenced,
    )
    .errors(&[TOLD, NO_FENCING_YET, BOTH_RETURN])
    .needs(Needs::BlankDebian)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "vm_setup_cut",
        "'tandem setup' is cut off by either node's power after each line that it says, and typed again",
        setup::cut_off,
    )
    .errors(&[TOLD, NO_FENCING_YET, BOTH_RETURN, CUT_OFF])
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "vm_unsynced_is_seen",
        "without its syncs, what the agent has written is lost with the power, and that is seen",
        synced::loss_is_seen,
    )
    .errors(&[BOTH_RETURN])
    .nightly()
    .leaves_a_mess(),
    scenario(
        "vm_unsynced_rename_is_seen",
        "without the sync behind it, a data dir that was moved aside is back after a power cut, and that is seen",
        renamed::loss_is_seen,
    )
    .errors(&[BOTH_RETURN])
    .nightly()
    .leaves_a_mess(),
];

/// The names of events about nodes. In the journal these events have the priority of an error.
const TOLD: &[&str] = &["PacemakerNodeOffline", "PacemakerNodeUnhealthy", "PacemakerStatusStale", "EtcdAlone"];
/// The errors that systemd and Pacemaker log about a unit that does not start.
const NO_START: &[&str] = &["Failed to start kubelet.service", "Result of start operation for kubelet on "];
/// The errors of a node with an etcd that SIGKILL does not end: Pacemaker logs the failed actions, and the kernel a task that
/// waits for two minutes.
const STANDS_STILL: &[&str] = &[
    "Result of monitor operation for etcd on ",
    "Result of stop operation for etcd on ",
    "blocked for more than",
    "Not tainted ",
    "hung_task_timeout_secs",
];
/// The errors that programs log when `tandem setup` is interrupted: only one node is left, or neither node has etcd
/// data.
const CUT_OFF: &[&str] = &[
    // The first start of all needs both nodes: the remaining one has no data, and the other one is not fenced yet.
    "this node holds no data: start",
    "is not confirmed stopped (Pacemaker has not asked its agent yet)",
    // The collector's event for the same refusal.
    "EtcdRefused",
    "PacemakerResourceUnhealthy",
    // The other node is lost before it has a fence device.
    "(No fence device)",
    // It was cut in the boot in which pcsd wrote its certificate and key, and both are empty. `tandem setup` removes
    // them.
    "Failed to start pcsd.service",
    // A machine this slow boots and starts everything, and the collector exceeds its time-out of a minute.
    "Failed to start tandem-collect.service",
];

const fn scenario(name: &'static str, about: &'static str, run: fn(&Lab, Wish) -> Result<()>) -> Scenario {
    table::scenario(name, about, run).on(Hosts::Vms)
}

/// Waits for two voters. The time-out is the one for any recovery, [`etcd::TWO_VOTERS_WITHIN`].
fn two_voters(lab: &Lab) -> Result<()> {
    etcd::wait_two_voters(lab, etcd::TWO_VOTERS_WITHIN).map(drop)
}

/// Waits for two voters, which must be there within [`etcd::TWO_VOTERS_WITHIN`] after `blow`, the time of the
/// failure.
fn two_voters_since(lab: &Lab, blow: Instant) -> Result<()> {
    two_voters(lab)?;
    etcd::must_be_in_time(blow.elapsed())
}

/// Returns the node of the etcd leader, and the other node.
fn roles(lab: &Lab) -> Result<(Node, Node)> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    Ok((leader, leader.other()))
}

/// Makes the leader's machine fail by `strike`, so that only fencing brings it back. Checks that the other node runs
/// standalone, and the common ending (`super::ends_well`).
fn struck_until_fenced(lab: &Lab, strike: impl FnOnce(Node) -> Result<()>) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let (leader, _) = roles(lab)?;
    crate::cluster::redundant::wait(lab)?;
    let before = steps::power_cuts(lab);
    let struck = Instant::now();
    strike(leader)?;
    let fenced = || (steps::power_cuts(lab) > before).then_some(());
    sh::wait_for("the node to be fenced", Duration::from_secs(120), Duration::from_millis(300), fenced)?;
    steps::wait_write(&writers, Duration::from_secs(120))?;
    two_voters_since(lab, struck)?;
    super::ends_well(lab, &mut writers)
}
