//! `tandem metrics`: prints the cluster's metrics for Prometheus.

use std::path::Path;

use clap::{Args, Subcommand};

use super::{node, say};
use crate::operate::cluster;
use crate::operate::collect::status;
use crate::operate::events::deliver::{self, Places};
use crate::operate::failure::Failure;
use crate::operate::fencing::record::tests_of_this_node;
use crate::operate::health::{self, conditions};
use crate::operate::members::under_way::UnderWay;
use crate::operate::metrics::{self, Disruptions, Extras, disruptions};

const HELP: &str = "\
The format is Prometheus' text format, version 0.0.4. node_exporter reads it from its textfile directory, where 'tandem
collect' writes the same to tandem.prom. What is not known is left out. Alert rules and a dashboard for these metrics are
in /usr/share/tandem. 'tandem metrics rules' prints the rules with links of your own.";

const RULES_HELP: &str = "\
Each alert has a link, runbook_url, to the section of the guide that says what to type. Without --runbook-base it leads
to the file that the package installs on the node. A person with a pager needs a page that a browser can open: URL
replaces that file, and the heading follows it. For example, https://wiki.example.com/tandem/recovery.md makes the link
https://wiki.example.com/tandem/recovery.md#alerts-nodes.

  tandem metrics rules --runbook-base https://wiki.example.com/tandem/recovery.md > /etc/prometheus/rules.d/tandem.rules.yml";

/// The alert rules for Prometheus, as the package installs them.
const RULES: &str = include_str!("../../metadata/prometheus/tandem.rules.yml");
/// The address with which each link to the recovery guide begins in [`RULES`].
const GUIDE: &str = "file:///usr/share/doc/tandem/docs/operate/recovery.md";

/// Prints the cluster's metrics for Prometheus
#[derive(Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    resource: node::ResourceArgument,
}

/// What else there is for Prometheus.
#[derive(Subcommand)]
enum Command {
    Rules(Rules),
}

/// Prints the alert rules for Prometheus
#[derive(Args)]
#[command(after_help = RULES_HELP)]
struct Rules {
    /// Address of docs/operate/recovery.md, or of a page of yours with the same headings, for the links of the alerts; the
    /// default is the file that the package installs
    #[arg(long, value_name = "URL", value_parser = runbook_base)]
    runbook_base: Option<String>,
}

/// Parses the beginning of the links to the recovery guide. A heading can be appended to it, and it needs no quotes in YAML.
fn runbook_base(text: &str) -> Result<String, String> {
    let place = ["https://", "http://", "file:///"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:?=&%+@,()".contains(c);
    match place {
        Some(place) if !place.is_empty() && place.chars().all(is_plain) => Ok(text.to_owned()),
        _ => Err(format!(
            "'{text}' is no address: type one such as https://wiki.example.com/tandem/recovery.md, without #"
        )),
    }
}

/// Returns the alert rules, with links that begin with `base` instead of [`GUIDE`].
fn rules(base: Option<&str>) -> String {
    RULES.replace(GUIDE, base.unwrap_or(GUIDE))
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(Command::Rules(arguments)) = &arguments.command {
        return say(rules(arguments.runbook_base.as_deref()).trim_end());
    }
    let cluster = cluster::ask(arguments.resource.id())?;
    // Only the collector knows since when a change is under way.
    let change = status::read(Path::new(status::PATH)).and_then(|before| before.member_change);
    let extras = Extras {
        member_change: change.and_then(|change| UnderWay::of(&cluster, Some(&change))),
        events: deliver::counts(&Places::default()).unwrap_or_default(),
        fencing_tests: tests_of_this_node(),
        disruptions: Disruptions::read(Path::new(disruptions::PATH)),
    };
    let page = metrics::render(&cluster, &health::assess(&cluster), &conditions::of(&cluster), &extras);
    say(page.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_begins_with_the_base_and_nothing_else_differs() {
        assert_eq!(rules(None), RULES);
        let base = "https://wiki.example.com/tandem/recovery.md";
        let changed = rules(Some(base));
        let links = |text: &str, base: &str| text.matches(&format!("runbook_url: {base}#alerts-")).count();
        assert!(links(&changed, base) > 20, "{changed}");
        assert_eq!(links(&changed, base), RULES.matches("runbook_url:").count());
        assert_eq!(changed.replace(base, GUIDE), RULES);
    }

    #[test]
    fn a_base_is_an_address_that_a_heading_can_follow() {
        for base in ["https://wiki.example.com/x?page=1", "http://10.0.0.1:8080/r", "file:///srv/recovery.md"] {
            assert_eq!(runbook_base(base).as_deref(), Ok(base));
        }
        for base in
            ["", "wiki", "https://", "https://x/y#z", "https://x/a b", "https://x/'", "https://x\n", "javascript:x"]
        {
            assert!(runbook_base(base).is_err(), "{base}");
        }
    }
}
