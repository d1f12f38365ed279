//! Queries the BMCs from this node, with the options that the CIB has for each device. The query is the fence agent's
//! monitor and a read of the account's role; it switches nothing on or off.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::adapters::command::Programs;
use crate::adapters::openshift::bare_metal;
use crate::adapters::openshift::machine::PATIENCE;
use crate::adapters::openshift::remediation::{self, Remediation};
use crate::adapters::pacemaker::fence_options::{self, Devices};
use crate::adapters::pacemaker::seen::{Configuration, FenceDevice};
use crate::base::Fact;
use crate::fence::examine::{self, Examined};
use crate::operate::cluster::Cluster;
use crate::operate::health::fencing::{Answer, Asked, is_ours};
use crate::records::bmc_note::BmcNote;

use crate::operate::node;

/// Queries the BMCs of all fence devices in parallel, or only the BMC of the device with the id `device`. Also queries OpenShift's API.
pub fn all(cluster: &Cluster, configuration: &Configuration, device: Option<&str>, resource: Option<&str>) -> Asked {
    let programs = Programs::default();
    let options = fence_options::read(&programs).map_err(|error| error.to_string());
    let devices =
        configuration.fence_devices.iter().filter(|one| device.is_none_or(|wanted| one.resource.id == wanted));
    let pairs: Vec<(&FenceDevice, &str)> = devices
        .filter(|device| is_ours(device))
        .flat_map(|device| {
            let unnamed = device.targets.is_empty().then_some("");
            device.targets.iter().map(String::as_str).chain(unnamed).map(move |target| (device, target))
        })
        .collect();
    std::thread::scope(|scope| {
        let options = &options;
        let asked: Vec<_> = pairs
            .iter()
            .map(|pair| scope.spawn(move || one_within(examine::LONGEST, true, pair.0, pair.1, options)))
            .collect();
        let api = scope.spawn(|| of_the_api(configuration, resource));
        let mut unread = BTreeMap::new();
        let mut answers = Vec::new();
        for ((device, _), thread) in pairs.iter().zip(asked) {
            match thread.join() {
                Ok(Ok(answer)) => answers.push(answer),
                Ok(Err(why)) => drop(unread.insert(device.resource.id.clone(), why)),
                Err(_) => {}
            }
        }
        for answer in &mut answers {
            answer.note.millis_to_off = answer.note.millis_to_off.or_else(|| measured(cluster, &answer.note));
        }
        let (attached_hosts, remediations) = api.join().unwrap_or_default();
        Asked { answers, unread, attached_hosts, remediations }
    })
}

/// Returns the longest time, in milliseconds, that any node has published for switching off the machine behind `note`. Returns `None` if
/// no node has published such a time.
fn measured(cluster: &Cluster, note: &BmcNote) -> Option<u64> {
    let known = cluster.collected.values().filter_map(Fact::known).flat_map(|collected| &collected.bmcs);
    known.filter(|known| known.address == note.address).filter_map(|known| known.millis_to_off).max()
}

/// Queries the BMC of `device` about the node `target`, within `limit`. If `proves_flag` is set, also tests whether this BMC shows the
/// sessions of other clients. Fails if this node cannot read the device's options. Pacemaker's fencer may nevertheless be able to use the
/// device.
pub(super) fn one_within(
    limit: Duration,
    proves_flag: bool,
    device: &FenceDevice,
    target: &str,
    options: &Result<Devices, String>,
) -> Result<Answer, String> {
    let id = &device.resource.id;
    let lines = options.as_ref().map_err(Clone::clone)?.lines_of(id).map_err(|error| error.to_string())?;
    let named = Some(target).filter(|target| !target.is_empty());
    let plug = device.plugs.get(target).map(String::as_str);
    let Examined { mut note, role, may_reset, locked, flag, misconfigured, .. } =
        examine::device_within(limit, proves_flag, &lines, named, plug);
    if note.address.is_empty() {
        note.address = device.resource.parameters.get("ip").cloned().unwrap_or_default();
    }
    Ok(Answer { device: id.clone(), target: target.to_owned(), note, role, may_reset, locked, flag, misconfigured })
}

/// Returns the names of the nodes' BareMetalHosts that are not detached. Also returns the remediations that may reset a node in addition
/// to Pacemaker. Returns `NotAsked` for both if this node has no etcd resource.
fn of_the_api(configuration: &Configuration, resource: Option<&str>) -> (Fact<Vec<String>>, Fact<Vec<Remediation>>) {
    let Ok(context) = node::context(resource) else { return (Fact::NotAsked, Fact::NotAsked) };
    let (kubeconfig, nodes) = (&context.params.kubeconfig, &configuration.nodes);
    (bare_metal::attached(kubeconfig, nodes, PATIENCE), remediation::of(kubeconfig, nodes, PATIENCE))
}
