//! Problems that keep a lost node from being fenced.

use std::fmt::Write;

use super::bmc::{RECENT, last_login};
use super::{Found, attempts, resource};
use crate::adapters::pacemaker::seen::{Configuration, Failure, FenceDevice, Instance};
use crate::base::shell::command;
use crate::operate::cluster::Cluster;
use crate::operate::health::passwords::{self, Copies};
use crate::operate::health::view::{self, ResourceSeen};
use crate::operate::health::{Severity, bmc};

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    let Some(seen) = ResourceSeen::of(cluster) else { return };
    find_missing(cluster, seen.configuration, found);
    for device in &seen.configuration.fence_devices {
        if !find_fault(cluster, device, None, found) {
            last_answer(cluster, device, found);
        }
        find_credentials(cluster, seen.configuration, device, found);
    }
    attempts::of_others(cluster, seen, found);
}

/// Reports each node that no device fences. A device without targets may fence every node.
pub(in crate::operate::health) fn find_missing(cluster: &Cluster, configuration: &Configuration, found: &mut Found) {
    let devices = &configuration.fence_devices;
    for name in view::names(cluster) {
        if !devices.iter().any(|device| device.targets.is_empty() || device.targets.contains(&name)) {
            let text = format!("no fence device fences {name}: once it is lost, no survivor may continue");
            found.critical("fence-device-missing", Some(&name), text).typed(command!(
                "pcs stonith create fence-{} fence_redfish_rs ip=ADDRESS username=NAME password_file=FILE \
                 pcmk_host_list={}",
                name,
                name
            ));
        }
    }
}

/// Reports a fault in the last answer of a device's BMC, for a device that Pacemaker runs without a fault.
fn last_answer(cluster: &Cluster, device: &FenceDevice, found: &mut Found) {
    let Some((from, note)) = bmc::checked(cluster, device) else { return };
    if let Some(problem) = super::bmc::fault(cluster, device, only_target(device), from, note) {
        found.add(problem).typed(attempts::fencing_check(&device.resource.id));
    }
}

fn only_target(device: &FenceDevice) -> Option<&str> {
    match device.targets.as_slice() {
        [only] => Some(only),
        _ => None,
    }
}

/// Pacemaker's name of a pending monitor of a running device.
const MONITORING: &str = "Monitoring";

/// A fault of a fence device, as Pacemaker reports it.
enum Fault {
    Disabled,
    Blocked,
    Failed,
    Stopped,
    Unmanaged,
}

impl Fault {
    fn command(&self, id: &str) -> String {
        match self {
            Self::Disabled => command!("pcs stonith enable {}", id),
            Self::Blocked | Self::Failed | Self::Stopped => command!("pcs stonith cleanup {}", id),
            Self::Unmanaged => command!("pcs resource manage {}", id),
        }
    }
}

fn fault(cluster: &Cluster, device: &FenceDevice) -> Option<Fault> {
    if view::is_disabled(&device.resource) {
        return Some(Fault::Disabled);
    }
    let instance = view::instance_of(cluster.pacemaker.known()?, device);
    let runs = |instance: &Instance| instance.active && !instance.nodes.is_empty();
    match instance {
        Some(instance) if instance.blocked => Some(Fault::Blocked),
        Some(instance) if instance.failed => Some(Fault::Failed),
        // Pacemaker retries a failed device again and again, and each try may take as long as its BMC hangs.
        Some(instance) if instance.pending.as_deref().is_some_and(|word| word != MONITORING) => {
            latest(cluster, device).map(|_| Fault::Failed)
        }
        Some(instance) if instance.pending.is_some() => None,
        Some(instance) if runs(instance) => {
            (!instance.managed && !view::is_in_maintenance(cluster, instance)).then_some(Fault::Unmanaged)
        }
        _ if !view::may_start(cluster) || !may_run(cluster, device) => None,
        _ if latest(cluster, device).is_some() => Some(Fault::Failed),
        _ => Some(Fault::Stopped),
    }
}

/// Returns whether a node that may run the device is online. If only the device's target is online, no node is left to fence it.
fn may_run(cluster: &Cluster, device: &FenceDevice) -> bool {
    let is_ready = |name: &&String| {
        view::node(cluster, name).is_some_and(|node| node.online && !node.standby && !node.maintenance && !node.pending)
    };
    view::names(cluster).iter().filter(is_ready).any(|name| !device.banned_from.contains(name))
}

