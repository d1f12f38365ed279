//! Problems that keep a lost node from being fenced.

use std::fmt::Write;

use super::{Found, attempts, resource};
use crate::adapters::pacemaker::seen::{Failure, FenceDevice, Instance};
use crate::base::shell::command;
use crate::base::utc;
use crate::operate::cluster::Cluster;
use crate::operate::health::Severity;
use crate::operate::health::bmc::{self, Stranger};
use crate::operate::health::passwords::{self, Copies};
use crate::operate::health::view::{self, ResourceSeen};
use crate::records::bmc_note::BmcNote;

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    let Some(seen) = ResourceSeen::of(cluster) else { return };
    let devices = &seen.configuration.fence_devices;
    for name in view::names(cluster) {
        // A device without targets may fence every node.
        if !devices.iter().any(|device| device.targets.is_empty() || device.targets.contains(&name)) {
            let text = format!("no fence device fences {name}: once it is lost, no survivor may go on");
            found.critical("fence-device-missing", Some(&name), text).typed(command!(
                "pcs stonith create fence-{} fence_redfish_rs ip=ADDRESS username=NAME password_file=FILE \
                 pcmk_host_list={}",
                name,
                name
            ));
        }
    }
    for device in devices {
        one(cluster, seen, device, found);
        password_file(cluster, seen, device, found);
        secret(cluster, device, found);
    }
    attempts::of_others(cluster, seen, found);
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

fn fault(cluster: &Cluster, seen: ResourceSeen<'_>, device: &FenceDevice) -> Option<Fault> {
    if view::is_disabled(&device.resource) {
        return Some(Fault::Disabled);
    }
    let instance = view::instance_of(seen.pacemaker, device);
    let runs = |instance: &Instance| instance.active && !instance.nodes.is_empty();
    match instance {
        Some(instance) if instance.blocked => Some(Fault::Blocked),
        Some(instance) if instance.failed => Some(Fault::Failed),
        // Pacemaker retries a failed device again and again, and each try may take as long as its BMC hangs.
        Some(instance) if instance.pending.as_deref().is_some_and(|word| word != MONITORING) => {
            latest(seen, device).map(|_| Fault::Failed)
        }
        Some(instance) if instance.pending.is_some() => None,
        Some(instance) if runs(instance) => {
            (!instance.managed && !view::is_in_maintenance(cluster, instance)).then_some(Fault::Unmanaged)
        }
        _ if !view::may_start(cluster) || !may_run(cluster, device) => None,
        _ if latest(seen, device).is_some() => Some(Fault::Failed),
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

fn latest<'a>(seen: ResourceSeen<'a>, device: &FenceDevice) -> Option<&'a Failure> {
    resource::latest(seen).into_iter().find(|failure| failure.resource == device.resource.id)
}

