//! The command line of `watchdog-mux`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};

use super::paths::RUN_DIR;
use crate::base::duration;

/// Owns one watchdog device and serves many programs
///
/// Each program connects to /run/watchdog-mux.sock and sends a byte at least every --client-timeout. A program that sends V as its last
/// byte before it closes leaves in order. One that closes without it, or sends nothing for that time, ends the feeding of the device
/// for good, and the machine resets. The protocol is that of Proxmox's multiplexer.
#[derive(Parser)]
#[command(name = "watchdog-mux", version, after_help = HELP)]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub(super) command: Command,
    /// Where the socket, the marker and the state are
    #[arg(long, global = true, hide = true, value_name = "DIR", default_value = RUN_DIR)]
    pub(super) run_dir: PathBuf,
}

const HELP: &str = "\
Files: /run/watchdog-mux.sock, the socket; /run/watchdog-mux.active, a directory that is there while a client is, or after one that \
has not left in order; /run/watchdog-mux.json, the state.";

#[derive(Subcommand)]
pub(super) enum Command {
    Run(Run),
    Status(Status),
    Metrics(Metrics),
}

/// Opens the device, feeds it each second and serves clients
#[derive(Args)]
#[command(after_help = RUN_HELP)]
pub(super) struct Run {
    /// The watchdog device; a FIFO replaces one in a test
    #[arg(long, value_name = "DEVICE", default_value = "/dev/watchdog")]
    pub(super) device: PathBuf,
    /// How long after its last feeding the device resets the machine
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(super) timeout: Duration,
    /// How long a client may be silent
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(super) client_timeout: Duration,
    /// Loads this kernel module first, as WATCHDOG_MODULE in the environment does
    #[arg(long, value_name = "NAME")]
    pub(super) module: Option<String>,
}

const RUN_HELP: &str = "\
SIGTERM without clients disarms the device and ends. With clients it names them in the log and feeds until they have left.";

/// Shows whether the device is fed, and the clients
#[derive(Args)]
#[command(after_help = STATUS_HELP)]
pub(super) struct Status {
    /// Prints one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

const STATUS_HELP: &str = "\
Keys of the JSON object: format (1), fed, why (not fed), device, identity, timeout and client_timeout in seconds, magic_close (whether \
the device can be disarmed; null where that is not known), ending (whether the end was asked for and clients are waited for), pid, and \
clients, each with name, pid, uid, connected and silent, in seconds.";

/// Prints metrics for Prometheus
#[derive(Args)]
pub(super) struct Metrics {}

/// The meanings of the exit codes, for the man pages.
pub(crate) const EXIT_CODES: [(u8, &str); 4] = [
    (0, "done; of status: the device is fed"),
    (1, "refused: one sentence says why, and what to type instead"),
    (2, "the arguments make no sense; nothing was done"),
    (3, "of status: the device is not fed and should be"),
];

/// Returns the definition of the command line. Man pages and completions are generated from it.
pub(crate) fn command_line() -> clap::Command {
    CommandLine::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_sound_and_its_defaults_are_those_of_the_page() {
        command_line().debug_assert();
        let line = CommandLine::try_parse_from(["watchdog-mux", "run"]).ok().unwrap();
        let Command::Run(run) = line.command else { unreachable!() };
        assert_eq!((run.timeout, run.client_timeout), (Duration::from_secs(10), Duration::from_secs(60)));
        assert_eq!((run.device, run.module, line.run_dir), ("/dev/watchdog".into(), None, "/run".into()));
    }
}
