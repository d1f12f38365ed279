//! An agent's meta-data, generated from the same tables that parse its parameters.

use crate::adapters::options::OptionRow;
use crate::adapters::options::standard::Standard;
use crate::adapters::xml::Writer;

/// One action of an agent, with the defaults for Pacemaker.
#[derive(Debug)]
pub struct Action {
    pub name: &'static str,
    pub timeout_s: u32,
    pub interval_s: Option<u32>,
    pub role: Option<&'static str>,
}

impl Action {
    /// Creates an action that is not repeated.
    pub const fn once(name: &'static str, timeout_s: u32) -> Self {
        Self { name, timeout_s, interval_s: None, role: None }
    }

    /// Creates a monitor with its default interval.
    pub const fn monitor(timeout_s: u32, interval_s: u32, role: Option<&'static str>) -> Self {
        Self { name: "monitor", timeout_s, interval_s: Some(interval_s), role }
    }
}

/// An agent with its descriptions, parameters and actions.
#[derive(Debug)]
pub struct Agent {
    pub name: &'static str,
    pub short: &'static str,
    pub long: &'static str,
    pub parameters: &'static [OptionRow],
    pub actions: &'static [Action],
}

/// The version of the API. From 1.1 on Pacemaker supports `reload-agent` and reloadable parameters.
const API_VERSION: &str = "1.1";

/// The DTD with which `ocf-tester` checks an agent of API 1.1. Below it is its path below `/usr/share`.
pub const DTD: &str = include_str!("../../../metadata/ra-api-1.1.dtd");
pub const DTD_PLACE: &str = "tandem/ra-api-1.1.dtd";

/// A DOCTYPE with only a name. Declarations in the document make Pacemaker 3.0.0 log "fatal assertions" each time it reads them.
const DOCTYPE: &str = "<!DOCTYPE resource-agent SYSTEM \"/usr/share/tandem/ra-api-1.1.dtd\">";

/// Returns the XML that `meta-data` prints.
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
