//! A resource agent's man page, generated from the same tables as its meta-data.

use roff::{bold, roman};

use super::metadata::{Action, Agent};
use crate::adapters::options::manpage::Page;
use crate::adapters::options::standard::Standard;

/// Returns the man page `ocf_PROVIDER_NAME(7)` of a resource agent.
pub fn page(agent: &Agent, provider: &str) -> String {
    let mut page = Page::new(&format!("ocf_{provider}_{}", agent.name), "7", "OCF resource agents", agent.short);
    page.section("SYNOPSIS").lines(&synopsis(agent, provider));
    page.section("DESCRIPTION").text([roman(agent.long)]);
    page.section("PARAMETERS").options(Standard::ResourceAgent, agent.parameters);
    page.section("ACTIONS").text([roman("Times are those that Pacemaker uses unless the resource sets others.")]);
    for action in agent.actions {
        write_action(&mut page, action);
    }
    page.see_also(&[("tandem", 8), ("fence_redfish_rs", 8), ("pcs", 8)]).finish()
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

fn write_action(page: &mut Page, action: &Action) {
    let role = action.role.map(|role| format!(", role {role}")).unwrap_or_default();
    let interval = action.interval_s.map(|seconds| format!(", every {seconds} s")).unwrap_or_default();
    page.entry([bold(action.name), roman(format!(" (at most {} s{interval}{role})", action.timeout_s))]);
}
