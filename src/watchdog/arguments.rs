//! The command line of `watchdog-mux`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};

use super::paths::RUN_DIR;
use crate::base::duration;

/// Owns one watchdog device, and feeds it for many programs
///
/// Each program connects to /run/watchdog-mux.sock, and sends a byte at least every --client-timeout. A program leaves in order if its
/// last byte before it closes is V. If a program closes without V, or sends nothing for that time, the feeding of the device ends for
/// good, and the device resets the machine. The protocol is that of Proxmox's multiplexer.
#[derive(Parser)]
#[command(name = "watchdog-mux", version, after_help = HELP)]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub(super) command: Command,
    /// Directory of the socket, the marker and the state
    #[arg(long, global = true, hide = true, value_name = "DIR", default_value = RUN_DIR)]
    pub(super) run_dir: PathBuf,
}

const HELP: &str = "\
Files:
  /run/watchdog-mux.sock    the socket
  /run/watchdog-mux.active  a directory that exists while a client is connected, and after a client that has not left in
                            order. watchdog-mux refuses to start if it exists.
  /run/watchdog-mux.json    the state";

#[derive(Subcommand)]
pub(super) enum Command {
    Run(Run),
    Status(Status),
    Metrics(Metrics),
}

/// Opens the device, feeds it each second, and serves clients
#[derive(Args)]
#[command(after_help = RUN_HELP)]
pub(super) struct Run {
    /// Path of the watchdog device; in a test it may be a FIFO
    #[arg(long, value_name = "DEVICE", default_value = "/dev/watchdog")]
    pub(super) device: PathBuf,
    /// Time from the last feeding until the device resets the machine, such as 10s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(super) timeout: Duration,
    /// Longest time that a client may send nothing, such as 60s
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(super) client_timeout: Duration,
    /// Kernel module to load first; the default is WATCHDOG_MODULE in the environment, else none
    #[arg(long, value_name = "NAME")]
    pub(super) module: Option<String>,
}

const RUN_HELP: &str = "\
On SIGTERM without clients, the command disarms the device and ends. On SIGTERM with clients, it logs their names, accepts
no new ones, and feeds the device until they have left.";

/// Shows whether the device is fed, and which clients are connected
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
  fed             whether the device is fed; why has the reason if it is not
  device          path of the device
  identity        name of the device, as its driver reports it
  timeout, client_timeout   in seconds
  magic_close     whether the device can be disarmed; null if that is not known
  ending          whether the program was asked to end and waits for its clients to leave
  pid             process id of watchdog-mux
  clients         each with name, pid, uid, connected (for how many seconds) and silent (for how many seconds)";

/// Prints the metrics of watchdog-mux for Prometheus
#[derive(Args)]
pub(super) struct Metrics {}

/// The meanings of the exit codes, for the man pages.
pub(crate) const EXIT_CODES: [(u8, &str); 4] = [
    (0, "done; of status: the device is fed"),
    (1, "refused; a sentence has the reason and what to type instead"),
    (2, "the arguments are wrong, and nothing was done"),
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
