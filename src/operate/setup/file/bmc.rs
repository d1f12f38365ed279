//! A BMC in the description: options of the fence agent by their names, or an address in OpenShift's form.

use super::reader::{At, Reader, Section, shown};
use super::{checks, nearest};
use crate::adapters::https::address::Address;
use crate::fence::config::{Action, Config, Environment};
use crate::fence::input;
use crate::fence::options::{self, Opt};
use crate::operate::setup::description::Bmc;

/// The URL scheme that OpenShift's installer writes in a BMC's address.
const SCHEME: &str = "redfish+https://";
const FORM: &str = "redfish+https://HOST[:PORT]/redfish/v1/Systems/ID";
/// Options of the fence agent that the description must not have, because setup or Pacemaker sets them, or because they
/// belong to one call.
const NOT_HERE: &[Opt] = &[
    Opt::Action,
    Opt::Password,
    Opt::PasswordScript,
    Opt::PortAsIp,
    Opt::Separator,
    Opt::PlugSeparator,
    Opt::DebugFile,
    Opt::Version,
    Opt::Help,
    Opt::Quiet,
    Opt::GnutlscliPath,
];

pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> Option<Bmc> {
    let password_file = if secret_key(reader, section) {
        None
    } else {
        reader.text(section, "password_file").and_then(|given| checks::path(reader, "password_file", given))
    };
    let mut found: Vec<(String, String)> = Vec::new();
    let mut is_whole = true;
    let mut take = |reader: &mut Reader<'_>, name: &str, value: String, at: At| {
        if found.iter().any(|(known, _)| known == name) {
            reader.fault(at, format!("{name} is there twice: leave one of them out"));
            is_whole = false;
        } else {
            found.push((name.to_owned(), value));
        }
    };
    let mut is_known = true;
    for (key, value, at) in reader.scalars(section) {
        match key.as_str() {
            "password_file" => {}
            "address" => {
                if let Some(pairs) = of_openshift(&value) {
                    for (name, value) in pairs {
                        take(reader, name, value, at.clone());
                    }
                } else {
                    reader.fault(at, format!("address = \"{}\" is no BMC: write {FORM}", shown(&value)));
                    is_known = false;
                }
            }
            _ => match options::by_name(&key) {
                Some((opt, row)) if !NOT_HERE.contains(opt) => take(reader, row.name, value, at),
                Some((Opt::Password | Opt::PasswordScript, _)) => is_known = false,
                Some(_) => {
                    reader.fault(at, format!("'{}' is not for this file: leave it out", shown(&key)));
                    is_known = false;
                }
                None => {
                    let names = options::rows().map(|row| row.name).chain(["address"]);
                    let instead = nearest::of(&key, names).map_or_else(
                        || "'man fence_redfish_rs' lists them".to_owned(),
                        |near| format!("did you mean {near}?"),
                    );
                    reader.fault(at, format!("'{}' is no option of fence_redfish_rs: {instead}", shown(&key)));
                    is_known = false;
                }
            },
        }
    }
    if !is_whole || !is_known {
        return None;
    }
    let bmc = Bmc { options: found, password_file: password_file? };
    taken(reader, section, &bmc).then_some(bmc)
}

/// Returns whether the section has an option for a password. Adds a fault with its place, and never its value.
fn secret_key(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> bool {
    let keys: Vec<(bool, At)> = section
        .keys()
        .filter_map(|(key, at)| match options::by_name(key)?.0 {
            Opt::Password => Some((true, at)),
            Opt::PasswordScript => Some((false, at)),
            _ => None,
        })
        .collect();
    for (is_password, at) in &keys {
        let text = if *is_password {
            "a password does not belong in this file: write it into one of its own, readable by root alone, and here password_file = \"/etc/tandem/...\""
        } else {
            "a program is not asked for the password here: write password_file = \"/etc/tandem/...\""
        };
        reader.fault(at.clone(), text.to_owned());
    }
    !keys.is_empty()
}

/// Returns whether the fence agent accepts the options of `bmc`. If it does not, the faults that it finds are added to `reader`. The
/// password file is not read.
fn taken(reader: &mut Reader<'_>, section: &Section<'_, '_>, bmc: &Bmc) -> bool {
    let mut lines: Vec<String> = bmc.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    lines.extend(["password_file=/", "action=monitor", ""].map(str::to_owned));
    let given = input::from_lines(lines.join("\n").as_bytes());
    match Config::read(Action::Monitor, &given, Environment::default()) {
        Ok(_) => true,
        Err(faults) => {
            for fault in faults {
                reader.fault(section.at(), format!("fence_redfish_rs does not take this BMC: {fault}"));
            }
            false
        }
    }
}

/// Returns the options `ip`, `ipport` and `systems_uri` of a BMC address in OpenShift's form; `None` if it has another
/// form.
fn of_openshift(text: &str) -> Option<Vec<(&'static str, String)>> {
    const PORT: u16 = 443;
    let (host, path) = text.strip_prefix(SCHEME)?.split_once('/')?;
    let path = format!("/{}", path.trim_end_matches('/'));
    let is_system = path.strip_prefix("/redfish/v1/Systems/").is_some_and(|id| !id.is_empty() && !id.contains('/'));
    let address = Address::parse(host, PORT).ok().filter(|_| is_system && !host.contains('@'))?;
    let mut found = vec![("ip", address.for_resolver())];
    let full = address.full();
    let port = full.rsplit(':').next().filter(|port| *port != "443").map(str::to_owned);
    found.extend(port.map(|port| ("ipport", port)));
    found.push(("systems_uri", path));
    Some(found)
}

fn option<'a>(bmc: &'a Bmc, name: &str) -> Option<&'a str> {
    bmc.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Returns whether both BMCs are one: they have the same address, and the same system behind it.
pub(super) fn is_same(one: &Bmc, other: &Bmc) -> bool {
    let address = |bmc: &Bmc| {
        let port = option(bmc, "ipport").and_then(|port| port.parse().ok()).unwrap_or(443);
        Address::parse(option(bmc, "ip").unwrap_or_default(), port).ok().map(|address| address.full())
    };
    let system = |bmc: &Bmc| {
        ["systems_uri", "plug", "system_uuid"]
            .map(|name| option(bmc, name).map(|value| value.trim_end_matches('/').to_owned()))
    };
    address(one) == address(other) && system(one) == system(other)
}
