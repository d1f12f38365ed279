//! What a fence device's last look at its BMC found: written by `fence_redfish_rs`' monitor, which Pacemaker repeats, and read
//! by whoever wants to know whether fencing would work. It costs the BMC no request of its own.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where the notes are, one file for each system behind each BMC.
pub const DIRECTORY: &str = "/var/lib/tandem/bmc";

/// No note is larger, and no larger file is read for one.
pub const LIMIT: u64 = 64 * 1024;

/// The last action that was to switch a system off. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FencingNote {
    pub began_at_millis: u64,
    /// When the last one that ended did: earlier than `began_at_millis` while another one is under way, or was killed.
    pub ended_at_millis: Option<u64>,
    /// Why the last one that ended proved no Off, in the fence agent's own words.
    pub failure: Option<String>,
}

/// One look. Times are seconds since 1970 by the clock of the node that looked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcNote {
    /// The BMC's address as the device has it, with its port where that is not 443.
    pub address: String,
    /// The system's path at the BMC, or what the device calls it while it was not found.
    pub system: String,
    /// 0 where the BMC was never looked at: its device has begun to fence before.
    pub at: u64,
    /// How long the look took, in milliseconds.
    pub millis: u64,
    /// Why it failed, in the fence agent's own words; `None` where it succeeded.
    pub failure: Option<String>,
    /// When a look last succeeded, which this one keeps from the one before.
    pub last_success: Option<u64>,
    /// The system's UUID as the BMC says it.
    pub uuid: Option<String>,
    /// `On`, `Off` or the BMC's own word.
    pub power: Option<String>,
    /// The chassis that reports On while the system reports Off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chassis_on: Option<String>,
    /// The BMC's `LastResetTime`, as it is written there.
    pub last_reset: Option<String>,
    /// The reset types that the BMC says it allows; `None` where it does not say.
    pub reset_types: Option<Vec<String>>,
    /// The BMC's `PowerRestorePolicy`: `AlwaysOn`, `AlwaysOff`, `LastState`.
    pub restore_policy: Option<String>,
    /// When the BMC's certificate ends.
    pub certificate_ends: Option<u64>,
    /// The SHA-256 fingerprint of that certificate, as `ssl_fingerprint` takes it.
    pub fingerprint: Option<String>,
    /// The BMC's clock (its `Date` header) minus ours, in seconds.
    pub clock_ahead: Option<i64>,
    /// How long the last time from a reset to a proven Off was, in milliseconds, where this node has fenced it.
    pub millis_to_off: Option<u64>,
    /// When it was proven Off then, and when it said On again after that, in milliseconds since 1970.
    pub off_at_millis: Option<u64>,
    pub on_at_millis: Option<u64>,
    /// This node's last action that was to switch the system off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fencing: Option<FencingNote>,
}

/// The file of a note: characters that no file's name should have become '-'.
pub fn path(directory: &Path, address: &str, system: &str) -> PathBuf {
    let last = system.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name: String = format!("{address}-{last}")
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' })
        .collect();
    directory.join(format!("{}.json", name.trim_start_matches('.')))
}
