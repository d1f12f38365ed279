//! The steps for the fence devices, one for each node, and for their first monitors.

use super::ClusterFacts;
use super::found::{Found, command, pcs, refused, step};
use super::value::{Kind, Wanted};
use crate::adapters::pacemaker::layout::Cib;
use crate::adapters::pacemaker::seen::Pacemaker;
use crate::base::Fact;
use crate::operate::setup::description::{Description, Node};
use crate::operate::setup::step::{SetupStep, State};

/// Default values of `pcmk_delay_base` for the devices that fence the preferred node and the other node.
pub(crate) const DELAYS: [&str; 2] = ["10s", "1s"];
/// Name and default value of the fence agent's option `race_delay`.
const RACE_DELAY: [&str; 2] = ["race_delay", "10"];
pub(super) const AGENT: &str = "fence_redfish_rs";
/// Default timeout in seconds of Pacemaker's fencer for a fence agent.
const FENCERS_PATIENCE: u64 = 60;
/// Longest time in seconds that the fence agent needs in addition to `race_delay`.
const BESIDE_A_RACE: u64 = 35;
const PASSWORD_FILE: &str = "password_file";
// Titles of the steps.
const DEVICE: &str = "fence device of";
const BOTH_ANSWER: &str = "both fence devices answer";
/// The wrong and the right place for a BMC password, in words.
const PLACES: [&str; 2] = ["in the CIB", "in the password file"];
const TRUTHS: [&str; 5] = ["ssl", "ssl_secure", "ssl_insecure", "ssl_verify_hostname", "missing_as_off"];

/// A fence device with the options that the description demands.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) id: String,
    /// Name of the node that the device fences.
    pub(crate) node: String,
    pub(crate) agent: &'static str,
    pub(crate) options: Vec<Wanted>,
    /// True if a constraint bans the device from the node that it fences.
    pub(crate) avoids: bool,
    /// True if an existing fence device may keep its password in the CIB, instead of a password file.
    pub(crate) password_may_be_in_cib: bool,
}

impl Device {
    pub(crate) fn of(description: &Description) -> [Self; 2] {
        description.nodes.each_ref().map(|node| Self {
            id: format!("fence-{}", node.name),
            node: node.name.clone(),
            agent: AGENT,
            options: options(description, node),
            avoids: true,
            password_may_be_in_cib: false,
        })
    }

    /// Returns the steps that create or change the fence device, and ban it from the node that it fences.
    pub(crate) fn steps(&self, cib: &Cib, on: &str) -> Vec<SetupStep> {
        let title = format!("{DEVICE} {}", self.node);
        let mut found = Found::default();
        let there = cib.device(&self.id);
        if let Some(device) = there {
            if device.resource.agent != format!("stonith:{}", self.agent) {
                return vec![refused(&self.id, &title, on, self.is_anothers(&device.resource.agent))];
            }
            if device.resource.meta.get("target-role").is_some_and(|role| role == "Stopped") {
                found.miss(pcs(["stonith", "enable", &self.id]));
            }
            self.compare(&mut found, cib);
        } else if let Some(other) = cib.resource(&self.id) {
            return vec![refused(&self.id, &title, on, self.is_anothers(&other.agent))];
        } else {
            let words = self.options.iter().map(Wanted::word);
            found.miss(pcs(["stonith", "create", &self.id, self.agent].map(str::to_owned).into_iter().chain(words)));
        }
        let stays_away = there.is_some_and(|device| device.banned_from.contains(&self.node));
        if self.avoids && !stays_away {
            found.miss(pcs(["constraint", "location", &self.id, "avoids", &self.node]));
        }
        found.steps(&self.id, &title, on)
    }

    fn is_anothers(&self, agent: &str) -> String {
        format!(
            "there is a resource {} of {agent} already, and not of {}: if it is not needed, type 'pcs stonith delete {}' and \
             this again",
            self.id, self.agent, self.id
        )
    }