fn latest<'a>(cluster: &'a Cluster, device: &FenceDevice) -> Option<&'a Failure> {
    resource::latest(ResourceSeen::of(cluster)?).into_iter().find(|failure| failure.resource == device.resource.id)
}

/// Reports a password change that has not reached both nodes, the BMC, or OpenShift's Secret.
pub(in crate::operate::health) fn find_credentials(
    cluster: &Cluster,
    configuration: &Configuration,
    device: &FenceDevice,
    found: &mut Found,
) {
    password_file(cluster, configuration, device, found);
    secret(cluster, device, found);
}

fn password_file(cluster: &Cluster, configuration: &Configuration, device: &FenceDevice, found: &mut Found) {
    let id = device.resource.id.as_str();
    let target = device.targets.first().map(String::as_str);
    match passwords::copies(cluster, &configuration.nodes, device) {
        Some(Copies::Differ { node, with }) => {
            let text = passwords::differ(device, &node, &with);
            let command = passwords::update_command(device, Some(&node));
            found.warning("password-copies", target, text).of_device(id).typed(command);
        }
        Some(Copies::Staged) => {
            let text = format!(
                "{id}: a second password is in its file, and takes the first one's place once its BMC accepts it"
            );
            let command = passwords::update_command(device, None);
            found.notice("password-staged", target, text).of_device(id).typed(command);
        }
        None => {}
    }
}

/// Warns if OpenShift's Secret differs from a device, because OpenShift's operator recreates the device from the Secret.
fn secret(cluster: &Cluster, device: &FenceDevice, found: &mut Found) {
    let (id, Some(target)) = (device.resource.id.as_str(), device.targets.first()) else { return };
    let Some(differs) = passwords::secret_differs(cluster, id) else { return };
    let text = format!(
        "{id}: OpenShift's Secret of {target} has another {differs}, and the etcd operator makes the device anew from it"
    );
    found
        .warning("fencing-secret-differs", Some(target), text)
        .of_device(id)
        .typed(command!("tandem fencing update {} --from-secret", target));
}

/// Returns the nodes that a device fences, in words: `node1 and node2`, or `any node` if it names none.
fn target_names(device: &FenceDevice) -> String {
    if device.targets.is_empty() { "any node".to_owned() } else { device.targets.join(" and ") }
}

/// Returns the consequence of a fault for the nodes that `device` fences. Only a disabled device is certainly out of use, because
/// Pacemaker's fencer may still use a device that is stopped or has failed.
fn consequence(device: &FenceDevice, fault: &Fault, has_another: bool) -> String {
    let lost = if device.targets.is_empty() { "node".to_owned() } else { device.targets.join(" or ") };
    match fault {
        _ if has_another => format!("and only another device fences {}", target_names(device)),
        Fault::Disabled => format!("so {} could not be fenced", target_names(device)),
        _ => format!("so a lost {lost} may not be fenced"),
    }
}

/// Reports the fault of a device, as Pacemaker shows it. Returns whether there is one. `answered` is the time at which the device's BMC has
/// just answered this node, in seconds since 1970; `None` if it was not asked now, or did not answer.
pub(in crate::operate::health) fn find_fault(
    cluster: &Cluster,
    device: &FenceDevice,
    answered: Option<u64>,
    found: &mut Found,
) -> bool {
    let id = device.resource.id.as_str();
    let Some(fault) = fault(cluster, device) else { return false };
    let has_another = has_another(cluster, device);
    let so = consequence(device, &fault, has_another);
    let (problem, text) = match fault {
        Fault::Disabled => ("fence-device-disabled", format!("the fence device {id} is disabled, {so}")),
        Fault::Blocked => ("fence-device-blocked", format!("the fence device {id} is blocked, {so}")),
        Fault::Failed => {
            ("fence-device-failed", format!("the fence device {id} has failed{}, {so}", device_story(cluster, device)))
        }
        Fault::Stopped => {
            ("fence-device-stopped", format!("the fence device {id} is stopped{}, {so}", device_story(cluster, device)))
        }
        Fault::Unmanaged => {
            ("fence-device-unmanaged", format!("the fence device {id} is unmanaged, so Pacemaker does not check it"))
        }
    };
    let severity = match fault {
        Fault::Unmanaged => Severity::Warning,
        _ if has_another => Severity::Warning,
        Fault::Disabled => Severity::Critical,
        _ if is_answered(cluster, device, answered) => Severity::Warning,
        _ => Severity::Critical,
    };
    let command = match (&fault, reason(cluster, device)) {
        (Fault::Failed, Some(why)) if bmc::is_refused_login(why) => passwords::update_command(device, None),
        (Fault::Failed, why) if bmc::is_ours(device) && (why.is_some() || !has_healed(cluster, device)) => {
            attempts::fencing_check(id)
        }
        _ => fault.command(id),
    };
    found.put(problem, severity, only_target(device), text).of_device(id).typed(command);
    true
}

