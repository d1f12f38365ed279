//! Times, spans and sizes in words for people, and times for programs.

use std::time::{Duration, UNIX_EPOCH};

/// The last second that RFC 3339 can express, which is in the year 9999, in seconds since 1970.
const LAST: u64 = 253_402_300_799;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Formats seconds since 1970 by RFC 3339: `2026-11-21T07:00:00Z`.
pub(crate) fn rfc3339(seconds: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds.min(LAST))).to_string()
}

/// Formats a number of seconds in its largest unit: `40 s`, `12 min`, `5 h`, `3 days`.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        _ if seconds < 2 * DAY => "1 day".to_owned(),
        _ => format!("{} days", seconds / DAY),
    }
}

/// Formats the time from `then` to `now`. A time in the future counts as now, because the clocks of two nodes differ a little.
pub(crate) fn ago(now: u64, then: u64) -> String {
    format!("{} ago", span(now.saturating_sub(then)))
}

/// Formats a number of bytes in its largest unit.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut whole = bytes;
    let mut rest = 0;
    let mut unit = "";
    for next in UNITS {
        if whole < 1000 {
            break;
        }
        (whole, rest, unit) = (whole / 1000, whole % 1000, next);
    }
    if whole < 10 { format!("{whole}.{} {unit}", rest / 100) } else { format!("{whole} {unit}") }
}

/// Formats milliseconds: `12 ms`, `1.4 s`.
pub(crate) fn millis(millis: u64) -> String {
    if millis < 1000 { format!("{millis} ms") } else { format!("{}.{} s", millis / 1000, millis % 1000 / 100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_right_up_to_the_last_one() {
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn spans_and_sizes_have_one_unit() {
        let told = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 172_800].map(span);
        assert_eq!(told, ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 day", "2 days"]);
        let told = [999, 1_000, 20_480, 1_234_567, 98_765_432, 2_147_483_648].map(size);
        assert_eq!(told, ["999 bytes", "1.0 kB", "20 kB", "1.2 MB", "98 MB", "2.1 GB"]);
        assert_eq!([999, 1_460].map(millis), ["999 ms", "1.4 s"]);
        assert_eq!(ago(10, 20), "0 s ago");
    }
}