    fn compare(&self, found: &mut Found, cib: &Cib) {
        let Some(device) = cib.device(&self.id) else { return };
        let mut there = device.resource.parameters.clone();
        // Other spellings are equal, and so is a map instead of a list.
        if device.targets == [self.node.as_str()] {
            there.insert("pcmk_host_list".to_owned(), self.node.clone());
        }
        there.entry(RACE_DELAY[0].to_owned()).or_insert_with(|| RACE_DELAY[1].to_owned());
        let in_cib: Vec<&str> = cib.passwords_of(&self.id).collect();
        let is_left = self.password_may_be_in_cib && !in_cib.is_empty();
        let compared = self.options.iter().filter(|option| !is_left || option.name != PASSWORD_FILE).cloned();
        let mut changed = found.compare(&self.id, &compared.collect::<Vec<_>>(), &there);
        for name in in_cib.into_iter().filter(|_| !is_left) {
            // The fence agent would prefer this password to the file, and any reader of the CIB could read it.
            found.differ(format!("{}: {name}", self.id), PLACES[0], PLACES[1]);
            changed.push(format!("{name}="));
        }
        if !changed.is_empty() {
            found.change(pcs(["stonith".to_owned(), "update".to_owned(), self.id.clone()].into_iter().chain(changed)));
        }
    }
}

fn options(description: &Description, node: &Node) -> Vec<Wanted> {
    let mut options: Vec<Wanted> = node.bmc.options.iter().map(|(name, value)| option(name, value)).collect();
    let waits = description.fencing_delay.as_secs();
    let delay = if description.preferred == node.name { format!("{waits}s") } else { DELAYS[1].to_owned() };
    let mut own = vec![
        (PASSWORD_FILE, node.bmc.password_file.display().to_string()),
        ("pcmk_host_list", node.name.clone()),
        ("pcmk_delay_base", if description.race { "0".to_owned() } else { delay }),
    ];
    let other = description.nodes.iter().find(|other| description.race && other.name != node.name);
    if let Some(other) = other {
        own.push(("race_with", race_with(node, other)));
        own.push(("race_preferred", description.preferred.clone()));
        own.push((RACE_DELAY[0], waits.to_string()));
        // The agent waits inside its action, so the fencer's time-out must include that wait.
        let patience = waits + BESIDE_A_RACE;
        if patience > FENCERS_PATIENCE {
            own.extend(["pcmk_off_timeout", "pcmk_reboot_timeout"].map(|name| (name, format!("{patience}s"))));
        }
    }
    for (name, value) in own {
        if !options.iter().any(|option| option.name == name) {
            options.push(option(name, &value));
        }
    }
    options
}

