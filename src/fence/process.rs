//! The fence agent as a process: options from arguments or standard input, log, answer on standard output, and exit code. A
//! signal, or the end of its time, can end it early.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use log::LevelFilter;
use nix::sys::signal::{SigSet, Signal};
use zeroize::Zeroizing;

use super::act::Ending;
use super::config::{Action, Config, Environment};
use super::input::{self, Given, INPUT_LIMIT};
use super::metadata;
use super::note;
use super::options::{Opt, truth};
use crate::adapters::redfish::session::SessionHandle;
use crate::os::clock;
use crate::os::logging;
use crate::os::wiped;
use crate::records::bmc_note;

const FAILED: u8 = 1;
/// The time limit for reading the options from standard input. The fencer writes all options at once and closes the pipe.
const INPUT_TIME: Duration = Duration::from_secs(10);
/// The time after the action's own limit in which the agent may finish its last request and delete its session. It ends before
/// the fencer's time-out.
const GRACE: Duration = Duration::from_secs(4);
/// The signals by which a person or a service manager ends the process early.
const ENDINGS: &[Signal] = &[Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// Runs the fence agent with `args`, which do not contain the program's name. Returns the exit code.
pub fn main(args: &[OsString]) -> u8 {
    let given = match read_input(args) {
        Ok(given) => given,
        Err(fault) => {
            start_logging(&Given::default());
            return fail(&fault);
        }
    };
    if is_set(&given, Opt::Help) {
        return print(&metadata::help());
    }
    if is_set(&given, Opt::Version) {
        return print(&format!("fence_redfish_rs {}\n", env!("CARGO_PKG_VERSION")));
    }
    let action = Action::parse(given.values.get(&Opt::Action).map(|value| value.text().unwrap_or("?")));
    match action {
        Ok(Action::Metadata) => print(&metadata::metadata()),
        Ok(Action::Manpage) => print(&metadata::manpage()),
        Ok(action) => {
            start_logging(&given);
            perform(action, &given).unwrap_or_else(|fault| fail(&fault))
        }
        Err(fault) => {
            start_logging(&given);
            fail(&fault)
        }
    }
}

fn perform(action: Action, given: &Given) -> Result<u8, String> {
    for remark in &given.remarks {
        log::info!("{remark}");
    }
    let under_fencer = std::env::var_os("PCMK_service").is_some_and(|service| service == "pacemaker-fenced");
    let config = Config::read(action, given, Environment { under_fencer }).map_err(|faults| faults.join("; "))?;
    end_after(config.timing.total);
    let debug_file = text(given, Opt::DebugFile);
    // Only root writes notes, because no other user may read or write there.
    let (notes, is_root) = (Path::new(bmc_note::DIRECTORY), nix::unistd::geteuid().is_root());
    if is_root {
        keep_beginning(notes, &config, under_fencer);
    }
    let run = super::run_and_note(&config, debug_file, delete_at_a_signal);
    let code = match &run.ended {
        Ok(ending) => finish(action, ending),
        Err(error) => fail(&error.to_string()),
    };
    // The answer was printed before this.
    if is_root {
        note::keep(notes, note::of_the_device(run.notes, under_fencer), under_fencer);
    }
    Ok(code)
}

/// Records in `directory` the beginning of an action that switches a system off. A thread writes the record, so that the action does
/// not wait for the disk.
#[expect(clippy::disallowed_methods, reason = "this is the applet's own main")]
fn keep_beginning(directory: &'static Path, config: &Config, makes_all: bool) {
    let notes = note::of_beginning(config);
    if notes.is_empty() {
        return;
    }
    std::thread::spawn(move || {
        // Signals are for the thread that deletes the session before it ends the process.
        let _ = SigSet::all().thread_block();
        note::write_all(directory, &notes, makes_all);
    });
}

/// Ends the process if it still runs [`GRACE`] after the time limit `total`.
///
/// Every request to the BMC has a limit of its own. This limit is for everything else: a file on a dead file server, a named pipe
/// without a writer, or a syslog daemon that accepts no more lines.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the other threads hang in something that cannot be interrupted"
)]
fn end_after(total: Duration) {
    std::thread::spawn(move || {
        // Signals are for the thread that deletes the session before it ends the process.
        let _ = SigSet::all().thread_block();
        clock::sleep(total + GRACE);
        // The log is not used, because it may be what hangs.
        let _ = writeln!(
            io::stderr(),
            "fence_redfish_rs: ERROR: Failed: Timed out after {} s in something on this machine, not in the BMC: a file, \
             a pipe or syslog",
            (total + GRACE).as_secs()
        );
        std::process::exit(i32::from(FAILED));
    });
}

