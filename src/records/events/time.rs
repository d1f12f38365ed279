//! The times of events: milliseconds in memory, RFC 3339 in a line.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serializer, de};

/// Formats milliseconds since 1970 as `2026-11-23T14:00:00.125Z`.
pub(super) fn text(millis: u64) -> String {
    // The last time with a valid format is in the year 9999.
    let at = UNIX_EPOCH.checked_add(Duration::from_millis(millis.min(253_402_300_799_999))).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_millis(at).to_string()
}

pub(super) fn serialize<T: Copy + Into<u64>, S: Serializer>(millis: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text((*millis).into()))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    let at = humantime::parse_rfc3339_weak(&text).map_err(de::Error::custom)?;
    Ok(at.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}
