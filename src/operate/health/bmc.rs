//! The link between fence devices and the collected notes about BMCs.

use crate::adapters::pacemaker::seen::FenceDevice;
use crate::operate::cluster::Cluster;
use crate::os::uuid;
use crate::records::bmc_note::{BmcNote, FencingNote};

use super::view;

/// The port of a BMC if its address contains none.
const HTTPS: &str = "443";

/// Returns the newest result of querying `device`'s BMC, and the node that queried it.
pub fn checked<'a>(cluster: &'a Cluster, device: &FenceDevice) -> Option<(&'a str, &'a BmcNote)> {
    notes(cluster, device).filter(|(_, note)| note.at > 0).max_by_key(|(_, note)| note.at)
}

/// Returns the fence agent's newest attempt to switch a machine off through `device`'s BMC.
pub(super) fn last_fencing<'a>(cluster: &'a Cluster, device: &FenceDevice) -> Option<&'a FencingNote> {
    notes(cluster, device).filter_map(|(_, note)| note.fencing.as_ref()).max_by_key(|fencing| fencing.began_at_millis)
}

/// Returns the time of the last login to `device`'s BMC from any node, in seconds since 1970; `None` if none is known.
pub(super) fn last_success(cluster: &Cluster, device: &FenceDevice) -> Option<u64> {
    notes(cluster, device).filter_map(|(_, note)| note.last_success).max()
}

/// Returns the last results of querying `device`'s BMC, each with the node that queried it.
pub(super) fn notes<'a>(cluster: &'a Cluster, device: &FenceDevice) -> impl Iterator<Item = (&'a str, &'a BmcNote)> {
    let wanted = address(device);
    let systems = systems(device);
    let published = cluster
        .collected
        .iter()
        .filter(|(node, _)| **node != cluster.here || cluster.own_notes.is_empty())
        .filter_map(|(node, collected)| Some((node.as_str(), collected.known()?)))
        .flat_map(|(node, collected)| collected.bmcs.iter().map(move |note| (node, note)));
    let own = cluster.own_notes.iter().map(|note| (cluster.here.as_str(), note));
    let all: Vec<(&str, &BmcNote)> = published
        .chain(own)
        .filter(|(_, note)| wanted.as_ref().is_some_and(|wanted| *wanted == note.address))
        .collect();
    // One address may serve several systems. A device that names no system means the only one.
    let named =
        move |note: &BmcNote| systems.is_empty() || systems.iter().any(|system| is_same_system(system, &note.system));
    all.into_iter().filter(move |(_, note)| named(note))
}

/// Fence agents that use Redfish, so that `tandem` can query their BMCs.
const OURS: [&str; 2] = ["fence_redfish_rs", "fence_redfish"];

/// Returns whether `tandem` can query a device's BMC, because its agent is one of `OURS`.
pub fn is_ours(device: &FenceDevice) -> bool {
    let agent = device.resource.agent.rsplit(':').next().unwrap_or_default();
    OURS.contains(&agent)
}

/// Returns whether a BMC refused the user name or the password. `why` is the sentence with which the fence agent failed.
pub(super) fn is_refused_login(why: &str) -> bool {
    ["unable to log in", "password"].iter().any(|words| why.contains(words))
}

fn parameter<'a>(device: &'a FenceDevice, names: &[&str]) -> Option<&'a str> {
    let parameters = &device.resource.parameters;
    names.iter().find_map(|name| parameters.get(*name)).map(String::as_str).filter(|value| !value.is_empty())
}

/// Returns the address of a device's BMC, in the form that [`BmcNote`] has it: without a port if the port is 443.
fn address(device: &FenceDevice) -> Option<String> {
    let ip = parameter(device, &["ip", "ipaddr"])?;
    let port = parameter(device, &["ipport"]).filter(|port| *port != HTTPS);
    Some(port.map_or_else(|| ip.to_owned(), |port| format!("{ip}:{port}")))
}

/// Returns the device's values that name its Redfish system. Each is a path or an id.
fn systems(device: &FenceDevice) -> Vec<String> {
    let named = parameter(device, &["systems_uri", "systems-uri"]).into_iter();
    named.map(str::to_owned).chain(device.plugs.values().cloned()).collect()
}

/// Returns whether `ours` and `noted` name the same Redfish system, as `/redfish/v1/Systems/1` and `1` do.
fn is_same_system(ours: &str, noted: &str) -> bool {
    let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    last(ours) == last(noted)
}

/// Evidence that a BMC does not belong to the node that its device fences. Pacemaker may nevertheless run the device without a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger<'a> {
    /// The BMC reports another UUID than the node's kernel.
    OtherMachine { theirs: &'a str, ours: &'a str },
    /// The BMC reports that a running machine is off.
    SaysOff,
}

