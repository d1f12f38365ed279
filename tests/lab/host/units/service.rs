//! A service: its processes are started as its unit specifies, watched, and ended in good order.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::file::Unit;
use super::manager::{Manager, State};
use crate::sh::{self, Result};

const NOTIFY: &str = "/run/lab-notify";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// systemd's default for the time-outs of starts and stops, for units that set none.
const TIMEOUT: Duration = Duration::from_secs(90);
const RESTART_AFTER: Duration = Duration::from_millis(100);

/// Starts the unit's processes, and returns when the unit is ready. Depending on its `Type=`, that is at once, after
/// its notification, or after its end.
pub fn start(manager: &Arc<Manager>, unit: &Unit) -> Result<()> {
    let start = manager.note(&unit.name, |known| {
        known.state = State::Activating;
        known.start += 1;
    });
    let done = begin(manager, unit, start.start);
    if let Err(error) = &done {
        manager.note(&unit.name, |known| known.state = State::Failed);
        manager.say(&unit.name, &error.to_string());
        return Err(format!("Job for {} failed because {error}.", unit.name).into());
    }
    Ok(())
}

fn begin(manager: &Arc<Manager>, unit: &Unit, start: u64) -> Result<()> {
    let environment = environment(unit);
    for (key, root) in [("RuntimeDirectory", "/run"), ("StateDirectory", "/var/lib")] {
        for name in unit.list("Service", key) {
            let dir = Path::new(root).join(name);
            sh::make_dir(&dir)?;
            let mode = unit.value("Service", &format!("{key}Mode")).and_then(|mode| u32::from_str_radix(mode, 8).ok());
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode.unwrap_or(0o755)))?;
        }
    }
    for before in unit.values("Service", "ExecStartPre") {
        run(unit, before, &environment)?;
    }
    let line = unit.value("Service", "ExecStart").ok_or("its unit has no ExecStart")?;
    let kind = unit.value("Service", "Type").unwrap_or("simple");
    if kind == "oneshot" {
        run(unit, line, &environment)?;
        manager.note(&unit.name, |known| known.state = State::Inactive);
        return Ok(());
    }
    let socket = if kind == "notify" { Some(notify_socket(unit)?) } else { None };
    let mut command = command(unit, line, &environment)?;
    if let Some((_, path)) = &socket {
        command.env("NOTIFY_SOCKET", path);
    }
    let child = command.spawn()?;
    let pid = i32::try_from(child.id())?;
    manager.note(&unit.name, |known| known.pid = Some(pid));
    watch(manager, unit, child, start);
    if let Some((socket, _)) = &socket {
        wait_ready(manager, unit, socket, start)?;
    }
    let known = manager.note(&unit.name, |known| {
        if known.pid == Some(pid) {
            known.state = State::Active;
        }
    });
    if known.pid == Some(pid) { Ok(()) } else { Err("its process has ended".into()) }
}

/// Stops the unit by its `ExecStop=`, or by SIGTERM, and waits until it has ended.
pub fn stop(manager: &Arc<Manager>, unit: &Unit) {
    let known = manager.note(&unit.name, |known| known.state = State::Deactivating);
    for line in unit.values("Service", "ExecStop") {
        // A service that does not react to its command gets the signal.
        let _ = run(unit, line, &environment(unit));
    }
    let gone = || manager.known(&unit.name).pid.is_none();
    if let Some(pid) = known.pid.filter(|_| !gone()) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        let limit = unit.time("Service", "TimeoutStopSec").unwrap_or(TIMEOUT);
        if !sh::wait_for_quietly(limit, Duration::from_millis(20), gone) {
            manager.say(&unit.name, "does not end in time, SIGKILL");
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            sh::wait_for_quietly(TIMEOUT, Duration::from_millis(20), gone);
        }
    }
    manager.note(&unit.name, |known| known.state = State::Inactive);
}