/// Returns the reason why the device's last monitor failed; `None` after a later success. The reason comes from the fence agent, because
/// Pacemaker keeps only a word such as "error".
fn reason<'a>(cluster: &'a Cluster, device: &FenceDevice) -> Option<&'a str> {
    let failure = latest(cluster, device);
    match bmc::checked(cluster, device) {
        Some((_, note)) if failure.and_then(|failure| failure.at).is_none_or(|at| at <= note.at) => {
            note.failure.as_deref()
        }
        _ => failure.map(|failure| failure.reason.as_str()).filter(|why| !why.is_empty()),
    }
}

/// Returns whether a monitor of the device has succeeded after the device's last failure.
fn has_healed(cluster: &Cluster, device: &FenceDevice) -> bool {
    let at = latest(cluster, device).and_then(|failure| failure.at);
    bmc::checked(cluster, device).is_some_and(|(_, note)| note.failure.is_none() && at.is_none_or(|at| at <= note.at))
}

/// Returns whether a node that may have to fence with `device` has recently reached the device's BMC. It must have reached the BMC after
/// the device's last failure. If so, Pacemaker's fencer can reach the BMC although Pacemaker does not run the device.
fn is_answered(cluster: &Cluster, device: &FenceDevice, answered: Option<u64>) -> bool {
    let checked = bmc::checked(cluster, device).filter(|(from, _)| only_target(device) != Some(from));
    let succeeded = checked.filter(|(_, note)| note.failure.is_none()).map(|(_, note)| note.at);
    let failed = latest(cluster, device).and_then(|failure| failure.at);
    answered
        .or(succeeded)
        .is_some_and(|at| at.saturating_add(RECENT) >= cluster.at && failed.is_none_or(|failed| failed <= at))
}

/// Returns whether each node that `device` fences is also fenced by another, working device.
fn has_another(cluster: &Cluster, device: &FenceDevice) -> bool {
    let Some(seen) = ResourceSeen::of(cluster) else { return false };
    let works = |other: &&FenceDevice| {
        let instance = view::instance_of(seen.pacemaker, other);
        other.resource.id != device.resource.id
            && fault(cluster, other).is_none()
            && instance.is_some_and(view::is_well)
    };
    let others: Vec<&FenceDevice> = seen.configuration.fence_devices.iter().filter(works).collect();
    let fences = |name: &String| others.iter().any(|other| other.targets.contains(name));
    !device.targets.is_empty() && device.targets.iter().all(fences)
}

