//! `tandem fencing check`: checks everything that fencing needs, without touching any power.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use crate::adapters::pacemaker::seen::{Configuration, FenceDevice};
use crate::admin::exit::Exit;
use crate::admin::node::ResourceArgument;
use crate::admin::report::{Form, Report};
use crate::base::Fact;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::fencing::{ask, seen};
use crate::operate::health::fencing::{self, Asked, Checked, Level};
use crate::operate::health::words::rfc3339;
use crate::operate::node::no_cluster;

const HELP: &str = "\
The command asks each BMC from this node, as the fence agent does, with the options in the CIB. The password goes to the
BMC and is shown nowhere. It also uses what the collector of the other node has published. No check can prove that a reset
works. The evidence is the list of reset types of the BMC, the role of the account, and the last test of fencing.

It opens two sessions on each BMC, reads the list of sessions, and deletes both. That proves whether the BMC shows one
node's session to the other: with such a 'flag' on both BMCs, two nodes that fence each other can race without a delay.

On OpenShift it asks the API for what else resets these nodes, or may: node health checks and machine health checks with a
selector that matches a node, remediations that are under way, and BareMetalHosts that are not detached.

Exit codes:
  0  no finding, or only notices
  3  there are warnings
  4  a node may not be fenced now
  1  not known

With --json:
  at        when the BMCs were asked, in RFC 3339
  here      the node that asked
  level     of the worst finding: ok, notice, warning, unknown (something could not be asked) or failure (it is critical)
  nodes     for each node its level and a sentence
  devices   for each fence device its level and a sentence
  flags     for each fence device what its BMC shows the fence agent of one node about that of the other
  delays    for the node that wins a split how long its fencing waits, and the least value that the measured time to Off
            allows
  findings  the worst first, each with id (it never changes), severity (critical, warning, notice), node and device (or
            null), text (a sentence) and command (what to type, or null). A finding that 'tandem status' has, too, has the
            same id, severity and text there.";