/// Waits for the end of the unit's main process, and starts the unit again if its `Restart=` demands that.
fn watch(manager: &Arc<Manager>, unit: &Unit, mut child: Child, start: u64) {
    let (manager, unit) = (Arc::clone(manager), unit.clone());
    std::thread::spawn(move || {
        let status = child.wait();
        let how = status.as_ref().map_or_else(ToString::to_string, ToString::to_string);
        let good = status.is_ok_and(|status| is_success(&unit, status));
        let mut unasked = false;
        manager.note(&unit.name, |known| {
            if known.start != start {
                return;
            }
            known.pid = None;
            unasked = known.state == State::Active;
            if unasked {
                known.state = if good { State::Inactive } else { State::Failed };
            }
        });
        manager.say(&unit.name, &format!("has ended: {how}"));
        let again = match unit.value("Service", "Restart") {
            Some("always") => true,
            Some("on-failure") => !good,
            _ => false,
        };
        if unasked && again {
            std::thread::sleep(unit.time("Service", "RestartSec").unwrap_or(RESTART_AFTER));
            if manager.known(&unit.name).start == start {
                manager.say(&unit.name, "is started again");
                let _ = Manager::start(&manager, &unit);
            }
        }
    });
}

fn is_success(unit: &Unit, status: ExitStatus) -> bool {
    let code = status.code().map(|code| code.to_string());
    let fine = unit.list("Service", "SuccessExitStatus");
    status.success() || code.is_some_and(|code| fine.contains(&code))
}

fn notify_socket(unit: &Unit) -> Result<(UnixDatagram, PathBuf)> {
    sh::make_dir(Path::new(NOTIFY))?;
    let path = Path::new(NOTIFY).join(&unit.name);
    let _ = fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path)?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    Ok((socket, path))
}

fn wait_ready(manager: &Manager, unit: &Unit, socket: &UnixDatagram, start: u64) -> Result<()> {
    let limit = unit.time("Service", "TimeoutStartSec").unwrap_or(TIMEOUT);
    let began = Instant::now();
    let mut buffer = [0_u8; 4096];
    while began.elapsed() < limit {
        if let Ok(length) = socket.recv(&mut buffer) {
            let said = String::from_utf8_lossy(&buffer[..length]);
            if said.lines().any(|line| line == "READY=1") {
                return Ok(());
            }
        }
        let known = manager.known(&unit.name);
        if known.start == start && known.pid.is_none() {
            return Err("the control process exited with error code".into());
        }
    }
    Err("a timeout was exceeded".into())
}

/// Runs one of the unit's command lines to its end. A command line that begins with `-` may fail.
fn run(unit: &Unit, line: &str, environment: &HashMap<String, String>) -> Result<()> {
    let status = command(unit, line, environment)?.status();
    let may_fail = line.starts_with('-');
    match status {
        Ok(status) if status.success() || may_fail => Ok(()),
        Err(_) if may_fail => Ok(()),
        Ok(status) => Err(format!("'{line}' ended with {status}").into()),
        Err(error) => Err(format!("'{line}' cannot be run: {error}").into()),
    }
}

fn command(unit: &Unit, line: &str, environment: &HashMap<String, String>) -> Result<Command> {
    let words = words(line.trim_start_matches(['-', '@', ':', '+', '!']), environment);
    let (program, rest) = words.split_first().ok_or("an empty command")?;
    let log = || fs::OpenOptions::new().append(true).create(true).open(Path::new("/var/log").join(&unit.name));
    let mut command = Command::new(program);
    command.args(rest).env_clear().env("PATH", PATH).env("LANG", "C.UTF-8").envs(environment);
    command.current_dir("/").stdin(Stdio::null()).stdout(log()?).stderr(log()?);
    // The process group is its own, so that signals of a terminal do not reach it.
    command.process_group(0);
    Ok(command)
}

/// Splits a command line into words. A word that is a variable is replaced by the words of the variable's value.
fn words(line: &str, environment: &HashMap<String, String>) -> Vec<String> {
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        match word.strip_prefix('$') {
            Some(name) => {
                let value = environment.get(name.trim_matches(['{', '}'])).map_or("", String::as_str);
                words.extend(value.split_whitespace().map(str::to_owned));
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

fn environment(unit: &Unit) -> HashMap<String, String> {
    let mut all = HashMap::new();
    let mut add = |line: &str| {
        if let Some((name, value)) = line.trim().split_once('=').filter(|_| !line.trim_start().starts_with('#')) {
            all.insert(name.trim().to_owned(), value.trim().trim_matches(['"', '\'']).to_owned());
        }
    };
    unit.values("Service", "Environment").iter().for_each(|line| add(line.trim_matches('"')));
    for file in unit.values("Service", "EnvironmentFile") {
        let text = fs::read_to_string(file.trim_start_matches('-')).unwrap_or_default();
        text.lines().for_each(&mut add);
    }
    all
}
