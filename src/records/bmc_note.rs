//! The results of a fence device's last monitor of its BMC. `fence_redfish_rs`' monitor, which Pacemaker repeats, writes them.
//! Checks of the fencing read them. They cost the BMC no additional request.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The directory of the notes, with one file for each system behind each BMC.
pub const DIRECTORY: &str = "/var/lib/tandem/bmc";

/// The largest note in bytes.
pub const LIMIT: u64 = 64 * 1024;

/// The last action that switches a system off. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FencingNote {
    pub began_at_millis: u64,
    /// The end of the last action that has ended. It is earlier than `began_at_millis` while another action is under way, or was
    /// killed.
    pub ended_at_millis: Option<u64>,
    /// The reason why the last action that has ended proved no Off, in the fence agent's own words.
    pub failure: Option<String>,
}

/// One observation. Times are seconds since 1970 by the clock of the observing node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcNote {
    /// The BMC's address in the device's configuration, with its port unless that is 443.
    pub address: String,
    /// The system's path at the BMC, or its name in the device's configuration if it was not found.
    pub system: String,
    /// The time; 0 if the BMC was never observed, because its device has begun to fence first.
    pub at: u64,
    /// The duration of the observation in milliseconds.
    pub millis: u64,
    /// The failure in the fence agent's own words; `None` after a success.
    pub failure: Option<String>,
    /// The time of the last success, which is kept from earlier notes.
    pub last_success: Option<u64>,
    /// The system's UUID, as the BMC reports it.
    pub uuid: Option<String>,
    /// `On`, `Off` or the BMC's own word.
    pub power: Option<String>,
    /// The chassis that reports On while the system reports Off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chassis_on: Option<String>,
    /// The BMC's `LastResetTime`, unchanged.
    pub last_reset: Option<String>,
    /// The reset types that the BMC allows; `None` where it does not list them.
    pub reset_types: Option<Vec<String>>,
    /// The BMC's `PowerRestorePolicy`: `AlwaysOn`, `AlwaysOff`, `LastState`.
    pub restore_policy: Option<String>,
    /// The end of the BMC's certificate.
    pub certificate_ends: Option<u64>,
    /// The SHA-256 fingerprint of that certificate, in the form of `ssl_fingerprint`.
    pub fingerprint: Option<String>,
    /// The BMC's clock (its `Date` header) minus this node's, in seconds.
    pub clock_ahead: Option<i64>,
    /// The milliseconds from the last reset to a proven Off, where this node has fenced it.
    pub millis_to_off: Option<u64>,
    /// The time of that proof in milliseconds since 1970. The next field has the time at which the system reported On after it.
    pub off_at_millis: Option<u64>,
    pub on_at_millis: Option<u64>,
    /// This node's last action that switches the system off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fencing: Option<FencingNote>,
}

/// Returns the path of a note. Characters that are unsuitable for a file's name become '-'.
pub fn path(directory: &Path, address: &str, system: &str) -> PathBuf {
    let last = system.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name: String = format!("{address}-{last}")
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' })
        .collect();
    directory.join(format!("{}.json", name.trim_start_matches('.')))
}
