//! Problems of each fence device in Pacemaker: whether it is usable, for which targets, and on which nodes.

use super::{About, Answer, Case, Severity};
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::shell::command;
use crate::operate::health::problems::fencing;

pub(super) fn check(case: &mut Case<'_>) {
    let (cluster, configuration) = (case.cluster, case.configuration);
    if case.devices.len() == configuration.fence_devices.len() {
        case.take(|found| fencing::find_missing(cluster, configuration, found));
    }
    for device in case.devices.clone() {
        bound(case, device);
        banned(case, device);
        let answered = answered(case, device);
        case.take(|found| {
            fencing::find_fault(cluster, device, answered, found);
            fencing::find_credentials(cluster, configuration, device, found);
        });
    }
}

/// Returns the earliest time at which the BMC of `device` has just answered this node, among the device's targets. Returns `None` if a
/// query about a target failed, or if this node is a target, because a node never fences itself.
fn answered(case: &Case<'_>, device: &FenceDevice) -> Option<u64> {
    let answers = || case.asked.answers.iter().filter(|answer| answer.device == device.resource.id);
    let counts = |answer: &Answer| answer.note.failure.is_none() && answer.target != case.cluster.here;
    answers().map(|answer| answer.note.at).min().filter(|_| answers().all(counts))
}

fn bound(case: &mut Case<'_>, device: &FenceDevice) {
    let id = &device.resource.id;
    if device.targets.is_empty() {
        let text =
            format!("{id} does not say which node it fences: Pacemaker takes the names of the BMC's systems for it");
        let command = Some(command!("pcs stonith update {} pcmk_host_list=NODE", id));
        case.add("not-bound", Severity::Warning, About::Device(id), text, command);
    }
    for target in device.targets.iter().filter(|target| !case.configuration.nodes.contains(target)) {
        let text = format!("{id} is for {target}, and no node is called so");
        let command = Some(command!("pcs stonith update {} pcmk_host_list=NODE", id));
        case.add("no-such-node", Severity::Warning, About::Device(id), text, command);
    }
}

/// Reports a device that a constraint keeps from the node that has to fence with it.
fn banned(case: &mut Case<'_>, device: &FenceDevice) {
    let id = &device.resource.id;
    for target in device.targets.iter().filter(|target| case.configuration.nodes.contains(target)) {
        for other in case.others(target).filter(|other| device.banned_from.contains(other)) {
            let text = format!("{id} is kept from {other}, the one node that has to fence {target} with it");
            let command = Some(command!("pcs constraint location show resources {} --full", id));
            case.add("device-banned", Severity::Critical, About::Both(id, target), text, command);
        }
    }
}
