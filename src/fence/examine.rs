//! An operator's examination of a fence device's BMC, with the device's options from the CIB. It is a monitor that also asks for
//! the account. Only [`switch_on`] changes the power, and nothing here switches off.

use std::time::Duration;

use super::act::Ending;
use super::config::{ACTIONS, Action, Config, Environment};
use super::{Curiosity, Error, LoggedIn, input};
use crate::adapters::redfish::flag::Flag;
use crate::os::clock;
use crate::os::secret::Secret;
use crate::records::bmc_note::BmcNote;

/// The time limit for examining a fence device. A BMC that needs longer would also be too slow for the fencer, whatever the
/// device's options are.
pub const LONGEST: Duration = Duration::from_secs(20);

/// The result of an examination of a fence device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    pub note: BmcNote,
    /// The role of the agent's account at the BMC; `None` if the BMC does not show it. That is no fault.
    pub role: Option<String>,
    /// True if the agent's account may reset a system; `None` if the BMC does not show it. That is no fault.
    pub may_reset: Option<bool>,
    pub locked: bool,
    /// The property by which the BMC shows a session to clients that did not open the session; `None` if that was not tested.
    pub flag: Option<Flag>,
    /// True if the device's options are invalid, so that the agent has not asked the BMC.
    pub misconfigured: bool,
    /// The BMC's answers to the passwords that were tried.
    pub login: LoggedIn,
}

/// Runs a monitor on the system of the node `target`, and also reads the account. `plug` is the node's name at the BMC. `options`
/// are lines as on the agent's standard input, and may contain secrets. The result contains no secret.
pub fn device(options: &[u8], target: Option<&str>, plug: Option<&str>) -> Examined {
    device_within(LONGEST, false, options, target, plug)
}

/// Examines as [`device`] does, within `limit`. If `proves_flag` is true, also opens two sessions to test whether the BMC shows
/// one client's session to another client.
pub fn device_within(
    limit: Duration,
    proves_flag: bool,
    options: &[u8],
    target: Option<&str>,
    plug: Option<&str>,
) -> Examined {
    let mut config = match config(options, target, plug) {
        Ok(config) => config,
        Err(why) => return Examined { misconfigured: true, ..failed(why) },
    };
    config.timing.total = config.timing.total.min(limit);
    let run = super::examine(&config, Curiosity { account: true, flag: proves_flag }, |_| {});
    let Some(note) = run.notes.into_iter().next().map(|noted| noted.note) else {
        return failed(run.ended.map_or_else(|error| error.to_string(), |ending| ending.text));
    };
    let account = run.account.and_then(Result::ok);
    Examined {
        note,
        flag: run.flag,
        login: run.login,
        may_reset: account.as_ref().and_then(|account| account.may_reset),
        locked: account.as_ref().is_some_and(|account| account.locked),
        role: account.map(|account| account.role),
        misconfigured: false,
    }
}

/// Changes the password of a device's account at the BMC to `new`. Does not change the password file.
pub fn change_password(options: &[u8], target: Option<&str>, plug: Option<&str>, new: &Secret) -> Result<(), Error> {
    super::change_password(&config(options, target, plug).map_err(Error::Here)?, new)
}

impl Ending {
    /// Returns the result of an action `on` that found all systems already on.
    pub fn already_on() -> Self {
        Self::success("Success: Already ON")
    }
}

/// Switches the system of the node `target` on, as the agent's action `on` does. Returns only once the system is proven on.
pub fn switch_on(options: &[u8], target: &str, plug: Option<&str>) -> Result<Ending, Error> {
    let config = config_for(Action::On, options, Some(target), plug).map_err(Error::Here)?;
    super::run(&config, None, |_| {})
}

pub(super) fn config(options: &[u8], target: Option<&str>, plug: Option<&str>) -> Result<Config, String> {
    let mut config = config_for(Action::Monitor, options, target, plug)?;
    config.timing.total = config.timing.total.min(LONGEST);
    Ok(config)
}

fn config_for(action: Action, options: &[u8], target: Option<&str>, plug: Option<&str>) -> Result<Config, String> {
    let mut lines = zeroize::Zeroizing::new(Vec::with_capacity(options.len() + 1024));
    lines.extend_from_slice(options);
    // These are the lines that the fencer adds when it fences. Options that only print a text are refused with an action.
    let name = ACTIONS.iter().find(|(_, known, _)| *known == action).map_or("", |(name, ..)| name);
    lines.extend_from_slice(format!("action={name}\n").as_bytes());
    if let Some(target) = target {
        lines.extend_from_slice(format!("nodename={target}\nport={}\n", plug.unwrap_or(target)).as_bytes());
    }
    let given = input::from_lines(&lines);
    Config::read(action, &given, Environment::default()).map_err(|faults| faults.join("; "))
}

/// Returns the result for a device that could not be examined, for the reason `why`.
pub fn failed(why: String) -> Examined {
    let note = BmcNote { at: clock::wall_seconds(), failure: Some(why), ..BmcNote::default() };
    Examined { note, ..Examined::default() }
}
