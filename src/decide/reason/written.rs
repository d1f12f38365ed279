//! How far data reaches and until when, for people. The clock of a machine may be wrong, so it decides nothing.

use std::fmt;

use crate::decide::evidence::LogPosition;

/// A place in a log, behind its word; nothing where it is not known, as an etcd without a leader may not tell it.
pub(super) struct At(pub(super) &'static str, pub(super) LogPosition);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(word, LogPosition { term, index }) = self;
        if self.1 == LogPosition::default() { Ok(()) } else { write!(f, "{word} term {term} index {index}") }
    }
}

/// The words that follow a place in the log; none where the time is not known.
#[derive(Clone, Copy, Debug)]
pub struct LastWritten(pub Option<u64>);

impl fmt::Display for LastWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |seconds| write!(f, ", last written {}", utc(seconds)))
    }
}

/// Seconds since 1970 as people read them: `2026-11-21 07:00:00Z`.
pub fn utc(seconds: u64) -> String {
    let known = i64::try_from(seconds).ok().and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok());
    known.map_or_else(
        || seconds.to_string(),
        |at| {
            let (date, (hour, minute, second)) = (at.date(), at.to_hms());
            format!("{date} {hour:02}:{minute:02}:{second:02}Z")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(utc(0), "1970-01-01 00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00Z");
        assert_eq!(utc(1_798_761_599), "2026-12-31 23:59:59Z");
        assert_eq!(utc(1_709_164_800), "2024-02-29 00:00:00Z");
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        assert_eq!(LastWritten(None).to_string(), "");
        assert_eq!(LastWritten(Some(951_782_399)).to_string(), ", last written 2000-02-28 23:59:59Z");
    }
}
