//! An agent's man page, from the same tables as its meta-data.

use std::fmt::Write as _;

use super::metadata::{Action, Agent, Parameter};
use crate::roff::escaped;

/// The page `ocf_PROVIDER_NAME(7)`.
pub fn page(agent: &Agent, provider: &str) -> String {
    let name = agent.name;
    let title = format!("ocf_{provider}_{name}");
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(".TH {} 7 \"\" \"tandem {version}\" \"OCF resource agents\"\n", title.to_uppercase());
    let _ = writeln!(page, ".SH NAME\n{} \\- {}", escaped(&title), escaped(agent.short));
    let _ = writeln!(page, ".SH SYNOPSIS\n.nf\n{}\n.fi", escaped(&synopsis(agent, provider)));
    let _ = writeln!(page, ".SH DESCRIPTION\n{}", escaped(agent.long));
    page.push_str(".SH PARAMETERS\n");
    for parameter in agent.parameters {
        write_parameter(&mut page, parameter);
    }
    page.push_str(".SH ACTIONS\nTimes are those that Pacemaker uses where nobody sets others.\n");
    for action in agent.actions {
        write_action(&mut page, action);
    }
    page.push_str(".SH SEE ALSO\n.BR tandem (8),\n.BR fence_redfish_rs (8),\n.BR pcs (8)\n");
    page
}

fn synopsis(agent: &Agent, provider: &str) -> String {
    let required = agent.parameters.iter().filter(|parameter| parameter.required);
    let values: Vec<String> = required.map(|parameter| format!("    {}=VALUE", parameter.name)).collect();
    format!(
        "pcs resource create ID ocf:{provider}:{} \\\n{} \\\n    clone notify=true",
        agent.name,
        values.join(" \\\n")
    )
}

fn write_parameter(page: &mut String, parameter: &Parameter) {
    let remark = match (parameter.required, parameter.default) {
        (true, _) => format!("{}, required", parameter.kind),
        (false, Some(default)) => format!("{}, default {default}", parameter.kind),
        (false, None) => parameter.kind.to_owned(),
    };
    let (name, remark, long) = (escaped(parameter.name), escaped(&remark), escaped(parameter.long));
    let _ = write!(page, ".TP\n.BR {name} \" ({remark})\"\n{long}\n");
}

fn write_action(page: &mut String, action: &Action) {
    let role = action.role.map(|role| format!(", role {role}")).unwrap_or_default();
    let interval = action.interval_s.map(|seconds| format!(", every {seconds} s")).unwrap_or_default();
    let name = escaped(action.name);
    let _ = write!(page, ".TP\n.BR {name} \" (at most {} s{interval}{role})\"\n", action.timeout_s);
}
