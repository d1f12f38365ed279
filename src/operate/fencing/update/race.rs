//! The other device's option `race_with`, which names the BMC that this device uses.

use super::device::Device;
use crate::adapters::https::address::{Address, HTTPS_PORT};
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::shell::command;

const RACE_WITH: &str = "race_with";

/// Returns the id of the fence device with a `race_with` that lacks the new values `new` of `device`, and the command that sets them. Returns
/// `None` if no other device races, or if its `race_with` has these values.
pub(super) fn stale(devices: &[FenceDevice], device: &Device, new: &[(&str, &str)]) -> Option<(String, String)> {
    let is_other = |other: &&FenceDevice| other.resource.id != device.id && !other.targets.contains(&device.node);
    let (other, there) = devices
        .iter()
        .filter(is_other)
        .find_map(|other| Some((other, other.resource.parameters.get(RACE_WITH).filter(|text| !text.is_empty())?)))?;
    let of_new = new.iter().find(|(name, _)| *name == "ipport").map(|(_, port)| (*port).to_owned());
    let port = of_new.or_else(|| device.value("ipport")).and_then(|port| port.parse().ok()).unwrap_or(HTTPS_PORT);
    let wanted = renewed(there, new, port, other.user());
    let id = &other.resource.id;
    (wanted != *there).then(|| (id.clone(), command!("pcs stonith update {} {}", id, format!("{RACE_WITH}={wanted}"))))
}

/// Returns the value of `race_with`, now `there`, with the new values of the BMC. `port` is the BMC's port if the new address has none.
/// `user` is the user of the device with `race_with`, which applies if `race_with` names none. Adds no other key, because a missing key
/// has the value of that device.
fn renewed(there: &str, new: &[(&str, &str)], port: u16, user: Option<&str>) -> String {
    let mut parts: Vec<String> = there.split(',').map(|part| part.trim().to_owned()).collect();
    for (name, value) in new {
        match *name {
            "ip" => renew_address(&mut parts, value, port),
            "systems_uri" => replace(&mut parts, "systems_uri", &[*value]),
            "ssl_fingerprint" => replace(&mut parts, "fingerprint", &value.split(',').collect::<Vec<_>>()),
            "username" if parts.iter().any(|part| part.starts_with("username=")) => {
                replace(&mut parts, "username", &[*value]);
            }
            "username" if user != Some(*value) => parts.push(format!("username={value}")),
            _ => {}
        }
    }
    parts.join(",")
}

/// Replaces the address, which is the first part. Another spelling of the same address stays.
fn renew_address(parts: &mut [String], ip: &str, port: u16) {
    let Some(there) = parts.first_mut() else { return };
    let Ok(address) = Address::parse(ip, port) else { return };
    if Address::parse(there, HTTPS_PORT).map(|there| there.full()).ok() != Some(address.full()) {
        *there = address.short();
    }
}

/// Replaces the parts with this `key` by one part for each of `values`. Does nothing if there is no such part.
fn replace(parts: &mut Vec<String>, key: &str, values: &[&str]) {
    let is_it = |part: &String| part.split_once('=').is_some_and(|(name, _)| name == key);
    let Some(at) = parts.iter().position(is_it) else { return };
    parts.retain(|part| !is_it(part));
    let rest = parts.split_off(at);
    parts.extend(values.iter().map(|value| format!("{key}={}", value.trim())));
    parts.extend(rest);
}

#[cfg(test)]
mod tests {
    use super::super::device::tests::device;
    use super::*;
    use crate::adapters::pacemaker::seen::Resource;

    fn other(race_with: &str) -> FenceDevice {
        let parameters = [("username", "admin"), (RACE_WITH, race_with)];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        FenceDevice {
            resource: Resource { id: "fence-node1".to_owned(), parameters, ..Resource::default() },
            targets: vec!["node1".to_owned()],
            ..FenceDevice::default()
        }
    }

    #[test]
    fn the_other_devices_race_gets_what_the_bmc_has_now() {
        let device = device("ip=192.0.2.2\nusername=admin\n");
        let told = |race_with: &str, new: &[(&str, &str)]| {
            stale(&[other(race_with)], &device, new).map(|(id, command)| {
                assert_eq!(id, "fence-node1");
                command.trim_start_matches("pcs stonith update fence-node1 race_with=").to_owned()
            })
        };
        let there = "192.0.2.2,systems_uri=/a,fingerprint=AA,fingerprint=BB,password_file=/p";
        let moved = [("ip", "192.0.2.9:8443"), ("ssl_fingerprint", "CC"), ("ssl_insecure", "0")];
        assert_eq!(
            told(there, &moved).as_deref(),
            Some("192.0.2.9:8443,systems_uri=/a,fingerprint=CC,password_file=/p")
        );
        assert_eq!(
            told(there, &[("systems_uri", "/b"), ("username", "root")]).as_deref(),
            Some("192.0.2.2,systems_uri=/b,fingerprint=AA,fingerprint=BB,password_file=/p,username=root")
        );
        assert_eq!(told("192.0.2.2,username=x", &[("username", "root")]).as_deref(), Some("192.0.2.2,username=root"));
        assert_eq!(
            told("192.0.2.2", &[("ip", "192.0.2.2"), ("ipport", "8443")]).as_deref(),
            Some("192.0.2.2:8443"),
            "the port is an option of its own"
        );
        for (race_with, new) in [
            ("192.0.2.2:443", &[("ip", "192.0.2.2")][..]),
            ("192.0.2.2", &[("username", "admin"), ("ssl_fingerprint", "CC")][..]),
            ("", &[("ip", "192.0.2.9")][..]),
            ("192.0.2.2", &[][..]),
        ] {
            assert_eq!(told(race_with, new), None, "{race_with}: {new:?}");
        }
        assert!(stale(&[], &device, &moved).is_none(), "no other device");
    }
}