/// Returns the last failure that Pacemaker lists for a device, and its last login: ` (TIME: REASON; its login last worked TIME)`.
fn device_story(cluster: &Cluster, device: &FenceDevice) -> String {
    let told = |failure: &Failure| match reason(cluster, device) {
        Some(why) => resource::failure_details(&Failure { reason: why.to_owned(), ..failure.clone() }),
        None => resource::failure_details(failure),
    };
    let mut story = latest(cluster, device).map(told).unwrap_or_default().trim_start().to_owned();
    if let Some(at) = bmc::last_success(cluster, device) {
        let between = if story.is_empty() { "" } else { "; " };
        let _ = write!(story, "{between}{}", last_login(at));
    }
    if story.is_empty() { story } else { format!(" ({story})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Fact;
    use crate::operate::health::samples;
    use crate::records::bmc_note::BmcNote;

    /// Returns the ids of the problems while node1 runs an action of node2's device. The action is the one that Pacemaker calls `word`.
    /// With `has_failed`, the device failed on node2 before.
    fn under_way(word: &str, has_failed: bool) -> Vec<&'static str> {
        let mut cluster = samples::read("healthy");
        let Fact::Known(pacemaker) = &mut cluster.pacemaker else { panic!("nobody was asked") };
        let device = pacemaker.resources.iter_mut().find(|one| one.id == "fence-node2").unwrap();
        device.pending = Some(word.to_owned());
        device.nodes = vec!["node1".to_owned()];
        if has_failed {
            let failure =
                Failure { resource: "fence-node2".to_owned(), node: "node2".to_owned(), ..Failure::default() };
            pacemaker.failures.push(failure);
        }
        let mut found = Found::default();
        find(&cluster, &mut found);
        found.problems.into_iter().map(|problem| problem.id).collect()
    }

    /// Asserts that for a failure without a known reason the operator is sent to `tandem fencing check`. If a device's options are
    /// invalid, neither Pacemaker nor the fence agent keeps the reason.
    #[test]
    fn a_failure_without_a_reason_leads_to_the_check_that_has_it() {
        let typed = |failed_at: u64| {
            let mut cluster = samples::read("healthy");
            let mut note = BmcNote { address: "bmc2".to_owned(), at: 1_000, ..BmcNote::default() };
            let Fact::Known(configuration) = &mut cluster.configuration else { panic!("no CIB") };
            let device = configuration.fence_devices.iter_mut().find(|one| one.resource.id == "fence-node2").unwrap();
            device.resource.parameters.insert("ip".to_owned(), note.address.clone());
            note.system = device.resource.parameters.get("systems_uri").cloned().unwrap_or_default();
            cluster.own_notes.clear();
            for collected in cluster.collected.values_mut() {
                let Fact::Known(collected) = collected else { panic!("nothing collected") };
                collected.bmcs = vec![note.clone()];
            }
            let Fact::Known(pacemaker) = &mut cluster.pacemaker else { panic!("nobody was asked") };
            let device = pacemaker.resources.iter_mut().find(|one| one.id == "fence-node2").unwrap();
            device.pending = Some("Starting".to_owned());
            let (resource, at) = ("fence-node2".to_owned(), Some(failed_at));
            pacemaker.failures.push(Failure { resource, at, node: "node2".to_owned(), ..Failure::default() });
            let mut found = Found::default();
            find(&cluster, &mut found);
            found.problems.into_iter().find(|problem| problem.id == "fence-device-failed").unwrap().command
        };
        assert_eq!(typed(2_000).as_deref(), Some("tandem fencing check fence-node2"));
        assert_eq!(typed(500).as_deref(), Some("pcs stonith cleanup fence-node2"), "it has logged in since");
    }

    /// Asserts that a stopped device is critical unless its BMC has recently answered a node. An answer to the node that the device
    /// fences does not count.
    #[test]
    fn a_device_that_does_not_run_is_a_warning_while_its_bmc_answers() {
        let severity = |from: &str, age: u64, answered: Option<u64>| {
            let mut cluster = samples::read("healthy");
            let Fact::Known(pacemaker) = &mut cluster.pacemaker else { panic!("nobody was asked") };
            let instance = pacemaker.resources.iter_mut().find(|one| one.id == "fence-node2").unwrap();
            (instance.active, instance.nodes) = (false, Vec::new());
            let device =
                cluster.configuration.known().unwrap().fence_devices.iter().find(|one| one.targets == ["node2"]);
            let device = device.unwrap().clone();
            let (_, note) = bmc::checked(&cluster, &device).unwrap();
            let note = BmcNote { at: cluster.at - age, ..note.clone() };
            cluster.own_notes.clear();
            for (node, collected) in &mut cluster.collected {
                let Fact::Known(collected) = collected else { panic!("nothing collected") };
                collected.bmcs = if node == from { vec![note.clone()] } else { Vec::new() };
            }
            let mut found = Found::default();
            let answered = answered.map(|age| cluster.at - age);
            assert!(find_fault(&cluster, &device, answered, &mut found));
            found.problems[0].severity
        };
        assert_eq!(severity("node1", 60, None), Severity::Warning);
        assert_eq!(severity("node1", 3_600, None), Severity::Critical, "an hour ago is not now");
        assert_eq!(severity("node2", 60, None), Severity::Critical, "a node never fences itself");
        assert_eq!(severity("node2", 60, Some(0)), Severity::Warning);
    }

    #[test]
    fn a_device_that_failed_is_not_well_while_it_is_tried_again() {
        assert_eq!(under_way("Starting", true), ["fence-device-failed"]);
        assert_eq!(under_way("Stopping", true), ["fence-device-failed"]);
        assert_eq!(under_way("Starting", false), [""; 0], "it begins");
        assert_eq!(under_way("Monitoring", true), [""; 0], "it runs");
    }
}
