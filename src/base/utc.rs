//! Dates for people.

/// Formats seconds since 1970 as `2026-11-21 07:00:00Z`. Returns the bare number for a time that no calendar date can express.
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
}
