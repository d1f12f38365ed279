//! `fence_redfish_rs`, the fence agent: power on and off through a BMC's Redfish service.
//!
//! [`input`] and [`config`] turn what was typed into a checked configuration by the one table in [`options`]; [`act`]
//! carries the action out, and asks [`plan`], which is pure, for every single step. Exit codes are those of the fencing
//! library: 0 done and proven (`status`: on), 2 `status` only: off, 1 everything else.

pub mod act;
pub mod config;
pub mod input;
pub mod metadata;
pub mod options;
pub mod outage;
pub mod password;
pub mod plan;
pub mod time_limit;
pub mod trace;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc;
use std::time::Duration;

use log::LevelFilter;
use zeroize::Zeroizing;

use self::act::{Actor, Ending};
use self::config::{Action, Config, Environment, TrustSource};
use self::input::{Given, INPUT_LIMIT};
use self::options::{Opt, truth};
use crate::clock::Deadline;
use crate::logging;
use crate::redfish::bmc::Bmc;
use crate::redfish::client::{Client, Settings};
use crate::redfish::request::Credentials;
use crate::redfish::secret::Scrubber;
use crate::redfish::service::Login;
use crate::redfish::tls::{self, Trust};
use crate::wiped;

const FAILED: u8 = 1;
/// The fencer writes all options at once and closes; what takes longer than this never ends.
const INPUT_TIME: Duration = Duration::from_secs(10);

/// Runs the fence agent; `args` follow the program's name.
pub fn run(args: &[OsString]) -> u8 {
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
    time_limit::end_after(config.timing.total);
    let trust = trust(&config.trust)?;
    if action == Action::ValidateAll {
        return password::check(&config.password).map(|()| 0);
    }
    let deadline = Deadline::after(config.timing.total);
    let trace = trace::open(given.values.get(&Opt::DebugFile).and_then(|path| path.text()));
    let password = password::fetch(&config.password, deadline.left())?;
    if matches!(action, Action::Off | Action::Reboot) && !config.timing.delay.is_zero() {
        log::info!("waiting {} s before fencing, as delay says", config.timing.delay.as_secs());
        deadline.sleep(config.timing.delay);
    }
    let scrubber = Scrubber::default();
    scrubber.hide(password.reveal());
    if let Credentials::Basic(header) = Credentials::basic(&config.username, &password) {
        scrubber.hide(header.reveal().strip_prefix(b"Basic ").unwrap_or_default());
    }
    let settings = Settings {
        address: config.address.clone(),
        trust,
        check_name: config.check_name,
        connect_limit: config.timing.connect,
        answer_limit: config.timing.answer,
        deadline,
    };
    let client = Client::new(settings, scrubber, trace).map_err(|failure| failure.to_string())?;
    let login = Login { user: config.username.clone(), password, method: config.auth };
    let mut bmc = Bmc::new(client, login, &config.redfish_uri);
    let ended = Actor::new(&config, &mut bmc, deadline).run();
    bmc.close();
    match ended {
        Ok(ending) => Ok(finish(action, &ending)),
        Err(failure) => Err(failure.to_string()),
    }
}

/// Prints what there is to print. A power action that is done stays done, whoever reads its success or not.
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
    given.values.get(&opt).and_then(|value| value.text()).and_then(truth).unwrap_or(false)
}

/// Errors go to stderr and syslog; what an operator should know goes to syslog; everything is shown with verbose.
/// While an action succeeds, nothing goes to stderr: some callers take any byte there for a failure.
fn start_logging(given: &Given) {
    let level =
        given.values.get(&Opt::VerboseLevel).and_then(|value| value.text()).and_then(|level| level.parse::<i32>().ok());
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

/// Options come from the command line if there is one, else from standard input.
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
    // Standard input may be a pipe that nobody closes; a thread may wait for it, we do not.
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

/// The buffer of `io::stdin` lives as long as the process, and would keep a password that passes through it.
fn unbuffered_stdin() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

fn trust(source: &TrustSource) -> Result<Trust, String> {
    Ok(match source {
        TrustSource::System => Trust::System,
        TrustSource::Anyone => Trust::Anyone,
        TrustSource::Pinned(pins) => Trust::Pinned(pins.clone()),
        TrustSource::CaFile(path) => Trust::Listed(tls::read_ca_file(path)?),
    })
}
