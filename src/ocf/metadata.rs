//! An agent's meta-data, written from the same tables that parse its parameters.

use crate::xml::Writer;

/// One parameter of an agent.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// `string`, `integer` or `boolean`.
    pub kind: &'static str,
    pub required: bool,
    pub default: Option<&'static str>,
    pub short: &'static str,
    pub long: &'static str,
}

/// One action of an agent, with what Pacemaker is to use where nobody sets anything else.
#[derive(Debug)]
pub struct Action {
    pub name: &'static str,
    pub timeout_s: u32,
    pub interval_s: Option<u32>,
    pub role: Option<&'static str>,
}

/// An agent as a whole.
#[derive(Debug)]
pub struct Agent {
    pub name: &'static str,
    pub short: &'static str,
    pub long: &'static str,
    pub parameters: &'static [Parameter],
    pub actions: &'static [Action],
}

/// The XML that `meta-data` prints.
pub fn xml(agent: &Agent) -> String {
    let mut xml = Writer::document("<!DOCTYPE resource-agent SYSTEM \"ra-api-1.dtd\">");
    xml.open("resource-agent", &[("name", agent.name), ("version", env!("CARGO_PKG_VERSION"))]);
    xml.text("version", &[], "1.0");
    xml.text("longdesc", &[("lang", "en")], agent.long);
    xml.text("shortdesc", &[("lang", "en")], agent.short);
    xml.open("parameters", &[]);
    for parameter in agent.parameters {
        write_parameter(&mut xml, parameter);
    }
    xml.close().open("actions", &[]);
    for action in agent.actions {
        write_action(&mut xml, action);
    }
    xml.finish()
}

fn write_parameter(xml: &mut Writer, parameter: &Parameter) {
    let required = if parameter.required { "1" } else { "0" };
    xml.open("parameter", &[("name", parameter.name), ("required", required), ("unique", "0")]);
    xml.text("longdesc", &[("lang", "en")], parameter.long);
    xml.text("shortdesc", &[("lang", "en")], parameter.short);
    let mut content = vec![("type", parameter.kind)];
    content.extend(parameter.default.map(|default| ("default", default)));
    xml.empty("content", &content).close();
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