/// Reports a password change that has not reached both nodes, or not the BMC.
fn password_file(cluster: &Cluster, seen: ResourceSeen<'_>, device: &FenceDevice, found: &mut Found) {
    let id = device.resource.id.as_str();
    let target = device.targets.first().map(String::as_str);
    match passwords::copies(cluster, &seen.configuration.nodes, device) {
        Some(Copies::Differ { node, with }) => {
            let text = passwords::differ(device, &node, &with);
            found.warning("password-copies", target, text).typed(passwords::update_command(device, Some(&node)));
        }
        Some(Copies::Staged) => {
            let text = format!(
                "{id}: a second password is in its file, and takes the first one's place once its BMC accepts it"
            );
            found.notice("password-staged", target, text).typed(passwords::update_command(device, None));
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
        .typed(command!("tandem fencing update {} --from-secret", target));
}

/// Returns the nodes that a device fences, in words: `node1 and node2`, or `any node` if it names none.
fn target_names(device: &FenceDevice) -> String {
    if device.targets.is_empty() { "any node".to_owned() } else { device.targets.join(" and ") }
}

fn one(cluster: &Cluster, seen: ResourceSeen<'_>, device: &FenceDevice, found: &mut Found) {
    let id = device.resource.id.as_str();
    let target = match device.targets.as_slice() {
        [only] => Some(only.as_str()),
        _ => None,
    };
    let Some(fault) = fault(cluster, seen, device) else { return look(cluster, device, target, found) };
    let (fenced, has_another) = (target_names(device), has_another(cluster, seen, device));
    let so = if has_another {
        format!("and only another device fences {fenced}")
    } else {
        format!("so {fenced} could not be fenced")
    };
    let (problem, text) = match fault {
        Fault::Disabled => ("fence-device-disabled", format!("somebody disabled the fence device {id}, {so}")),
        Fault::Blocked => ("fence-device-blocked", format!("the fence device {id} is blocked, {so}")),
        Fault::Failed => (
            "fence-device-failed",
            format!("the fence device {id} has failed{}, {so}", device_story(cluster, seen, device)),
        ),
        Fault::Stopped => (
            "fence-device-stopped",
            format!("the fence device {id} is stopped{}, {so}", device_story(cluster, seen, device)),
        ),
        Fault::Unmanaged => (
            "fence-device-unmanaged",
            format!("somebody took the fence device {id} from Pacemaker's hands (unmanaged), so nobody checks it"),
        ),
    };
    let severity = match fault {
        Fault::Unmanaged => Severity::Warning,
        _ if has_another => Severity::Warning,
        _ => Severity::Critical,
    };
    let command = match (&fault, reason(cluster, seen, device)) {
        (Fault::Failed, Some(why)) if bmc::is_refused_login(why) => passwords::update_command(device, None),
        (Fault::Failed, why) if bmc::is_ours(device) && (why.is_some() || !has_healed(cluster, seen, device)) => {
            attempts::fencing_check(id)
        }
        _ => fault.command(id),
    };
    found.put(problem, severity, target, text).typed(command);
}

/// Returns the reason why the device's last monitor failed; `None` after a later success. The reason comes from the fence agent, because
/// Pacemaker keeps only a word such as "error".
fn reason<'a>(cluster: &'a Cluster, seen: ResourceSeen<'a>, device: &FenceDevice) -> Option<&'a str> {
    let failure = latest(seen, device);
    match bmc::checked(cluster, device) {
        Some((_, note)) if failure.and_then(|failure| failure.at).is_none_or(|at| at <= note.at) => {
            note.failure.as_deref()
        }
        _ => failure.map(|failure| failure.reason.as_str()).filter(|why| !why.is_empty()),
    }
}

/// Returns whether a later monitor of the device succeeded since its last failure.
fn has_healed(cluster: &Cluster, seen: ResourceSeen<'_>, device: &FenceDevice) -> bool {
    let at = latest(seen, device).and_then(|failure| failure.at);
    bmc::checked(cluster, device).is_some_and(|(_, note)| note.failure.is_none() && at.is_none_or(|at| at <= note.at))
}

/// Returns whether each node that `device` fences is also fenced by another, working device.
fn has_another(cluster: &Cluster, seen: ResourceSeen<'_>, device: &FenceDevice) -> bool {
    let works = |other: &&FenceDevice| {
        let instance = view::instance_of(seen.pacemaker, other);
        other.resource.id != device.resource.id
            && fault(cluster, seen, other).is_none()
            && instance.is_some_and(view::is_well)
    };
    let others: Vec<&FenceDevice> = seen.configuration.fence_devices.iter().filter(works).collect();
    let fences = |name: &String| others.iter().any(|other| other.targets.contains(name));
    !device.targets.is_empty() && device.targets.iter().all(fences)
}

/// Returns the last failure that Pacemaker lists for a device, and its last login: ` (TIME: REASON; its login last worked TIME)`.
fn device_story(cluster: &Cluster, seen: ResourceSeen<'_>, device: &FenceDevice) -> String {
    let told = |failure: &Failure| match reason(cluster, seen, device) {
        Some(why) => resource::failure_details(&Failure { reason: why.to_owned(), ..failure.clone() }),
        None => resource::failure_details(failure),
    };
    let mut story = latest(seen, device).map(told).unwrap_or_default().trim_start().to_owned();
    if let Some(at) = bmc::last_success(cluster, device) {
        let between = if story.is_empty() { "" } else { "; " };
        let _ = write!(story, "{between}{}", last_login(at));
    }
    if story.is_empty() { story } else { format!(" ({story})") }
}

fn last_login(at: u64) -> String {
    format!("its login last worked at {}", utc(at))
}

/// Reports faults in the last answer of a device's BMC, for a device that Pacemaker runs without a fault.
fn look(cluster: &Cluster, device: &FenceDevice, target: Option<&str>, found: &mut Found) {
    let id = device.resource.id.as_str();
    let Some((from, note)) = bmc::checked(cluster, device) else { return };
    if let Some(why) = &note.failure {
        let login = bmc::last_success(cluster, device).map(|at| format!("; {}", last_login(at))).unwrap_or_default();
        let at = utc(note.at);
        let text =
            format!("the fence device {id} did not get what it needs from its BMC, from {from} at {at}: {why}{login}");
        return found.warning("bmc-check-failed", target, text).typed(attempts::fencing_check(id));
    }
    let Some(target) = target else { return };
    match bmc::stranger(cluster, target, note) {
        Some(Stranger::OtherMachine { theirs, ours }) => {
            let text = format!(
                "the BMC of {id} belongs to the machine {theirs}, and {target} is {ours}: it would switch off a stranger"
            );
            found.critical("bmc-other-machine", Some(target), text).typed(attempts::fencing_check(id));
        }
        Some(Stranger::SaysOff) => {
            let text = format!(
                "the BMC of {id} says that {target} is off, and {target} runs: it would switch off a stranger, or nothing"
            );
            found.critical("bmc-says-off", Some(target), text).typed(attempts::fencing_check(id));
        }
        None => contradiction(device, target, note, found),
    }
}

/// Warns of a BMC that reports Off while its chassis reports On, because this does not prove the node off.
fn contradiction(device: &FenceDevice, target: &str, note: &BmcNote, found: &mut Found) {
    let id = device.resource.id.as_str();
    let Some(chassis) = &note.chassis_on else { return };
    let text = format!(
        "the BMC of {id} says that {target} is off, but its chassis {chassis} says On: that is no proof that {target} is off"
    );
    found.warning("bmc-contradiction", Some(target), text).typed(attempts::fencing_check(id));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Fact;
    use crate::operate::health::samples;

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
        let mut found = Found { problems: Vec::new() };
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
            let mut found = Found { problems: Vec::new() };
            find(&cluster, &mut found);
            found.problems.into_iter().find(|problem| problem.id == "fence-device-failed").unwrap().command
        };
        assert_eq!(typed(2_000).as_deref(), Some("tandem fencing check fence-node2"));
        assert_eq!(typed(500).as_deref(), Some("pcs stonith cleanup fence-node2"), "it has logged in since");
    }

    #[test]
    fn a_device_that_failed_is_not_well_while_it_is_tried_again() {
        assert_eq!(under_way("Starting", true), ["fence-device-failed"]);
        assert_eq!(under_way("Stopping", true), ["fence-device-failed"]);
        assert_eq!(under_way("Starting", false), [""; 0], "it begins");
        assert_eq!(under_way("Monitoring", true), [""; 0], "it runs");
    }
}