/// Installs a signal handler that deletes all open sessions and then ends the process. Only the first call installs it.
#[expect(clippy::disallowed_methods, reason = "this is the applet's own main")]
fn delete_at_a_signal(sessions: SessionHandle) {
    let signals: SigSet = ENDINGS.iter().copied().collect();
    if signals.thread_block().is_err() {
        return;
    }
    std::thread::spawn(move || {
        if let Ok(signal) = signals.wait() {
            sessions.delete();
            end_by(signal);
        }
    });
}

#[expect(clippy::exit, reason = "a signal ends the process, whatever its other threads are waiting for")]
fn end_by(signal: Signal) {
    std::process::exit(128 + signal as i32)
}

/// Prints the result, and returns the exit code. If a power action has succeeded, it returns success even if the output cannot be
/// written.
fn finish(action: Action, ending: &Ending) -> u8 {
    if ending.text.is_empty() {
        return ending.code;
    }
    let printed = print(&format!("{}\n", ending.text));
    if printed == 0 || action.acts() { ending.code } else { printed }
}

fn print(text: &str) -> u8 {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => 0,
        Err(_) => FAILED,
    }
}

fn fail(fault: &str) -> u8 {
    log::error!("Failed: {fault}");
    FAILED
}

fn is_set(given: &Given, opt: Opt) -> bool {
    text(given, opt).and_then(truth).unwrap_or(false)
}

/// Returns the value of an option; `None` if it is not set or is not UTF-8.
fn text(given: &Given, opt: Opt) -> Option<&str> {
    given.values.get(&opt).and_then(|value| value.text())
}

/// Configures the log. Errors go to stderr and syslog, and notices for the operator to syslog. With the option `verbose`, every
/// line goes to both.
///
/// Without it, a successful action prints nothing on stderr, because some callers take any output there for a failure.
fn start_logging(given: &Given) {
    let level = text(given, Opt::VerboseLevel).and_then(|level| level.parse::<i32>().ok());
    let verbose = match level {
        Some(level) => level > 0,
        None => is_set(given, Opt::Verbose),
    };
    let stderr = match (is_set(given, Opt::Quiet), verbose) {
        (true, _) => LevelFilter::Off,
        (false, true) => LevelFilter::Debug,
        (false, false) => LevelFilter::Error,
    };
    logging::init(logging::Settings {
        tag: "fence_redfish_rs".to_owned(),
        stderr,
        syslog: if verbose { LevelFilter::Debug } else { LevelFilter::Info },
        file: None,
    });
}

/// Reads the options from the command line if there are any, and from standard input otherwise.
fn read_input(args: &[OsString]) -> Result<Given, String> {
    if !args.is_empty() {
        return input::from_arguments(args);
    }
    if io::stdin().is_terminal() {
        let _ = writeln!(
            io::stderr(),
            "fence_redfish_rs: type options as key=value, one on a line, and end with Ctrl-D (-h shows all options)"
        );
        return read_lines().map(|bytes| input::from_lines(&bytes));
    }
    // Standard input may be a pipe that is never closed. So a thread reads it, and this one waits for a limited time.
    let (send, receive) = mpsc::sync_channel(1);
    std::thread::spawn(move || send.send(read_lines()));
    match receive.recv_timeout(INPUT_TIME) {
        Ok(bytes) => Ok(input::from_lines(&bytes?)),
        Err(_) => Err(format!("options on standard input did not end within {} s", INPUT_TIME.as_secs())),
    }
}

fn read_lines() -> Result<Zeroizing<Vec<u8>>, String> {
    let limit = u64::try_from(INPUT_LIMIT).unwrap_or(u64::MAX);
    let bytes = unbuffered_stdin()
        .and_then(|stdin| wiped::read(stdin.take(limit + 1), INPUT_LIMIT + 1))
        .map_err(|error| format!("options could not be read from standard input: {error}"))?;
    if bytes.len() > INPUT_LIMIT {
        return Err(format!("options on standard input are longer than {} KiB", INPUT_LIMIT / 1024));
    }
    Ok(bytes)
}

/// Returns standard input without a buffer. `io::stdin` has a buffer that lives as long as the process, and a password would stay
/// in it.
fn unbuffered_stdin() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}
