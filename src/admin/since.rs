//! The beginning of a period that ends now, in the words that `journalctl --since` accepts.

use std::time::{Duration, UNIX_EPOCH};

use crate::base::duration;

const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// The beginning of a period. Days begin at 00:00 UTC, because the times of events are in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    Ago(Duration),
    Yesterday,
    Today,
    /// The beginning as a time in milliseconds since 1970.
    At(u64),
}

impl Since {
    /// Parses `now`, `today`, `yesterday`, a duration before now, or a date.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text {
            "now" => return Ok(Self::Ago(Duration::ZERO)),
            "today" => return Ok(Self::Today),
            "yesterday" => return Ok(Self::Yesterday),
            _ => {}
        }
        let ago = text.strip_prefix('-').unwrap_or(text);
        if let Ok(ago) = duration(ago.strip_suffix(" ago").unwrap_or(ago)) {
            return Ok(Self::Ago(ago));
        }
        date(text).map(Self::At).ok_or_else(|| {
            format!(
                "'{text}' is no time: type one such as 90m, 24h, 7d, -2h, yesterday, today, now or \"2026-11-23 08:30\""
            )
        })
    }

    /// Returns the beginning in milliseconds since 1970. `now` is the present time in the same unit.
    pub(super) fn begin(self, now: u64) -> u64 {
        let midnight = now - now % DAY_MILLIS;
        match self {
            Self::Ago(ago) => now.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)),
            Self::Yesterday => midnight.saturating_sub(DAY_MILLIS),
            Self::Today => midnight,
            Self::At(millis) => millis,
        }
    }
}

/// Parses a date with or without hours, minutes and seconds. Returns milliseconds since 1970, or `None` if the text
/// is no date.
fn date(text: &str) -> Option<u64> {
    let whole = ["", ":00", " 00:00:00"].map(|rest| format!("{text}{rest}"));
    let at = whole.iter().find_map(|text| humantime::parse_rfc3339_weak(text).ok())?;
    u64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time 2026-11-23 08:30:00 UTC, in milliseconds since 1970.
    const NOW: u64 = 1_795_422_600_000;

    #[test]
    fn the_words_of_journalctl_are_read() {
        let hours = |hours: u64| NOW - hours * 3_600_000;
        for (text, begin) in [
            ("now", NOW),
            ("today", hours(0) - (8 * 60 + 30) * 60_000),
            ("yesterday", hours(24) - (8 * 60 + 30) * 60_000),
            ("-2h", hours(2)),
            ("2h", hours(2)),
            ("2 hours ago", hours(2)),
            ("7d", hours(7 * 24)),
            ("3600", hours(1)),
            ("2026-11-23", hours(0) - (8 * 60 + 30) * 60_000),
            ("2026-11-23 08:30", NOW),
            ("2026-11-23 08:29:59", NOW - 1000),
            ("2026-11-23 08:30:00Z", NOW),
            ("2026-11-23T08:30:00Z", NOW),
        ] {
            assert_eq!(Since::read(text).map(|since| since.begin(NOW)), Ok(begin), "{text}");
        }
    }

    #[test]
    fn an_error_gives_examples() {
        for text in ["", "soon", "tomorrow", "--", "2026-13-01"] {
            let why = Since::read(text).unwrap_err();
            assert!(why.contains("yesterday, today, now"), "{why}");
        }
    }
}
