//! An agent's meta-data, generated from the same tables that parse its parameters.

use crate::adapters::options::OptionRow;
use crate::adapters::options::standard::Standard;
use crate::adapters::xml::Writer;

/// One action of a resource agent, with the time-out and interval that Pacemaker uses by default.
#[derive(Debug)]
pub struct Action {
    pub name: &'static str,
    pub timeout_s: u32,
    pub interval_s: Option<u32>,
    pub role: Option<&'static str>,
}

impl Action {
    /// Creates an action that Pacemaker does not repeat.
    pub const fn once(name: &'static str, timeout_s: u32) -> Self {
        Self { name, timeout_s, interval_s: None, role: None }
    }

    /// Creates a recurring monitor with the interval that Pacemaker uses by default.
    pub const fn monitor(timeout_s: u32, interval_s: u32, role: Option<&'static str>) -> Self {
        Self { name: "monitor", timeout_s, interval_s: Some(interval_s), role }
    }
}

/// The contents of a resource agent's meta-data: its descriptions, parameters and actions.
#[derive(Debug)]
pub struct Agent {
    pub name: &'static str,
    pub short: &'static str,
    pub long: &'static str,
    pub parameters: &'static [OptionRow],
    pub actions: &'static [Action],
}

/// The version of the OCF resource-agent API. From 1.1 on Pacemaker supports `reload-agent` and reloadable parameters.
const API_VERSION: &str = "1.1";

/// The DTD with which `ocf-tester` checks the meta-data of an agent of API 1.1.
pub const DTD: &str = include_str!("../../../metadata/ra-api-1.1.dtd");
/// The path below `/usr/share` at which the package installs the DTD.
pub const DTD_PLACE: &str = "tandem/ra-api-1.1.dtd";

/// The DOCTYPE of the meta-data, which has a name and no declarations. With declarations Pacemaker 3.0.0 would log "fatal
/// assertions" each time it reads the meta-data.
const DOCTYPE: &str = "<!DOCTYPE resource-agent SYSTEM \"/usr/share/tandem/ra-api-1.1.dtd\">";

/// Returns the XML that a resource agent's action `meta-data` prints.
pub fn xml(agent: &Agent) -> String {
    let mut xml = Writer::document(DOCTYPE);
    xml.open("resource-agent", &[("name", agent.name), ("version", env!("CARGO_PKG_VERSION"))]);
    xml.text("version", &[], API_VERSION);
    xml.text("longdesc", &[("lang", "en")], agent.long);
    xml.text("shortdesc", &[("lang", "en")], agent.short);
    xml.open("parameters", &[]);
    for parameter in agent.parameters {
        Standard::ResourceAgent.declare(&mut xml, parameter);
    }
    xml.close().open("actions", &[]);
    for action in agent.actions {
        write_action(&mut xml, action);
    }
    xml.finish()
}

fn write_action(xml: &mut Writer, action: &Action) {
    let timeout = format!("{}s", action.timeout_s);
    let interval = action.interval_s.map(|seconds| format!("{seconds}s"));
    let mut attributes = vec![("name", action.name), ("timeout", timeout.as_str())];
    if let Some(interval) = &interval {
        attributes.push(("interval", interval));
        attributes.push(("depth", "0"));
    }
    attributes.extend(action.role.map(|role| ("role", role)));
    xml.empty("action", &attributes);
}

#[cfg(test)]
mod tests {
    use super::{DOCTYPE, DTD_PLACE};

    #[test]
    fn the_document_declares_nothing_and_names_the_installed_dtd() {
        assert!(!DOCTYPE.contains('['));
        assert!(DOCTYPE.contains(&format!("\"/usr/share/{DTD_PLACE}\"")));
    }
}
