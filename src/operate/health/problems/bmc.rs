//! Problems of the BMCs, by their answers to a fence device's monitor or to `tandem fencing check`.

use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::utc;
use crate::operate::cluster::Cluster;
use crate::operate::health::bmc::{self, Stranger};
use crate::operate::health::{Problem, Severity};
use crate::records::bmc_note::BmcNote;

/// Age in seconds up to which a node's result of querying a BMC shows whether the node reaches the BMC now. By default Pacemaker monitors
/// a device each minute.
pub(in crate::operate::health) const RECENT: u64 = 600;

/// Returns the problem that the node `from` found when it last asked the BMC of `device`, which fences the node `target`. `note` is the
/// answer. Returns the problem without its command, or `None` if there is none.
pub(in crate::operate::health) fn fault(
    cluster: &Cluster,
    device: &FenceDevice,
    target: Option<&str>,
    from: &str,
    note: &BmcNote,
) -> Option<Problem> {
    let problem = match (&note.failure, target) {
        (Some(why), _) => failed(cluster, device, target, from, note, why),
        (None, Some(target)) => misplaced(cluster, device, target, note)?,
        (None, None) => return None,
    };
    Some(problem.of_device(&device.resource.id))
}

fn failed(
    cluster: &Cluster,
    device: &FenceDevice,
    target: Option<&str>,
    from: &str,
    note: &BmcNote,
    why: &str,
) -> Problem {
    let (id, address, at) = (&device.resource.id, &note.address, utc(note.at));
    let login = bmc::last_success(cluster, device).map(|at| format!("; {}", last_login(at))).unwrap_or_default();
    let text = format!(
        "the fence device {id} did not get what it needs from its BMC at {address}, asked from {from} at {at}: {why}{login}"
    );
    // A node never fences itself. For its own BMC, the other nodes' results count.
    let is_own = target == Some(from) && is_reached_by_others(cluster, device, from);
    let severity = if is_own { Severity::Warning } else { Severity::Critical };
    Problem::new("bmc-check-failed", severity, target, text)
}

/// Returns whether a node other than `node` has recently reached the BMC of `device`.
fn is_reached_by_others(cluster: &Cluster, device: &FenceDevice, node: &str) -> bool {
    bmc::notes(cluster, device)
        .any(|(other, note)| other != node && note.failure.is_none() && note.at.saturating_add(RECENT) > cluster.at)
}

pub(super) fn last_login(at: u64) -> String {
    format!("its login last worked at {}", utc(at))
}

/// Returns the problem that a BMC is not the one of the node `target`, or contradicts itself about that node's power.
fn misplaced(cluster: &Cluster, device: &FenceDevice, target: &str, note: &BmcNote) -> Option<Problem> {
    let id = &device.resource.id;
    let (problem, severity, text) = match (bmc::stranger(cluster, target, note), &note.chassis_on) {
        (Some(Stranger::OtherMachine { theirs, ours }), _) => (
            "bmc-other-machine",
            Severity::Critical,
            format!(
                "the BMC of {id} belongs to the machine {theirs}, and {target} is {ours}: it would switch off a stranger"
            ),
        ),
        (Some(Stranger::SaysOff), _) => (
            "bmc-says-off",
            Severity::Critical,
            format!(
                "the BMC of {id} says that {target} is off, and {target} runs: it would switch off a stranger, or nothing"
            ),
        ),
        // Off is then no proof that the node is off.
        (None, Some(chassis)) => (
            "bmc-contradiction",
            Severity::Warning,
            format!(
                "the BMC of {id} says that {target} is off, but its chassis {chassis} says On: that is no proof that {target} is off"
            ),
        ),
        (None, None) => return None,
    };
    Some(Problem::new(problem, severity, Some(target), text))
}
