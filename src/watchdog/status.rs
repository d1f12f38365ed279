//! `watchdog-mux status` and `metrics`, from the state that the multiplexer writes. A stale state is of a dead multiplexer.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use serde::Serialize;

use super::paths::Paths;
use super::state::{Served, State};

/// The greatest age of a valid state file. An older one shows that its multiplexer is dead or hangs.
const STALE: Duration = Duration::from_secs(5);

/// The reason why the status of the multiplexer is not available.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    #[error("watchdog-mux does not run on this machine: 'systemctl start watchdog-mux'")]
    NotRunning,
    #[error("the state of watchdog-mux cannot be read ({0}): 'systemctl status watchdog-mux'")]
    Unreadable(#[from] io::Error),
}

/// The output of `watchdog-mux status`. The fields are the keys of its JSON form.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    format: u32,
    pub(super) fed: bool,
    why: Option<String>,
    device: Option<String>,
    identity: Option<String>,
    timeout: Option<u64>,
    client_timeout: Option<u64>,
    magic_close: Option<bool>,
    ending: bool,
    pid: Option<u32>,
    clients: Vec<Served>,
}

impl Status {
    pub(super) fn read(paths: &Paths) -> Result<Self, Unknown> {
        match State::read(paths)? {
            Some(state) => {
                let age = state.age();
                Ok(Self::of(state, age))
            }
            None if paths.marker().is_dir() => Ok(Self::of_marker(paths)),
            None => Err(Unknown::NotRunning),
        }
    }

    fn of(state: State, age: Duration) -> Self {
        let is_stale = (age > STALE).then(|| format!("the multiplexer has written nothing for {} s", age.as_secs()));
        let why = state.unfed.or(is_stale);
        Self {
            format: 1,
            fed: why.is_none(),
            why,
            device: Some(state.device),
            identity: Some(state.identity),
            timeout: Some(state.timeout),
            client_timeout: Some(state.client_timeout),
            magic_close: state.magic_close,
            ending: state.is_ending,
            pid: Some(state.pid),
            clients: state.clients,
        }
    }

    /// Returns the status for a machine with a marker but without a state file. The device is not fed, because a client has not left
    /// cleanly and no multiplexer runs.
    fn of_marker(paths: &Paths) -> Self {
        let why = format!("no multiplexer runs, and {} is there: 'reboot'", paths.marker().display());
        Self {
            format: 1,
            fed: false,
            why: Some(why),
            device: None,
            identity: None,
            timeout: None,
            client_timeout: None,
            magic_close: None,
            ending: false,
            pid: None,
            clients: Vec::new(),
        }
    }

    pub(super) fn json(&self) -> io::Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Returns the status as text, without the last line break.
    pub(super) fn text(&self) -> String {
        let mut text = match &self.why {
            None => "fed".to_owned(),
            Some(why) => format!("not fed: {why}"),
        };
        if let (Some(device), Some(identity), Some(timeout)) = (&self.device, &self.identity, self.timeout) {
            let _ = write!(text, "\ndevice: {device} ({identity}), time-out {timeout} s");
        }
        if self.magic_close == Some(false) {
            text.push_str(", no magic close: once the multiplexer ends, the machine resets");
        }
        if self.ending {
            text.push_str("\nending: it waits for its clients to leave");
        }
        if self.device.is_some() {
            let _ = write!(text, "\nclients: {}", self.clients.len());
        }
        for Served { name, pid, uid, connected, silent } in &self.clients {
            let _ = write!(
                text,
                "\n  {name} (pid {pid}, uid {uid}): connected {connected} s ago, last byte {silent} s ago"
            );
        }
        text
    }

    /// Returns the status as metrics, in the text format of Prometheus.
    pub(super) fn metrics(&self) -> String {
        let rows = [
            ("fed", "Whether the watchdog device is fed.", u64::from(self.fed)),
            ("clients", "Programs that the multiplexer serves.", self.clients.len() as u64),
        ];
        let row = |(name, help, value): (&str, &str, u64)| {
            let name = format!("tandem_watchdog_mux_{name}");
            format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}")
        };
        rows.map(row).join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::{clock, proc};

    fn state() -> State {
        State {
            boot: proc::boot_id(),
            written: clock::boot_nanoseconds(),
            pid: 17,
            device: "/dev/watchdog".to_owned(),
            identity: "Software Watchdog".to_owned(),
            timeout: 10,
            client_timeout: 60,
            magic_close: Some(true),
            unfed: None,
            is_ending: false,
            clients: vec![Served { name: "lrm".to_owned(), pid: 7, uid: 0, connected: 90, silent: 2 }],
        }
    }

    #[test]
    fn a_fresh_state_is_fed_and_a_stale_one_is_not() {
        let fed = Status::of(state(), Duration::from_secs(2));
        assert_eq!(
            fed.text(),
            "fed\ndevice: /dev/watchdog (Software Watchdog), time-out 10 s\nclients: 1\n  \
             lrm (pid 7, uid 0): connected 90 s ago, last byte 2 s ago"
        );
        let stale = Status::of(state(), Duration::from_secs(6));
        assert!(!stale.fed && stale.text().starts_with("not fed: the multiplexer has written nothing for 6 s\n"));
        let ended = State { unfed: Some("lrm closed without V".to_owned()), is_ending: true, ..state() };
        let text = Status::of(ended, Duration::ZERO).text();
        assert!(text.starts_with("not fed: lrm closed without V\n") && text.contains("\nending: "), "{text}");
        let stays = State { magic_close: Some(false), ..state() };
        assert!(Status::of(stays, Duration::ZERO).text().contains("no magic close"));
    }

    #[test]
    fn the_metrics_are_two_gauges() {
        let page = Status::of(state(), Duration::ZERO).metrics();
        assert!(page.contains("\ntandem_watchdog_mux_fed 1\n") && page.ends_with("\ntandem_watchdog_mux_clients 1"));
        assert!(Status::of(state(), Duration::from_secs(9)).metrics().contains("\ntandem_watchdog_mux_fed 0\n"));
    }

    #[test]
    fn what_is_read_is_what_was_written_in_this_boot() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::in_dir(dir.path());
        assert!(matches!(Status::read(&paths), Err(Unknown::NotRunning)));
        state().write(&paths).unwrap();
        assert_eq!(
            State::read(&paths).unwrap(),
            Some(State { written: State::read(&paths).unwrap().unwrap().written, ..state() })
        );
        assert!(Status::read(&paths).unwrap().fed);
        State { boot: "another".to_owned(), ..state() }.write(&paths).unwrap();
        assert!(matches!(Status::read(&paths), Err(Unknown::NotRunning)), "the state of an earlier boot");
        std::fs::create_dir(paths.marker()).unwrap();
        let marked = Status::read(&paths).unwrap();
        assert!(!marked.fed && marked.text().ends_with("is there: 'reboot'"), "{}", marked.text());
        std::fs::write(paths.state(), "{").unwrap();
        assert!(matches!(Status::read(&paths), Err(Unknown::Unreadable(_))));
    }

    #[test]
    fn every_key_is_explained_in_the_help() {
        let help = super::super::command_line();
        let help = help.find_subcommand("status").unwrap().get_after_help().unwrap().to_string();
        let json = Status::of(state(), Duration::ZERO).json().unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let inner = json["clients"][0].as_object().unwrap();
        for key in json.as_object().unwrap().keys().chain(inner.keys()) {
            assert!(help.contains(key.as_str()), "{key}");
        }
    }
}
