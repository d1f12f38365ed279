//! The results of a fence device's last monitor of its BMC. `fence_redfish_rs`' monitor, which Pacemaker repeats, writes them.
//! Checks of the fencing read them. They cost the BMC no additional request.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The directory of the notes about BMCs. A note is a file about one system behind one BMC.
pub const DIRECTORY: &str = "/var/lib/tandem/bmc";

/// The greatest size in bytes of a file about a BMC. A larger file is not read.
pub const LIMIT: u64 = 64 * 1024;

/// The record of this node's last fencing of a system by `off` or `reboot`. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FencingNote {
    pub began_at_millis: u64,
    /// The end of the last fencing that has ended. It is earlier than `began_at_millis` if a later fencing has begun and is under way, or
    /// was killed.
    pub ended_at_millis: Option<u64>,
    /// The reason why that fencing did not prove the system off, in the fence agent's own words; `None` after a success.
    pub failure: Option<String>,
}

/// The result of a fence device's last monitor of one system. Times are seconds since 1970 by this node's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcNote {
    /// The BMC's address in the device's configuration. The port is omitted if it is 443.
    pub address: String,
    /// The system's path at the BMC, or its name in the device's configuration if the system was not found.
    pub system: String,
    /// The time of the monitor; 0 if a fencing wrote this file before the device's first monitor.
    pub at: u64,
    /// The duration of the monitor in milliseconds.
    pub millis: u64,
    /// The failure of the monitor in the fence agent's own words; `None` after a success.
    pub failure: Option<String>,
    /// The time of the last successful monitor, which may be earlier than the last monitor; `None` if none was successful.
    pub last_success: Option<u64>,
    /// The system's UUID, as the BMC reports it.
    pub uuid: Option<String>,
    /// The power state of the system: `On`, `Off` or the BMC's own word.
    pub power: Option<String>,
    /// The path of a chassis that reports On while the system reports Off; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chassis_on: Option<String>,
    /// The system's `LastResetTime`, unchanged.
    pub last_reset: Option<String>,
    /// The reset types that the BMC allows; `None` if the BMC does not list them.
    pub reset_types: Option<Vec<String>>,
    /// The system's `PowerRestorePolicy`: `AlwaysOn`, `AlwaysOff` or `LastState`.
    pub restore_policy: Option<String>,
    /// The end of the validity of the BMC's certificate.
    pub certificate_ends: Option<u64>,
    /// The SHA-256 fingerprint of the BMC's certificate, in the form of the option `ssl_fingerprint`.
    pub fingerprint: Option<String>,
    /// The BMC's clock (the `Date` header of its answers) minus this node's clock, in seconds.
    pub clock_ahead: Option<i64>,
    /// The milliseconds from the reset to the proof that the system was off, in the last fencing by this node; `None` before the first
    /// fencing.
    pub millis_to_off: Option<u64>,
    /// The time at which the last fencing proved the system off, in milliseconds since 1970; `None` before the first fencing.
    pub off_at_millis: Option<u64>,
    /// The time at which the system reported On after the last fencing, in milliseconds since 1970; `None` if it has not reported On since.
    pub on_at_millis: Option<u64>,
    /// This node's last fencing of the system by `off` or `reboot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fencing: Option<FencingNote>,
}

/// Returns the path of the file about the system `system` behind the BMC at `address`. Characters that do not fit into a file's name become
/// '-'.
pub fn path(directory: &Path, address: &str, system: &str) -> PathBuf {
    let last = system.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name: String = format!("{address}-{last}")
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' })
        .collect();
    directory.join(format!("{}.json", name.trim_start_matches('.')))
}
