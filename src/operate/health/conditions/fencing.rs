//! The conditions of the devices that fence a node.

use super::resources::{of_absent, of_instance};
use super::words::RESOURCE;
use super::{Condition, DeviceConditions, Method, Status, known, status, together};
use crate::adapters::pacemaker::seen::{Instance, Resource};
use crate::operate::cluster::Cluster;

/// Fence agents that use IPMI. All are the same program under different names.
const IPMI: &[&str] =
    &["fence_ipmilan", "fence_ipmilanplus", "fence_idrac", "fence_ilo3", "fence_ilo4", "fence_ilo5", "fence_imm"];

/// The devices that fence a node, and their joint conditions.
pub(super) struct Fencing {
    pub(super) devices: Vec<DeviceConditions>,
    /// True if at least one device runs and has not failed.
    pub(super) available: Status,
    /// True if there is a device, and all devices are healthy.
    pub(super) healthy: Status,
}

/// A fence device with its configuration from the CIB. If the CIB is unknown, the id and the agent come from Pacemaker's status, and
/// `configured` is `None`.
struct Device<'a> {
    id: &'a str,
    agent: &'a str,
    configured: Option<&'a Resource>,
}

pub(super) fn of(cluster: &Cluster, node: &str) -> Fencing {
    let Some(devices) = devices(cluster, node) else {
        return Fencing { devices: Vec::new(), available: Status::Unknown, healthy: Status::Unknown };
    };
    let told: Vec<(DeviceConditions, Status)> = devices.iter().map(|device| of_device(cluster, device)).collect();
    let available = Status::any(told.iter().map(|(_, fences)| *fences));
    let each = told.iter().map(|(device, _)| status(&device.conditions, "Healthy"));
    let healthy = Status::all(each.chain([Status::from(!told.is_empty())]));
    Fencing { devices: told.into_iter().map(|(device, _)| device).collect(), available, healthy }
}

/// Returns the devices that fence `node`; `None` if neither the CIB nor Pacemaker's state is known.
fn devices<'a>(cluster: &'a Cluster, node: &str) -> Option<Vec<Device<'a>>> {
    if let Some(configuration) = cluster.configuration.known() {
        let fits = |id: &str, targets: &[String]| match targets {
            [] => named_by(id) == Some(node),
            targets => targets.iter().any(|target| target == node),
        };
        let ours = configuration.fence_devices.iter().filter(|device| fits(&device.resource.id, &device.targets));
        let one =
            |resource: &'a Resource| Device { id: &resource.id, agent: &resource.agent, configured: Some(resource) };
        return Some(ours.map(|device| one(&device.resource)).collect());
    }
    let instances = known(cluster)?.resources.iter().filter(|instance| instance.agent.starts_with("stonith:"));
    let ours = instances.filter(|instance| named_by(&instance.id) == Some(node));
    Some(ours.map(|instance| Device { id: &instance.id, agent: &instance.agent, configured: None }).collect())
}

/// Returns the node's name in the id of a device without a host list. OpenShift's operator gives its devices ids such as `NODE_redfish`.
fn named_by(id: &str) -> Option<&str> {
    id.rsplit_once('_').map(|(node, _)| node)
}

/// Returns the conditions of a fence device, and whether it can fence.
fn of_device(cluster: &Cluster, device: &Device<'_>) -> (DeviceConditions, Status) {
    let conditions = known(cluster).map_or_else(
        || together(RESOURCE, &[Status::Unknown; 8]),
        |seen| {
            let mut instances = seen.resources.iter().filter(|instance| instance.id == device.id);
            let active = instances.clone().find(|instance| instance.active);
            let shown: Option<&Instance> = active.or_else(|| instances.next());
            shown.map_or_else(|| of_absent(seen.maintenance, device.configured), |one| of_instance(seen, one, true))
        },
    );
    let fences = Status::all(["Active", "Started", "Operational"].map(|kind| status(&conditions, kind)));
    (described(device, conditions), fences)
}

fn described(device: &Device<'_>, conditions: Vec<Condition>) -> DeviceConditions {
    DeviceConditions { name: device.id.to_owned(), method: method(device), conditions }
}

/// Returns the protocol of a fence device, from the name of its agent or else from the ending of its id.
fn method(device: &Device<'_>) -> Option<Method> {
    let agent = device.agent.rsplit(':').next().unwrap_or_default();
    let ending = device.id.rsplit('_').next().unwrap_or_default();
    if agent.contains("redfish") {
        return Some(Method::Redfish);
    }
    if IPMI.contains(&agent) || agent.contains("ipmi") {
        return Some(Method::Ipmi);
    }
    match ending {
        "redfish" => Some(Method::Redfish),
        ending if ending.starts_with("ipmi") => Some(Method::Ipmi),
        _ => None,
    }
}
