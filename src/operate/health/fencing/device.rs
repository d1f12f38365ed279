//! Findings about each fence device in Pacemaker: whether it is usable, for which targets, and on which nodes.

use super::{About, Case, Level};
use crate::adapters::pacemaker::seen::{FenceDevice, Pacemaker};
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::health::passwords::{self, Copies};
use crate::operate::health::view;

pub(super) fn check(case: &mut Case<'_>) {
    if case.devices.len() == case.configuration.fence_devices.len() {
        each_node_has_one(case);
    }
    for device in case.devices.clone() {
        bound(case, device);
        usable(case, device);
        same_passwords(case, device);
        if let Fact::Known(pacemaker) = &case.cluster.pacemaker {
            running(case, device, pacemaker);
        }
    }
}

/// Checks that a device fences each node. A device without targets counts for every node, because it reports its targets itself.
fn each_node_has_one(case: &mut Case<'_>) {
    for node in &case.configuration.nodes {
        let fits = |device: &&&FenceDevice| device.targets.is_empty() || device.targets.contains(node);
        if case.devices.iter().any(|device| fits(&device)) {
            continue;
        }
        let text = format!("no fence device is for {node}: it cannot be fenced");
        let command = command!(
            "pcs stonith create fence-{} fence_redfish_rs ip=ADDRESS username=NAME password_file=FILE \
             pcmk_host_list={}",
            node,
            node
        );
        case.add("no-device", Level::Failure, About::Node(node), text, Some(command));
    }
}

fn bound(case: &mut Case<'_>, device: &FenceDevice) {
    let id = &device.resource.id;
    if device.targets.is_empty() {
        let text =
            format!("{id} does not say which node it fences: Pacemaker takes the names of the BMC's systems for it");
        let command = Some(command!("pcs stonith update {} pcmk_host_list=NODE", id));
        case.add("not-bound", Level::Warning, About::Device(id), text, command);
    }
    for target in device.targets.iter().filter(|target| !case.configuration.nodes.contains(target)) {
        let text = format!("{id} is for {target}, and no node is called so");
        let command = Some(command!("pcs stonith update {} pcmk_host_list=NODE", id));
        case.add("no-such-node", Level::Warning, About::Device(id), text, command);
    }
}

/// Checks that both nodes have the same password file. Either node may have to fence, and uses its own copy.
fn same_passwords(case: &mut Case<'_>, device: &FenceDevice) {
    let Some(Copies::Differ { node, with }) = passwords::copies(case.cluster, &case.configuration.nodes, device) else {
        return;
    };
    let text = passwords::differ(device, &node, &with);
    let command = Some(passwords::update_command(device, Some(&node)));
    case.add("password-copies", Level::Warning, About::Device(&device.resource.id), text, command);
}

/// Reports a disabled or banned device, which Pacemaker's fencer cannot use.
fn usable(case: &mut Case<'_>, device: &FenceDevice) {
    let id = &device.resource.id;
    if view::is_disabled(&device.resource) {
        let text = format!("{id} is disabled: Pacemaker does not fence with it");
        for node in targets(device) {
            let command = Some(command!("pcs stonith enable {}", id));
            case.add("device-disabled", Level::Failure, About::Both(id, node), text.clone(), command);
        }
    }
    for target in device.targets.iter().filter(|target| case.configuration.nodes.contains(target)) {
        for other in case.others(target).filter(|other| device.banned_from.contains(other)) {
            let text = format!("{id} is kept from {other}, the one node that has to fence {target} with it");
            let command = Some(command!("pcs constraint location show resources {} --full", id));
            case.add("device-banned", Level::Failure, About::Both(id, target), text, command);
        }
    }
}

/// Returns each node that a device fences, or one empty text if the device names none.
fn targets(device: &FenceDevice) -> impl Iterator<Item = &str> {
    let unnamed = device.targets.is_empty().then_some("");
    device.targets.iter().map(String::as_str).chain(unnamed)
}

/// Reports the state of a device in Pacemaker. A stopped device can still fence if its BMC responds. But its failing would not be
/// noticed, because nothing monitors it.
fn running(case: &mut Case<'_>, device: &FenceDevice, pacemaker: &Pacemaker) {
    let id = &device.resource.id;
    if view::is_disabled(&device.resource) {
        return;
    }
    let mut instances = pacemaker.resources.iter().filter(|one| one.id == *id).peekable();
    let shown = instances.peek().is_some();
    let instances: Vec<_> = instances.collect();
    let cleanup = || Some(command!("pcs stonith cleanup {}", id));
    let runs = instances.iter().any(|instance| instance.active && instance.role == "Started" && !instance.failed);
    // A device that runs again has recovered from any remembered failure.
    let failure = pacemaker.failures.iter().find(|failure| !runs && failure.resource == *id);
    if let Some(failure) = failure {
        let why = if failure.reason.is_empty() { &failure.status } else { &failure.reason };
        let text = format!("{id}: its {} failed on {} ({why})", failure.task, failure.node);
        case.add("device-failed", Level::Warning, About::Device(id), text, cleanup());
    }
    if instances.iter().any(|instance| instance.blocked) {
        let text = format!("{id} is blocked: Pacemaker does nothing with it before somebody looks");
        case.add("device-blocked", Level::Warning, About::Device(id), text, cleanup());
    } else if instances.iter().any(|instance| !instance.managed) {
        let text = format!("{id} is not managed: Pacemaker does not start it again where it fails");
        let command = Some(command!("pcs resource manage {}", id));
        case.add("device-unmanaged", Level::Warning, About::Device(id), text, command);
    }
    if !runs && failure.is_none() {
        let text = if shown {
            format!("{id} runs nowhere, so nobody watches its BMC")
        } else {
            format!("{id} is in the CIB, and Pacemaker does not show it")
        };
        case.add("device-stopped", Level::Warning, About::Device(id), text, cleanup());
    }
}