/// Returns the evidence that the BMC behind `note` is not the one of the node `target`; `None` if there is none.
pub(super) fn stranger<'a>(cluster: &'a Cluster, target: &str, note: &'a BmcNote) -> Option<Stranger<'a>> {
    let ours = view::collected(cluster, target).and_then(|collected| collected.dmi_uuid.as_deref());
    if let (Some(theirs), Some(ours)) = (note.uuid.as_deref(), ours)
        && uuid::is_valid(theirs)
        && uuid::is_valid(ours)
        && !uuid::same(theirs, ours)
    {
        return Some(Stranger::OtherMachine { theirs, ours });
    }
    let off = note.power.as_deref() == Some("Off") && note.failure.is_none();
    (off && ran_at(cluster, target, note.at)).then_some(Stranger::SaysOff)
}

/// Returns whether the node `name` provably ran at the time `at`. The proof is a resource that was started there earlier and still runs
/// there. If `at` is later than the observation of the cluster, it suffices that the node was online in the observation.
fn ran_at(cluster: &Cluster, name: &str, at: u64) -> bool {
    let Some(pacemaker) = cluster.pacemaker.known().filter(|_| view::is_online(cluster, name)) else { return false };
    if at >= cluster.at {
        return true;
    }
    let mut histories = pacemaker.histories.iter().filter(|history| history.node == name);
    histories.any(|history| {
        let is_start = |task: &str| task == "start" || task == "promote";
        let started = history.operations.iter().filter(|operation| is_start(&operation.task) && operation.rc == 0);
        let before = started.filter_map(|operation| operation.last_change).any(|change| change < at);
        before && view::instance_on(pacemaker, &history.resource, name).is_some_and(|instance| instance.active)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Fact;
    use crate::operate::health::samples;

    fn device(parameters: &[(&str, &str)]) -> FenceDevice {
        let mut device = FenceDevice::default();
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        device.resource.parameters = parameters.collect();
        device
    }

    fn note(address: &str, system: &str, at: u64) -> BmcNote {
        BmcNote { address: address.to_owned(), system: system.to_owned(), at, ..BmcNote::default() }
    }

    fn noted(notes: Vec<BmcNote>) -> Cluster {
        let mut cluster = samples::read("healthy");
        let Some(Fact::Known(collected)) = cluster.collected.get_mut("node1") else { panic!("nothing collected") };
        collected.bmcs = notes;
        cluster
    }

    #[test]
    fn a_note_belongs_to_a_device_by_address_port_and_system() {
        let cluster = noted(vec![
            note("192.0.2.1", "/redfish/v1/Systems/1", 5),
            note("192.0.2.1", "/redfish/v1/Systems/2", 9),
            note("192.0.2.1:8443", "/redfish/v1/Systems/1", 7),
        ]);
        let at = |parameters: &[(&str, &str)]| checked(&cluster, &device(parameters)).map(|(_, note)| note.at);
        assert_eq!(at(&[("ip", "192.0.2.1")]), Some(9));
        assert_eq!(at(&[("ip", "192.0.2.1"), ("ipport", "443"), ("systems_uri", "/redfish/v1/Systems/1/")]), Some(5));
        assert_eq!(at(&[("ipaddr", "192.0.2.1"), ("ipport", "8443")]), Some(7));
        assert_eq!(at(&[("ip", "192.0.2.9")]), None);
        let mut by_plug = device(&[("ip", "192.0.2.1")]);
        by_plug.plugs.insert("node2".to_owned(), "1".to_owned());
        assert_eq!(checked(&cluster, &by_plug).map(|(_, note)| note.at), Some(5));
    }

    #[test]
    fn an_off_from_before_the_machine_came_back_is_no_news() {
        let cluster = samples::read("healthy");
        let pacemaker = cluster.pacemaker.known().unwrap();
        let histories = pacemaker.histories.iter().filter(|history| history.node == "node2");
        let starts = histories.flat_map(|history| &history.operations).filter(|operation| operation.task == "start");
        let started = starts.filter_map(|operation| operation.last_change).min().unwrap();
        let off = |at| BmcNote { power: Some("Off".to_owned()), ..note("192.0.2.1", "1", at) };
        assert_eq!(stranger(&cluster, "node2", &off(started)), None);
        assert_eq!(stranger(&cluster, "node2", &off(started + 1)), Some(Stranger::SaysOff));
        let failed = BmcNote { failure: Some("connection refused".to_owned()), ..off(started + 1) };
        assert_eq!(stranger(&cluster, "node2", &failed), None);
        // A node without a resource proves only that it is online now.
        let mut without_histories = cluster.clone();
        let Fact::Known(pacemaker) = &mut without_histories.pacemaker else { panic!("nobody was asked") };
        pacemaker.histories.clear();
        assert_eq!(stranger(&without_histories, "node2", &off(cluster.at - 1)), None);
        assert_eq!(stranger(&without_histories, "node2", &off(cluster.at)), Some(Stranger::SaysOff));
    }
}
