//! `tandem power`: asks a node's BMCs whether it is on, and switches it on. Only Pacemaker switches a node off.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::Exit;
use super::node::ResourceArgument;
use super::progress::Progress;
use super::report::{Form, Report, show};
use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::operate::cluster::{self, Cluster, Power};
use crate::operate::failure::Failure;
use crate::operate::fencing::power::{self, Said, Switched};
use crate::operate::fencing::with_node;
use crate::operate::node::must_be_root;
use crate::operate::talk::Progress as _;

const STATUS_HELP: &str = "\
The command asks the BMC of each fence device of NODE from this node, with the options in the CIB. It changes no
power, and needs no quorum. The node counts as on if one of its BMCs reports On for the system or its chassis.

Exit codes:
  0  on
  3  off
  1  not known

With --json:
  node     the node
  power    on, off or unknown
  devices  for each fence device of the node: device (its id), address, power, and why (the reason if power is unknown,
           else null)";

const ON_HELP: &str = "\
The command does what the fence agent does for the action 'on'. It asks the BMC, requests a reset that switches the
machine on if it is off, and waits until the BMC reports On. It needs no quorum, and switches nothing off: Pacemaker
does that ('pcs stonith fence NODE').

Exit codes:
  0  each fence device proves that the node is on
  3  some of them do
  1  none of them does

With --json:
  node     the node
  on       whether a fence device proves that it is on
  devices  for each fence device of the node: device (its id), was_on (whether it was on before; null if it is not
           proven to be on) and why (the reason then, else null)";

/// Asks a node's BMC whether the node is on, or has it switch the node on
#[derive(Subcommand)]
pub(super) enum Command {
    /// Asks the BMCs of a node whether it is on, and changes no power
    #[command(after_help = STATUS_HELP)]
    Status(Target),
    /// Switches a node on through its BMC, and proves that it is on
    #[command(after_help = ON_HELP)]
    On(Target),
    #[command(hide = true)]
    Off(OffArguments),
}

/// The node that is asked about.
#[derive(Args)]
pub(super) struct Target {
    /// Name of the node in the cluster
    node: String,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    form: Form,
}

/// Refuses, and prints Pacemaker's command
#[derive(Args)]
pub(super) struct OffArguments {
    node: String,
}

impl Command {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Status(arguments) => show(&status(arguments)?, arguments.form),
            Self::On(arguments) => show(&on(arguments)?, arguments.form),
            Self::Off(arguments) => Err(off(&arguments.node)),
        }
    }
}

/// The power of a node as the BMC of one fence device reports it.
#[derive(Serialize)]
struct Asked {
    device: String,
    address: String,
    power: &'static str,
    why: Option<String>,
}

/// The report of `tandem power status`.
#[derive(Serialize)]
struct Shown {
    node: String,
    power: &'static str,
    devices: Vec<Asked>,
}

fn word(power: &Power) -> &'static str {
    match power {
        Power::On => "on",
        Power::Off => "off",
        Power::Unknown(_) => "unknown",
    }
}

impl Shown {
    fn of(node: &str, said: Vec<Said>) -> Self {
        let power = word(&power::together(said.iter().map(|one| one.power.clone())));
        let asked = |one: Said| Asked {
            device: one.device,
            address: one.address,
            power: word(&one.power),
            why: if let Power::Unknown(why) = one.power { Some(why) } else { None },
        };
        Self { node: node.to_owned(), power, devices: said.into_iter().map(asked).collect() }
    }
}

impl Report for Shown {
    fn text(&self) -> String {
        let node = &self.node;
        let mut text = match self.power {
            "on" => format!("{node}'s BMC says: On"),
            "off" => format!("{node}'s BMC says: Off"),
            _ => format!("{node}'s BMC does not say whether {node} is on"),
        };
        for Asked { device, address, power, why } in &self.devices {
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            let _ = write!(text, "\n  {device} ({address}): {power}{why}");
        }
        match self.power {
            "off" => text + &format!("\nnow 'tandem power on {node}'"),
            "on" => text,
            _ => text + "\nnow 'tandem fencing check'",
        }
    }

    fn exit(&self) -> Exit {
        match self.power {
            "on" => Exit::Done,
            "off" => Exit::Degraded,
            _ => Exit::Failed,
        }
    }
}

fn status(arguments: &Target) -> Result<Shown, Failure> {
    let cluster = look(&arguments.resource)?;
    let configuration = with_node(&cluster, &arguments.node)?;
    Ok(Shown::of(&arguments.node, power::of_each(&Programs::default(), configuration, &arguments.node)?))
}

/// The result of switching a node on through one fence device.
#[derive(Serialize)]
struct Proof {
    device: String,
    was_on: Option<bool>,
    why: Option<String>,
}

/// The report of `tandem power on`.
#[derive(Serialize)]
struct SwitchedOn {
    node: String,
    on: bool,
    devices: Vec<Proof>,
}

impl SwitchedOn {
    fn of(node: &str, switched: Vec<Switched>) -> Self {
        let proof = |one: Switched| match one.was_on {
            Ok(was_on) => Proof { device: one.device, was_on: Some(was_on), why: None },
            Err(why) => Proof { device: one.device, was_on: None, why: Some(why) },
        };
        let devices: Vec<Proof> = switched.into_iter().map(proof).collect();
        Self { node: node.to_owned(), on: devices.iter().any(|device| device.was_on.is_some()), devices }
    }
}