/// Returns the option `race_with` for the device that fences `node` and runs on the node `own`: the address and access
/// of `own`'s BMC. Values that equal those of `node`'s BMC are left out.
fn race_with(node: &Node, own: &Node) -> String {
    let option = |node: &Node, name: &str| {
        node.bmc.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let ip = option(own, "ip").unwrap_or_default();
    let port = option(own, "ipport").map(|port| format!(":{port}")).unwrap_or_default();
    let is_bare_ipv6 = ip.parse::<std::net::Ipv6Addr>().is_ok();
    let mut parts = vec![if is_bare_ipv6 { format!("[{ip}]{port}") } else { format!("{ip}{port}") }];
    if let Some(uri) = option(own, "systems_uri") {
        parts.push(format!("systems_uri={uri}"));
    }
    for pin in option(own, "ssl_fingerprint").iter().flat_map(|pins| pins.split(',')) {
        parts.push(format!("fingerprint={}", pin.trim()));
    }
    let files = [node, own].map(|node| Some(node.bmc.password_file.display().to_string()));
    let [ca_files, users] = ["ssl_ca_file", "username"].map(|name| [option(node, name), option(own, name)]);
    for (key, [of_device, value]) in [("ca_file", ca_files), ("username", users), ("password_file", files)] {
        if let Some(value) = value.filter(|value| of_device.as_ref() != Some(value)) {
            parts.push(format!("{key}={value}"));
        }
    }
    parts.join(",")
}

/// Returns an option of a fence device, with the kind by which its values are compared.
pub(crate) fn option(name: &str, value: &str) -> Wanted {
    let kind = match name {
        "system_uuid" => Kind::Uuid,
        "pcmk_delay_base" | "pcmk_delay_max" | "race_delay" | "pcmk_off_timeout" | "pcmk_reboot_timeout" => Kind::Time,
        name if TRUTHS.contains(&name) => Kind::Truth,
        _ => Kind::Text,
    };
    Wanted::new(name, value, kind)
}

/// Returns the step that waits until Pacemaker runs all fence devices, each after a successful monitor. No resource
/// that depends on fencing may start earlier.
pub(crate) fn running(devices: &[Device], facts: &ClusterFacts, on: &str) -> SetupStep {
    let pacemaker = facts.pacemaker.known();
    let state = if devices.iter().all(|device| pacemaker.is_some_and(|pacemaker| runs(pacemaker, &device.id))) {
        State::Done
    } else if let Some(why) =
        pacemaker.and_then(|pacemaker| devices.iter().find_map(|device| failed(pacemaker, device)))
    {
        State::Refused(why)
    } else if let Fact::Unknown(why) = &facts.pacemaker {
        State::Refused(format!(
            "whether the fence devices run is not known ({why}): see 'pcs status', and type this again"
        ))
    } else {
        State::ToDo(vec![command(&["crm_resource", "--wait", "--timeout=60s"])])
    };
    step("fencing", BOTH_ANSWER, on, state)
}

fn runs(pacemaker: &Pacemaker, device: &str) -> bool {
    let mut instances = pacemaker.resources.iter().filter(|instance| instance.id == device);
    instances
        .any(|instance| instance.active && instance.role == "Started" && !instance.failed && instance.pending.is_none())
}

fn failed(pacemaker: &Pacemaker, device: &Device) -> Option<String> {
    let failure = pacemaker.failures.iter().find(|failure| failure.resource == device.id)?;
    let why = if failure.reason.is_empty() { &failure.status } else { &failure.reason };
    Some(format!(
        "{} does not work on {}: {why}: repair that, see '{} --help', type 'pcs stonith cleanup {}' and this again",
        device.id, failure.node, device.agent, device.id
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::setup::file;

    fn of(description: &Description, at: usize, name: &str) -> Option<String> {
        let word = Device::of(description)[at].options.iter().find(|option| option.name == name).map(Wanted::word);
        word.map(|word| word.trim_start_matches(name).trim_start_matches('=').to_owned())
    }

    #[test]
    fn devices_that_race_have_no_delay_and_know_the_bmc_of_their_own_node() {
        let mut description = file::read(file::EXAMPLE).unwrap();
        assert_eq!(of(&description, 0, "pcmk_delay_base").as_deref(), Some("10s"));
        assert_eq!(of(&description, 0, "race_with"), None);
        assert_eq!(of(&description, 0, "race_delay"), None);
        description.race = true;
        assert_eq!(of(&description, 0, "race_delay").as_deref(), Some("10"));
        assert_eq!(of(&description, 0, "pcmk_off_timeout"), None);
        description.fencing_delay = std::time::Duration::from_secs(40);
        for (at, [ip, name]) in [["203.0.113.2", "B"], ["203.0.113.1", "A"]].into_iter().enumerate() {
            let own = &mut description.nodes[1 - at].bmc.options;
            own.retain(|(known, _)| known != "systems_uri");
            own.push(("systems_uri".to_owned(), format!("/redfish/v1/Systems/{name}")));
            own.push(("ssl_fingerprint".to_owned(), "AB:CD".to_owned()));
            let with = of(&description, at, "race_with").unwrap();
            assert!(
                with.starts_with(&format!("{ip},systems_uri=/redfish/v1/Systems/{name},fingerprint=AB:CD")),
                "{with}"
            );
            assert_eq!(of(&description, at, "pcmk_delay_base").as_deref(), Some("0"));
            assert_eq!(of(&description, at, "race_preferred"), Some(description.preferred.clone()));
            assert_eq!(of(&description, at, "race_delay").as_deref(), Some("40"));
            assert_eq!(
                of(&description, at, "pcmk_off_timeout").as_deref(),
                Some("75s"),
                "the fencer waits for the agent"
            );
        }
    }
}