/// Checks whether each node could be fenced now, and changes no power
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// Checks only this fence device, or the one that fences this node; without it, all
    #[arg(value_name = "DEVICE")]
    device: Option<String>,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem fencing check`.
#[derive(Serialize)]
pub(super) struct Answered {
    at: String,
    here: String,
    #[serde(flatten)]
    checked: Checked,
}

impl Report for Answered {
    fn text(&self) -> String {
        let Checked { nodes, devices, flags, delays, findings, .. } = &self.checked;
        let mut text = String::new();
        for (kind, standings) in [("node", nodes), ("device", devices)] {
            for (name, standing) in standings {
                let _ = writeln!(text, "{kind:<7} {name:<16} {:<8} {}", word(standing.level), standing.text);
            }
        }
        for (device, flag) in flags {
            let _ = writeln!(text, "{:<7} {device:<16} {flag}", "flag");
        }
        for (node, delay) in delays {
            let _ = writeln!(text, "{:<7} {node:<16} {delay}", "delay");
        }
        if !findings.is_empty() && !text.is_empty() {
            text.push('\n');
        }
        for finding in findings {
            let _ = writeln!(text, "{}: {}", word(Level::of(finding)), finding.text);
            if let Some(command) = &finding.command {
                let _ = writeln!(text, "    {command}");
            }
        }
        text.trim_end().to_owned()
    }

    fn exit(&self) -> Exit {
        match self.checked.level {
            Level::Ok | Level::Notice => Exit::Done,
            Level::Warning => Exit::Degraded,
            Level::Unknown => Exit::Failed,
            Level::Failure => Exit::Worst,
        }
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Notice => "notice",
        Level::Warning => "warning",
        Level::Unknown => "unknown",
        Level::Failure => "failure",
    }
}

/// The command that shows the operator how to form a cluster.
const EXAMPLE: &str = "tandem setup --example";

pub(super) fn run(arguments: &Arguments) -> Result<Answered, Failure> {
    let cluster = seen::look(arguments.resource.id());
    Ok(answer(&cluster, look(&cluster, arguments.device.as_deref(), &arguments.resource)?))
}

fn answer(cluster: &Cluster, checked: Checked) -> Answered {
    Answered { at: rfc3339(cluster.at), here: cluster.here.clone(), checked }
}

/// Queries the BMCs and checks fencing. `device` limits both to one fence device, named by its id or by the node that it fences.
pub(super) fn look(cluster: &Cluster, device: Option<&str>, resource: &ResourceArgument) -> Result<Checked, Failure> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Failure("only root may read the options of fence devices: type it with sudo".to_owned()));
    }
    if cluster.configuration.is_absent() && cluster.pacemaker.is_absent() {
        let Failure(why) = no_cluster();
        return Ok(fencing::unknown(why, EXAMPLE));
    }
    let Fact::Known(configuration) = &cluster.configuration else {
        return Ok(fencing::check(cluster, &Asked::default(), device));
    };
    let device = device.map(|name| device_of(configuration, name)).transpose()?;
    let asked = ask::all(cluster, configuration, device, resource.id());
    Ok(fencing::check(cluster, &asked, device))
}

/// Returns the id of the fence device called `name`. If there is none, returns the id of the only device that fences the node called
/// `name`.
fn device_of<'a>(configuration: &'a Configuration, name: &str) -> Result<&'a str, Failure> {
    let devices = &configuration.fence_devices;
    let ids = |wanted: &dyn Fn(&FenceDevice) -> bool| -> Vec<&'a str> {
        devices.iter().filter(|device| wanted(device)).map(|device| device.resource.id.as_str()).collect()
    };
    if let [only] = ids(&|device| device.resource.id == name).as_slice() {
        return Ok(only);
    }
    match ids(&|device| device.targets.iter().any(|target| target == name)).as_slice() {
        [only] => Ok(only),
        [] => {
            let all = ids(&|_| true).join(", ");
            Err(Failure(format!("no fence device is called '{name}'; there are: {all}")))
        }
        several => Err(Failure(format!("{name} has several fence devices: name one of {}", several.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;
    use crate::operate::health::fencing::tests::{asked, healthy};

    #[test]
    fn a_device_is_named_by_its_id_or_by_its_node() {
        let mut cluster = healthy();
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!("no CIB") };
        let named = |configuration: &Configuration, name| {
            device_of(configuration, name).map(str::to_owned).map_err(|Failure(why)| why)
        };
        for name in ["fence-node2", "node2"] {
            assert_eq!(named(configuration, name).as_deref(), Ok("fence-node2"));
        }
        let why = named(configuration, "node9").unwrap_err();
        assert!(why.contains("'node9'; there are: fence-node1, fence-node2"), "{why}");
        let mut second = configuration.fence_devices[1].clone();
        second.resource.id = "fence-again".to_owned();
        configuration.fence_devices.push(second);
        let why = named(configuration, "node2").unwrap_err();
        assert!(why.ends_with("name one of fence-node2, fence-again"), "{why}");
    }

    #[test]
    fn a_check_is_shown_in_both_forms_and_its_worst_finding_is_its_exit_code() {
        let (mut cluster, mut asked) = (healthy(), asked());
        let well = answer(&cluster, fencing::check(&cluster, &asked, None));
        assert_eq!((well.exit(), well.checked.findings.len()), (Exit::Done, 0));
        asked.answers[1].note.failure = Some("unable to log in".to_owned());
        asked.answers[0].note.clock_ahead = Some(-7_200);
        if let Fact::Known(pacemaker) = &mut cluster.pacemaker {
            pacemaker.nodes[1].online = false;
        }
        let report = answer(&cluster, fencing::check(&cluster, &asked, None));
        assert_eq!(report.exit(), Exit::Worst);
        golden::compare("fencing-check", &report);
    }

    #[test]
    fn what_could_not_be_asked_is_no_good_answer() {
        let cluster = Cluster { at: 1, ..Cluster::default() };
        let report = answer(&cluster, fencing::check(&cluster, &Asked::default(), None));
        assert_eq!(report.exit(), Exit::Failed);
        assert!(report.text().contains("cibadmin --query"), "{}", report.text());
    }
}
