//! The command line of `fencing-agent`.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use super::config::FILE;
use super::shell::place::{RUN_DIR, STATE_DIR};

/// Observes which nodes are reachable, and lets the watchdog reset a node without a quorum
///
/// Each agent challenges each other one. While a node hears from more than half of the listed members, its agent feeds its watchdog.
/// Otherwise the watchdog resets the node. Local programs read the list of reachable members, and its changes, from
/// /run/fencing-agent.sock. The agent needs neither Pacemaker nor an API server.
#[derive(Parser)]
#[command(name = "fencing-agent", version, after_help = HELP)]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub(super) command: Command,
    /// File with the configuration
    #[arg(long, global = true, value_name = "FILE", default_value = FILE)]
    pub(super) config: PathBuf,
    /// Directory of the files of a running agent
    #[arg(long, global = true, hide = true, value_name = "DIR", default_value = RUN_DIR)]
    pub(super) run_dir: PathBuf,
    /// Directory of the files that outlive a boot
    #[arg(long, global = true, hide = true, value_name = "DIR", default_value = STATE_DIR)]
    pub(super) state_dir: PathBuf,
}

const HELP: &str = "\
Files:
  /etc/tandem/fencing-agent.toml   the configuration
  /etc/tandem/fencing-agent.key    the key of all members
  /run/fencing-agent/status.json   the state
  /run/fencing-agent/disable       disarms the watchdog while it exists
  /var/lib/tandem/fencing-agent    files that outlive a boot
  /usr/share/tandem/fencing.proto  the interface for local programs";

#[derive(Subcommand)]
pub(super) enum Command {
    Run(Run),
    Check(Check),
    Status(Status),
    Metrics(Metrics),
    Nodes(Nodes),
    Events(Events),
    Maintenance(Maintenance),
    Keygen(Keygen),
    Example(Example),
}

/// Runs the agent until SIGTERM
#[derive(Args)]
#[command(after_help = RUN_HELP)]
pub(super) struct Run {}

const RUN_HELP: &str = "\
If the configuration lacks the keys node and group, the agent takes NODE_NAME and NODE_GROUP from the environment. On
SIGTERM it leaves the group in order, disarms the watchdog and ends. While the quorum is lost, the watchdog stays armed.";

/// Checks the configuration, and prints which outage resets this node
///
/// The command opens no device and sends nothing.
#[derive(Args)]
pub(super) struct Check {}

/// Shows whether this node's watchdog is fed, and the state of each member
#[derive(Args)]
#[command(after_help = STATUS_HELP)]
pub(super) struct Status {
    /// Prints one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

const STATUS_HELP: &str = "\
With --json:
  format          1
  node, group     this node's name, and the name of its group
  pid             process id of the agent
  fed, armed      whether the watchdog is fed, and whether it is armed
  unfed           whether the watchdog is not fed although it should be; then the command ends with 3
  deadline        seconds until the feeding ends without another answer
  why             why the watchdog is not fed, or for how long the agent has written nothing
  disarmed        why the watchdog is not armed
  device, identity, timeout   path and name of the device, and its time-out in seconds
  on_quorum_loss  what happens when the quorum is lost, as configured
  quorum, reachable   how many members are a quorum, and how many are reachable
  window          for how many seconds an answer of a member counts
  score           health of this agent, from 0 (healthy) to 7
  suspicions, joins, leaves   how often each happened since the start
  datagrams       each with direction, network and count
  dropped         number of dropped datagrams by reason
  api_up          whether the API server answered; null if it is not asked
  watch_age       seconds since the watch of this node's Node showed anything
  members         each with name, state (alive, suspect, lost, left, unseen), contacts (for each network the seconds since
                  the newest answer was asked for) and round_trip (in milliseconds)";

/// Prints the metrics of the agent for Prometheus
#[derive(Args)]
pub(super) struct Metrics {}

/// Lists the members that are reachable
///
/// The command asks the running agent as other local programs do.
#[derive(Args)]
pub(super) struct Nodes {
    /// Prints one JSON array instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// Prints each member that leaves or joins, until the agent ends
#[derive(Args)]
pub(super) struct Events {
    /// Prints one JSON object in each line instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// Disarms the watchdog of this node, or lets the agent arm it again
///
/// The node stays a member. While its quorum is lost, the watchdog stays armed.
#[derive(Args)]
pub(super) struct Maintenance {
    /// Whether maintenance is on or off; a reboot ends it
    #[arg(value_enum)]
    pub(super) switch: Switch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Switch {
    /// Disarms the watchdog within a second
    On,
    /// Lets the agent arm the watchdog once a quorum answers
    Off,
}

/// Prints a new key for all members
#[derive(Args)]
pub(super) struct Keygen {}

/// Prints an example of the configuration, with every key explained
#[derive(Args)]
pub(super) struct Example {}

/// The exit codes of `fencing-agent` and their meanings, for the man pages.
pub(crate) const EXIT_CODES: [(u8, &str); 4] = [
    (0, "done; of status: the watchdog is fed, or need not be"),
    (1, "refused; a sentence has the reason and what to type instead"),
    (2, "the arguments are wrong, and nothing was done"),
    (3, "of status: the node is not fed and should be"),
];

/// Returns the command tree of `fencing-agent`, from which man pages and completions are generated.
pub(crate) fn command_line() -> clap::Command {
    CommandLine::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_sound() {
        command_line().debug_assert();
        let line = CommandLine::try_parse_from(["fencing-agent", "maintenance", "on"]).ok().unwrap();
        assert!(matches!(line.command, Command::Maintenance(Maintenance { switch: Switch::On })));
        assert_eq!((line.run_dir, line.config), (RUN_DIR.into(), FILE.into()));
    }
}
