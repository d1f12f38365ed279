//! The check that a split leaves the configured primary running.

use super::timing::{delay, prefers_the_promoted};
use super::{About, Case, Severity};
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::shell::command;
use crate::operate::health::primary;

pub(super) fn check(case: &mut Case<'_>) {
    let Some(primary) = primary(case.cluster) else { return };
    let nodes = &case.configuration.nodes;
    let Some(peer) = nodes.iter().find(|node| **node != primary).filter(|_| nodes.contains(&primary)) else { return };
    let (Some(of_primary), Some(of_peer)) = (case.device_of(&primary), case.device_of(peer)) else { return };
    let races = |device: &FenceDevice| device.resource.parameters.contains_key("race_with");
    if races(of_primary) && races(of_peer) {
        return race(case, &primary, [of_primary, of_peer]);
    }
    let [for_primary, for_peer] = [delay(of_primary, &primary), delay(of_peer, peer)].map(|delay| delay.as_secs());
    if for_primary >= for_peer || prefers_the_promoted(case) {
        return;
    }
    let text = format!(
        "the fencing of {primary}, the configured primary, is delayed by {for_primary} s, and that of {peer} by {for_peer} s: \
         of two voters that lose each other, {peer} is left"
    );
    let command = if of_primary.resource.id == of_peer.resource.id {
        let delays = format!("pcmk_delay_base={primary}:{for_peer}s;{peer}:{for_primary}s");
        command!("pcs stonith update {} {}", of_primary.resource.id, delays)
    } else {
        let slower = command!("pcs stonith update {} pcmk_delay_base={}s", of_primary.resource.id, for_peer);
        let faster = command!("pcs stonith update {} pcmk_delay_base={}s", of_peer.resource.id, for_primary);
        format!("{slower} && {faster}")
    };
    case.add("delays-against-primary", Severity::Warning, About::Cluster, text, Some(command));
}

fn race(case: &mut Case<'_>, primary: &str, devices: [&FenceDevice; 2]) {
    let preferred = devices.map(|device| device.resource.parameters.get("race_preferred").map(String::as_str));
    let Some(preferred) = preferred.into_iter().flatten().find(|preferred| *preferred != primary) else { return };
    let text = format!(
        "race_preferred is {preferred}, and {primary} is the configured primary: of two voters that lose each other, {preferred} is left"
    );
    let [one, other] =
        devices.map(|device| command!("pcs stonith update {} race_preferred={}", device.resource.id, primary));
    case.add("delays-against-primary", Severity::Warning, About::Cluster, text, Some(format!("{one} && {other}")));
}
