//! The conversion of options to a checked configuration. Every fault is reported, with a valid form. This module is pure.

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

/// The action that the caller of the agent asks for.
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

/// Every action: its name, its value, and whether the metadata declares it. The order is that of the metadata.
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
    /// Parses an action's name. A missing name is an error, because without this rule a mistyped key could power a machine off.
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

    /// Returns whether the action switches a system off: `off` or `reboot`.
    pub fn switches_off(self) -> bool {
        matches!(self, Self::Off | Self::Reboot)
    }

    /// Returns whether the action may send a reset to the BMC: `on`, `off`, `reboot` or `diag`.
    pub fn acts(self) -> bool {
        matches!(self, Self::On | Self::Off | Self::Reboot | Self::Diag)
    }
}

fn action_names() -> String {
    let names: Vec<&str> = ACTIONS.iter().filter(|(_, _, declared)| *declared).map(|(name, _, _)| *name).collect();
    names.join(", ")
}

/// The way in which a reboot is done: as Off and then On, or as one reset (`cycle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    OnOff,
    Cycle,
}

/// The source of the BMC account's password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordSource {
    Given(Secret),
    File(PathBuf),
    Script(String),
}

/// The source of the certificates by which the agent verifies a BMC. A CA file is only named here, and its contents are read
/// later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustSource {
    System,
    CaFile(PathBuf),
    Pinned(Vec<Fingerprint>),
    Anyone,
}

/// The time limits and delays of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub delay: Duration,
    /// The time limit of the whole action, from its start.
    pub total: Duration,
    pub connect: Duration,
    pub answer: Duration,
    /// The time limit from an accepted reset to the resulting power state; `None` if there is no limit other than `total`.
    pub power: Option<Duration>,
    pub power_wait: Duration,
    pub status_sleep: Duration,
    pub retry_on: u32,
}

/// The complete, checked configuration of one action.
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
    /// The systems to act on: at least one.
    pub systems: Vec<Pointer>,
    /// True if the option `plug` is `dynamic`: the device has no fixed system, and the caller of each action names one.
    pub dynamic: bool,
    pub method: Method,
    pub missing_as_off: bool,
    pub separator: String,
    pub timing: Timing,
    pub environment: Environment,
    /// The race with the other node's agent before a reset; `None` if the option `race_with` is not set.
    pub race: Option<RaceWith>,
    /// The name of the node attribute with the seconds that this node waits before it switches another one off. `None` if
    /// Pacemaker's fencer did not start the agent, and for an action that switches no system off.
    pub wait_attribute: Option<String>,
}

/// The program that has started this agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// True if Pacemaker's fencer has started this agent. The fencer kills the agent after a time-out, and repeats an action that
    /// failed.
    pub under_fencer: bool,
}

impl Config {
    /// Checks all options that were given for `action`.
    pub fn read(action: Action, given: &Given, environment: Environment) -> Result<Self, Vec<String>> {
        Reader::new(given).read(action, environment)
    }
}

#[cfg(test)]
mod tests;
