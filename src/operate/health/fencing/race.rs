//! The check that both fence devices are configured for the same race: the same winner, the right BMCs, and one user on each.

use super::{About, Answer, Case, Severity};
use crate::adapters::https::address::{Address, HTTPS_PORT};
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::adapters::redfish::flag::Flag;
use crate::base::shell::command;

fn option<'a>(device: &'a FenceDevice, name: &str) -> Option<&'a str> {
    device.resource.parameters.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// Checks the options of a fence race on two devices, each with the node that it fences. Returns whether a race decides which node
/// survives a split, so that no delay is needed.
pub(super) fn decides(case: &mut Case<'_>, devices: [(&FenceDevice, &str); 2]) -> bool {
    let races = devices.map(|(device, _)| option(device, "race_with").is_some());
    if races == [false; 2] {
        return false;
    }
    if let Some(at) = races.iter().position(|races| !races) {
        one_races(case, devices[at].0, devices[1 - at].0);
        return false;
    }
    preferred(case, devices);
    for (at, (device, node)) in devices.into_iter().enumerate() {
        other_bmc(case, device, devices[1 - at].0);
        one_user(case, device, devices[1 - at].0, node);
    }
    have_flags(case, devices)
}

/// Returns whether both BMCs have a flag by which agents see each other, as far as this was tested. Without a flag, the agents can only
/// wait for each other.
fn have_flags(case: &mut Case<'_>, devices: [(&FenceDevice, &str); 2]) -> bool {
    let without = devices.into_iter().find_map(|(device, node)| {
        let is_its = |answer: &&Answer| answer.device == device.resource.id && answer.target == node;
        match case.asked.answers.iter().find(is_its)?.flag.as_ref()? {
            Flag::None(why) => Some((node, why.clone())),
            _ => None,
        }
    });
    let Some((node, why)) = without else { return true };
    for (device, _) in devices {
        let id = &device.resource.id;
        let text = format!(
            "the BMC of {node} offers no flag ({why}): {id} waits there instead of a look, so a delay on one device is as good"
        );
        let command = command!("pcs stonith update {} race_with= race_preferred=", id);
        case.add("race-flag", Severity::Warning, About::Device(id), text, Some(command));
    }
    false
}

fn one_races(case: &mut Case<'_>, device: &FenceDevice, other: &FenceDevice) {
    let (id, other_id) = (&device.resource.id, &other.resource.id);
    let text = format!(
        "{other_id} races and {id} does not: the agent that uses {id} leaves no mark, and resets without a look at the \
         marks of the other one"
    );
    let bmc = option(other, "ip").unwrap_or("ADDRESS");
    let preferred = option(other, "race_preferred").unwrap_or("NODE");
    let command = command!("pcs stonith update {} race_with={} race_preferred={}", id, bmc, preferred);
    case.add("race", Severity::Warning, About::Cluster, text, Some(command));
}

fn preferred(case: &mut Case<'_>, devices: [(&FenceDevice, &str); 2]) {
    let nodes = devices.map(|(_, node)| node);
    let names = devices.map(|(device, _)| option(device, "race_preferred").unwrap_or_default());
    let right = names.into_iter().find(|name| nodes.contains(name)).unwrap_or(nodes[0]);
    for (device, name) in devices.map(|(device, _)| device).into_iter().zip(names).filter(|(_, name)| *name != right) {
        let id = &device.resource.id;
        let text = format!(
            "race_preferred of {id} is '{name}', and both devices need the same node: two nodes that lose each other may \
             both wait, or switch each other off"
        );
        let command = command!("pcs stonith update {} race_preferred={}", id, right);
        case.add("race-preferred", Severity::Warning, About::Cluster, text, Some(command));
    }
}

/// Checks that the device's `race_with` is the BMC in the other device's `ip`. Otherwise each agent leaves its marks on a BMC that the
/// other agent does not read.
fn other_bmc(case: &mut Case<'_>, device: &FenceDevice, other: &FenceDevice) {
    let own = option(device, "race_with").and_then(|text| text.split(',').next()).unwrap_or_default();
    let port = option(other, "ipport").and_then(|port| port.parse().ok()).unwrap_or(HTTPS_PORT);
    let Some(bmc) = option(other, "ip") else { return };
    let full = |text: &str, port| Address::parse(text.trim(), port).map(|address| address.full()).ok();
    if full(own, HTTPS_PORT) == full(bmc, port) {
        return;
    }
    let (id, other) = (&device.resource.id, &other.resource.id);
    let text = format!(
        "race_with of {id} is {own}, and {other} has its BMC at {bmc}: each reads marks where the other leaves none"
    );
    let command = command!("pcs stonith update {} race_with={}", id, bmc);
    case.add("race-address", Severity::Warning, About::Cluster, text, Some(command));
}

/// Checks that both agents log in to the BMC of `node` as the same user. Some BMCs show a user only the user's own sessions.
fn one_user(case: &mut Case<'_>, device: &FenceDevice, other: &FenceDevice, node: &str) {
    let named = option(other, "race_with")
        .unwrap_or_default()
        .split(',')
        .find_map(|part| part.trim().strip_prefix("username="));
    let marks = named.or(other.user()).unwrap_or_default();
    let user = device.user().unwrap_or_default();
    if marks == user {
        return;
    }
    let (id, other) = (&device.resource.id, &other.resource.id);
    let text = format!(
        "on the BMC of {node}, {id} logs in as {user} and race_with of {other} as {marks}: some BMCs show a user its own \
         sessions only, and then neither agent sees the other's mark"
    );
    let command = command!("pcs stonith update {} race_with=ADDRESS,username={}", other, user);
    case.add("race-user", Severity::Warning, About::Cluster, text, Some(command));
}
