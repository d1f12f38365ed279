//! The command line of `fencing-agent`.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use super::config::FILE;
use super::shell::place::{RUN_DIR, STATE_DIR};

/// Knows which nodes are reachable, and has a node without a quorum reset itself
///
/// Each agent challenges each other. A node that hears from more than half of the listed members feeds its watchdog; one that does
/// not is reset. Local programs read the list of reachable members, and its changes, from /run/fencing-agent.sock. It needs neither
/// Pacemaker nor an API server.
#[derive(Parser)]
#[command(name = "fencing-agent", version, after_help = HELP)]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub(super) command: Command,
    /// The configuration
    #[arg(long, global = true, value_name = "FILE", default_value = FILE)]
    pub(super) config: PathBuf,
    /// Where the files of a running agent are
    #[arg(long, global = true, hide = true, value_name = "DIR", default_value = RUN_DIR)]
    pub(super) run_dir: PathBuf,
    /// What outlives a boot
    #[arg(long, global = true, hide = true, value_name = "DIR", default_value = STATE_DIR)]
    pub(super) state_dir: PathBuf,
}

const HELP: &str = "\
Files: /etc/tandem/fencing-agent.toml, the configuration; /etc/tandem/fencing-agent.key, the key of all members; \
/run/fencing-agent/status.json, the state; /run/fencing-agent/disable, which disarms the watchdog while it is there; \
/var/lib/tandem/fencing-agent, what is kept over a boot; /usr/share/tandem/fencing.proto, the interface for local programs.";

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

/// Runs the agent
#[derive(Args)]
#[command(after_help = RUN_HELP)]
pub(super) struct Run {}

const RUN_HELP: &str = "\
NODE_NAME and NODE_GROUP in the environment replace the keys node and group of the configuration where these are missing. SIGTERM \
leaves the group in order, disarms the watchdog and ends; while the quorum is lost the watchdog stays armed.";

/// Checks the configuration, and shows which outage resets this node
///
/// It opens no device and sends nothing.
#[derive(Args)]
pub(super) struct Check {}

/// Shows whether this node is fed, and the members
#[derive(Args)]
#[command(after_help = STATUS_HELP)]
pub(super) struct Status {
    /// Prints one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

const STATUS_HELP: &str = "\
Keys of the JSON object: format (1), node, group, pid, fed, armed, deadline (seconds until feeding ends without another answer), why \
(not fed), disarmed (why), device, identity, timeout in seconds, on_quorum_loss, quorum, reachable, window in seconds, score (health, \
0 to 7), suspicions, joins and leaves (since the start), datagrams (each with direction, network and count), dropped (by reason), \
api_up (null where it is not asked), watch_age (seconds since the watch of the own Node showed anything), and members, each with name, state (alive, suspect, lost, left, unseen), contacts (seconds since \
the newest answer was asked for, by network) and round_trip in milliseconds.";

/// Prints metrics for Prometheus
#[derive(Args)]
pub(super) struct Metrics {}

/// Lists the members that are reachable
///
/// It asks the running agent as other local programs do.
#[derive(Args)]
pub(super) struct Nodes {
    /// Prints one JSON array instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// Prints each member that leaves or joins, until the agent ends
#[derive(Args)]
pub(super) struct Events {
    /// Prints one JSON object a line instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// Disarms the watchdog of this node, or has it armed again
///
/// The node stays a member. Nothing disarms it while its quorum is lost.
#[derive(Args)]
pub(super) struct Maintenance {
    #[arg(value_enum)]
    pub(super) switch: Switch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Switch {
    /// Disarms the watchdog within a second
    On,
    /// Has it armed once a quorum answers
    Off,
}

/// Prints a new key for all members
#[derive(Args)]
pub(super) struct Keygen {}

/// Prints a configuration with all keys
#[derive(Args)]
pub(super) struct Example {}

/// The exit codes of `fencing-agent` and their meanings, for the man pages.
pub(crate) const EXIT_CODES: [(u8, &str); 4] = [
    (0, "done; of status: the node is fed, or need not be"),
    (1, "refused: one sentence says why, and what to type instead"),
    (2, "the arguments make no sense; nothing was done"),
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
