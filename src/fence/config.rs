//! From options as text to a checked configuration; every fault is named, and what to type instead. Pure.

mod race_with;
mod reader;

use std::path::PathBuf;
use std::time::Duration;

pub use self::race_with::RaceWith;
use self::reader::Reader;
use super::input::Given;
use crate::adapters::https::address::Address;
use crate::adapters::https::tls::Fingerprint;
use crate::adapters::redfish::discovery::Pointer;
use crate::adapters::redfish::service::LoginMethod;
use crate::os::secret::Secret;

/// What the agent is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    On,
    Off,
    Reboot,
    Status,
    Monitor,
    List,
    ListStatus,
    Diag,
    ValidateAll,
    Metadata,
    Manpage,
}

/// Every action by its name, with whether metadata declares it; in the order of the metadata.
pub const ACTIONS: &[(&str, Action, bool)] = &[
    ("on", Action::On, true),
    ("off", Action::Off, true),
    ("reboot", Action::Reboot, true),
    ("status", Action::Status, true),
    ("list", Action::List, true),
    ("list-status", Action::ListStatus, true),
    ("monitor", Action::Monitor, true),
    ("metadata", Action::Metadata, true),
    ("meta-data", Action::Metadata, false),
    ("manpage", Action::Manpage, true),
    ("validate-all", Action::ValidateAll, true),
    ("diag", Action::Diag, true),
];

impl Action {
    /// Reads an action's name; there is none by default, as a mistyped key must not power a machine off.
    pub fn parse(name: Option<&str>) -> Result<Self, String> {
        let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
            return Err(format!("unsupported action: none was given; give action= (or -o) one of {}", action_names()));
        };
        let lower = name.to_ascii_lowercase();
        let found = ACTIONS.iter().find(|(known, _, _)| *known == lower);
        found.map(|(_, action, _)| *action).ok_or_else(|| {
            let shown: String = name.chars().filter(|character| !character.is_control()).take(40).collect();
            format!("unsupported action '{shown}'; give action= (or -o) one of {}", action_names())
        })
    }

    /// Whether it switches a system off.
    pub fn switches_off(self) -> bool {
        matches!(self, Self::Off | Self::Reboot)
    }

    /// Whether it changes the power state, or means to.
    pub fn acts(self) -> bool {
        matches!(self, Self::On | Self::Off | Self::Reboot | Self::Diag)
    }
}

fn action_names() -> String {
    let names: Vec<&str> = ACTIONS.iter().filter(|(_, _, declared)| *declared).map(|(name, _, _)| *name).collect();
    names.join(", ")
}

/// How a reboot is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    OnOff,
    Cycle,
}

/// Where the password is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordSource {
    Given(Secret),
    File(PathBuf),
    Script(String),
}

/// Which certificates are trusted, before files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustSource {
    System,
    CaFile(PathBuf),
    Pinned(Vec<Fingerprint>),
    Anyone,
}

/// How long everything may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub delay: Duration,
    /// The whole action, from its start.
    pub total: Duration,
    pub connect: Duration,
    pub answer: Duration,
    /// From an accepted reset to the state it should bring; `None` where only the whole action is limited.
    pub power: Option<Duration>,
    pub power_wait: Duration,
    pub status_sleep: Duration,
    pub retry_on: u32,
}

/// A complete, checked configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub action: Action,
    pub address: Address,
    pub username: String,
    pub password: PasswordSource,
    pub auth: LoginMethod,
    pub trust: TrustSource,
    pub check_name: bool,
    pub redfish_uri: String,
    /// The systems to act on, at least one.
    pub systems: Vec<Pointer>,
    /// The systems differ from action to action (`plug=dynamic`).
    pub dynamic: bool,
    pub method: Method,
    pub missing_as_off: bool,
    pub separator: String,
    pub timing: Timing,
    pub environment: Environment,
    /// The race with the other node's agent, for an action that switches off.
    pub race: Option<RaceWith>,
    /// The attribute of this node that has how long an action waits which switches off under the fencer.
    pub wait_attribute: Option<String>,
}

/// What tells us who started us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Pacemaker's fencer: it kills us when its own time is up, and asks again after a failure.
    pub under_fencer: bool,
}

impl Config {
    /// Checks everything that was given for `action`.
    pub fn read(action: Action, given: &Given, environment: Environment) -> Result<Self, Vec<String>> {
        Reader::new(given).read(action, environment)
    }
}

#[cfg(test)]
mod tests;