impl Report for SwitchedOn {
    fn text(&self) -> String {
        let Self { node, on, devices } = self;
        let were_all_on = devices.iter().filter_map(|device| device.was_on).all(|was_on| was_on);
        let mut text = match (on, were_all_on) {
            (false, _) => format!("{node} is not proven to be on"),
            (true, true) => format!("{node} was on already, as its BMC says"),
            (true, false) => format!("{node} is on, as its BMC says, and boots now"),
        };
        for Proof { device, was_on, why } in devices {
            let said = match (was_on, why) {
                (Some(true), _) => "was on already",
                (Some(false), _) => "switched it on, and proves that it is on",
                (None, why) => why.as_deref().unwrap_or_default(),
            };
            let _ = write!(text, "\n  {device}: {said}");
        }
        text + match (on, were_all_on) {
            (false, _) => "\nnow 'tandem fencing check'",
            (true, true) => "\nnow 'tandem status'",
            (true, false) => "\nnow 'tandem status --wait-for redundant'",
        }
    }

    fn exit(&self) -> Exit {
        let is_proven_by_all = self.devices.iter().all(|device| device.was_on.is_some());
        match self.on {
            true if is_proven_by_all => Exit::Done,
            true => Exit::Degraded,
            false => Exit::Failed,
        }
    }
}

fn on(arguments: &Target) -> Result<SwitchedOn, Failure> {
    let node = arguments.node.as_str();
    let cluster = look(&arguments.resource)?;
    let configuration = with_node(&cluster, node)?;
    may_be_switched_on(&cluster, node)?;
    let progress = Progress::new();
    progress.say(&format!("asks the BMC of {node} to switch it on, and waits for the proof, which may take a minute"));
    let switched = power::switch_on(&Programs::default(), configuration, node);
    progress.end();
    Ok(SwitchedOn::of(node, switched?))
}

/// Refuses to switch a node on while Pacemaker fences it. The fence agent waits until the BMC reports Off. A node that is switched on
/// meanwhile would never be reported as Off.
fn may_be_switched_on(cluster: &Cluster, node: &str) -> Result<(), Failure> {
    let fencings = cluster.pacemaker.known().map(|known| known.fencing.as_slice()).unwrap_or_default();
    let last = fencings.iter().find(|fencing| fencing.target == node);
    if last.is_some_and(|last| last.status == "pending") {
        return Err(Failure(format!(
            "{node} is being fenced, and a machine that is switched on meanwhile is not proven off: look at 'tandem status' until that is over, \
             then type this again"
        )));
    }
    Ok(())
}

fn off(node: &str) -> Failure {
    Failure(format!("switching off is fencing, which is Pacemaker's: type 'pcs stonith fence {node}'"))
}

/// Observes the cluster, even if it has no quorum. Fails unless this process runs as root.
fn look(resource: &ResourceArgument) -> Result<Cluster, Failure> {
    must_be_root()?;
    Ok(cluster::look(&Programs::default(), resource.id(), &Limits::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;
    use crate::operate::health::samples;

    fn said(device: &str, power: Power) -> Said {
        Said { device: device.to_owned(), address: "192.0.2.22".to_owned(), power }
    }

    #[test]
    fn each_answer_is_shown_and_one_on_is_on() {
        let silent = || said("fence-node2-b", Power::Unknown("connection refused".to_owned()));
        let shown = Shown::of("node2", vec![said("fence-node2", Power::Off), silent()]);
        assert_eq!(shown.exit(), Exit::Degraded);
        golden::compare("power-status", &shown);
        assert_eq!(Shown::of("node2", vec![said("a", Power::Off), said("b", Power::On)]).exit(), Exit::Done);
        assert_eq!(Shown::of("node2", vec![silent()]).exit(), Exit::Failed);
    }

    #[test]
    fn on_is_what_a_device_has_proven() {
        let switched = |was_on| Switched { device: "fence-node2".to_owned(), was_on };
        let failed = || switched(Err("Timed out waiting to power ON".to_owned()));
        let done = SwitchedOn::of("node2", vec![switched(Ok(false))]);
        assert_eq!(done.exit(), Exit::Done);
        golden::compare("power-on", &done);
        assert_eq!(SwitchedOn::of("node2", vec![switched(Ok(true))]).exit(), Exit::Done);
        assert_eq!(SwitchedOn::of("node2", vec![switched(Ok(false)), failed()]).exit(), Exit::Degraded);
        let in_vain = SwitchedOn::of("node2", vec![failed()]);
        assert_eq!(in_vain.exit(), Exit::Failed);
        assert!(in_vain.text().contains("Timed out"), "{}", in_vain.text());
    }

    #[test]
    fn a_node_that_is_being_fenced_is_not_switched_on_and_nothing_is_switched_off() {
        assert!(may_be_switched_on(&samples::read("peer-off"), "node2").is_ok());
        assert!(may_be_switched_on(&samples::read("booted-alone"), "node2").is_ok(), "it needs no quorum");
        let refused = may_be_switched_on(&samples::read("peer-unclean"), "node2").unwrap_err().0;
        assert!(refused.starts_with("node2 is being fenced"), "{refused}");
        assert!(off("node2").0.ends_with("type 'pcs stonith fence node2'"));
    }
}
