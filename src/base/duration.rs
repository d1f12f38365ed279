//! Durations as operators type them.

use std::time::Duration;

/// Reads a duration: a number of seconds, or numbers with units such as `90m`. The error gives examples.
pub fn duration(text: &str) -> Result<Duration, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let read = if is_number { humantime::parse_duration(&format!("{text}s")) } else { humantime::parse_duration(text) };
    read.map_err(|_| format!("'{text}' is no duration: type one such as 3 or 3s (seconds), 90m, 24h or 7d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_seconds_and_a_unit_is_what_it_says() {
        for (text, seconds) in
            [("3", 3), ("3s", 3), ("0", 0), ("90m", 5_400), ("24h", 86_400), ("7d", 604_800), ("1h 30m", 5_400)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1_500)));
    }

    #[test]
    fn an_error_repeats_what_was_typed_and_gives_examples() {
        for text in ["", "soon", "3x", "-3", "1.5.2", "99999999999999999999"] {
            let why = duration(text).unwrap_err();
            assert!(why.starts_with(&format!("'{text}' is no duration")) && why.contains("90m, 24h or 7d"), "{why}");
        }
    }
}
