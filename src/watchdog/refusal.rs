//! The reasons why the multiplexer does not start. Each contains a command or setting that resolves it.

use std::io;
use std::path::PathBuf;

use crate::adapters::watchdog::refusal::Refusal as OfTheDevice;

/// A reason why the multiplexer does not start, other than wrong arguments.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    Device(#[from] OfTheDevice),
    #[error("{socket} is taken, another multiplexer serves it: 'systemctl status watchdog-mux'")]
    SocketTaken { socket: PathBuf },
    #[error("{socket} cannot be served ({source}): 'ls -ld {socket}'")]
    Socket { socket: PathBuf, source: io::Error },
    #[error("{marker} is there, since a client has not left in order and the machine was to reset: 'reboot'")]
    Marked { marker: PathBuf },
    #[error("--client-timeout {seconds}s is less than two intervals: type '--client-timeout 2s' or more")]
    ClientTimeout { seconds: u64 },
    #[error("'{name}' is no name of a module: type '--module softdog' or the like")]
    ModuleName { name: String },
    #[error("the module {name} cannot be loaded ({why}): 'modprobe {name}'")]
    Module { name: String, why: String },
    #[error("the signals cannot be taken over ({source}): 'systemctl start watchdog-mux'")]
    Signals { source: io::Error },
    #[error("a thread cannot be started ({source}), and the machine resets: 'ulimit -u'")]
    Thread { source: io::Error },
}
