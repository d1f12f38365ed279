//! The facts that a node observes when it boots without its peer.

use super::fact;
use crate::base::Fact;
use crate::decide::evidence::{LoneBoot, PeerBmc, Power};

pub(super) fn write(asked: &LoneBoot, peer: &str, line: &mut impl FnMut(&str, String)) {
    let wanted = format!("wanted, once {peer} is off for {} s", asked.wait_s);
    line("lone boot", if asked.is_wanted { wanted } else { "not wanted".to_owned() });
    let is = |what: &Fact<bool>, yes: &str, no: &str| fact(what, no, |is| if *is { yes } else { no }.to_owned());
    line("quorum", is(&asked.quorum, "there is", "there is none"));
    line("Corosync", is(&asked.waits_for_all, "waits for all its members", "does not wait for a member"));
    line("in this boot", is(&asked.peer_was_seen, "the peer was here", "the peer was not here"));
    let committed = is(&asked.voters_are_committed, "each change of them is committed", "not each change is committed");
    line("voters", committed);
    line("data written by", fact(&asked.release, "no container is left", |release| format!("etcd {release}")));
    line(&format!("{peer}'s BMC"), fact(&asked.peer_bmc, "no device that may be asked", bmc));
    line("own UUID", fact(&asked.own_uuid, "none", Clone::clone));
    if asked.done.is_announced {
        let held = if asked.done.is_held_off { format!(", and {peer} is held off") } else { String::new() };
        line("done", format!("announced{held}"));
    }
}

fn bmc(bmc: &PeerBmc) -> String {
    let power = match &bmc.power {
        Power::Off { for_ms, age_ms } => format!("Off for {} s, asked {} s ago", for_ms / 1_000, age_ms / 1_000),
        Power::On => "On".to_owned(),
        Power::Unclear { says } => says.clone(),
        Power::Silent { why } => format!("silent: {why}"),
    };
    let uuid = |uuid: &Option<String>| uuid.clone().unwrap_or_else(|| "none".to_owned());
    let [found, by_device, by_agent] = [&bmc.found, &bmc.by_device, &bmc.by_agent].map(uuid);
    format!("{power}; machine {found}, by its device {by_device}, by its agent {by_agent}")
}
