//! `watchdog-mux` as a process: arguments, log, signals, memory, panics and exit code.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use super::arguments::{self, Command, CommandLine};
use super::clients::Clients;
use super::core::Mux;
use super::feeder::{Feeder, INTERVAL};
use super::paths::Paths;
use super::refusal::Refusal;
use super::server::Server;
use super::status::{Status, Unknown};
use crate::adapters::chronicle::Chronicle;
use crate::adapters::command::Programs;
use crate::adapters::watchdog::refusal::Words;
use crate::adapters::watchdog::{self as device, Wanted};
use crate::os::output::{complain, say};
use crate::os::{daemon, proc};

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const UNFED: u8 = 3;
/// The time limit for loading a kernel module.
const MODPROBE_TIME: Duration = Duration::from_secs(30);

/// Runs `watchdog-mux` with `args`, without the program's name. Returns the exit code.
pub(crate) fn main(args: &[OsString]) -> u8 {
    let name = OsString::from("watchdog-mux");
    let line = match CommandLine::try_parse_from(std::iter::once(&name).chain(args)) {
        Ok(line) => line,
        Err(answer) => {
            let _ = answer.print();
            return if answer.use_stderr() { USAGE } else { 0 };
        }
    };
    let dir = fs::canonicalize(&line.run_dir).unwrap_or(line.run_dir);
    let paths = Paths::in_dir(&dir);
    match line.command {
        Command::Run(run) => serve(run, paths),
        Command::Status(asked) => show(&paths, |status| {
            let is_shown = if asked.json { status.json().and_then(say) } else { say(status.text()) };
            if is_shown.is_err() { FAILED } else { u8::from(!status.fed) * UNFED }
        }),
        Command::Metrics(_) => show(&paths, |status| u8::from(say(status.metrics()).is_err())),
    }
}

fn show(paths: &Paths, print: impl FnOnce(&Status) -> u8) -> u8 {
    match Status::read(paths) {
        Ok(status) => print(&status),
        Err(why @ (Unknown::NotRunning | Unknown::Unreadable(_))) => {
            complain(format_args!("watchdog-mux: {why}"));
            FAILED
        }
    }
}

fn serve(run: arguments::Run, paths: Paths) -> u8 {
    daemon::start_logging("watchdog-mux", std::env::var_os("JOURNAL_STREAM").is_some());
    daemon::abort_at_a_panic();
    match start(run, paths).map(Server::run) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            log::error!("the device is not disarmed: {error}");
            FAILED
        }
        Err(why) => {
            log::error!("{why}");
            FAILED
        }
    }
}

/// Starts the multiplexer. Checks everything that can be refused before it opens the device, because an open device must be fed.
fn start(run: arguments::Run, paths: Paths) -> Result<Server, Refusal> {
    let programs = Programs::default();
    let signals = daemon::take_signals().map_err(|errno| Refusal::Signals { source: errno.into() })?;
    daemon::lock_memory();
    if run.client_timeout < 2 * INTERVAL {
        return Err(Refusal::ClientTimeout { seconds: run.client_timeout.as_secs() });
    }
    check_place(&paths)?;
    let module =
        run.module.or_else(|| std::env::var_os("WATCHDOG_MODULE").map(|name| name.to_string_lossy().into_owned()));
    if let Some(name) = module.filter(|name| !name.is_empty()) {
        load(&programs, name)?;
    }
    let wanted = Wanted {
        path: run.device,
        timeout: run.timeout,
        interval: INTERVAL,
        sysfs: PathBuf::from(device::SYSFS),
        words: Words::Options,
    };
    let examined = device::examine(wanted)?;
    let clients = listen(&paths)?;
    let is_fifo = examined.is_fifo();
    let opened = examined.open(&programs).map_err(Refusal::from);
    let (device, about) = opened.inspect_err(|_| drop(fs::remove_file(paths.socket())))?;
    let started = Feeder::start(device).and_then(|feeder| Ok((feeder, Chronicle::start(programs)?)));
    let (feeder, chronicle) = started.map_err(|source| Refusal::Thread { source })?;
    for warning in &about.warnings {
        chronicle.warn(format!("{}: {warning}", about.path.display()));
    }
    let seconds = about.timeout.as_secs();
    let device = about.path.display().to_string();
    let name = if is_fifo { device } else { format!("{device} ({})", about.identity) };
    chronicle.info(format!("armed: {name}, time-out {seconds} s"));
    let service = std::env::var_os("NOTIFY_SOCKET");
    let mux = Mux::new(run.client_timeout, about.timeout);
    Ok(Server { paths, about, client_timeout: run.client_timeout, mux, clients, signals, feeder, chronicle, service })
}

/// Refuses to start if another multiplexer serves, or if a client of an earlier multiplexer has not left cleanly. Does not connect to the
/// socket to find out, because that connection would count as a client.
fn check_place(paths: &Paths) -> Result<(), Refusal> {
    if proc::listens_at(&paths.socket()) {
        return Err(Refusal::SocketTaken { socket: paths.socket() });
    }
    if fs::symlink_metadata(paths.marker()).is_ok() {
        return Err(Refusal::Marked { marker: paths.marker() });
    }
    Ok(())
}

fn load(programs: &Programs, name: String) -> Result<(), Refusal> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if name.starts_with('-') || !name.chars().all(is_plain) {
        return Err(Refusal::ModuleName { name });
    }
    let why = match programs.run("modprobe", &[&name], MODPROBE_TIME) {
        Ok(output) if output.code == 0 => return Ok(()),
        Ok(output) => output.complaint().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Refusal::Module { name, why })
}

/// Creates the socket for clients. No other user can connect to it.
fn listen(paths: &Paths) -> Result<Clients, Refusal> {
    let socket = paths.socket();
    let failed = |source| Refusal::Socket { socket: socket.clone(), source };
    match fs::remove_file(&socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener = UnixListener::bind(&socket).map_err(failed)?;
    fs::set_permissions(&socket, Permissions::from_mode(0o600)).map_err(failed)?;
    Clients::new(listener).map_err(failed)
}
