//! Durations as Go writes them: `1m30s`, `1.5s`, `200ms`.

const UNITS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Parses a duration such as `1m30s`. Returns it in nanoseconds; `None` if `text` is no duration.
pub(super) fn nanoseconds(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest.get(..end)?.parse().ok()?;
        rest = rest.get(end..)?;
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (_, factor) = UNITS.iter().find(|(unit, _)| rest.get(..end) == Some(unit))?;
        total += number * factor;
        rest = rest.get(end..)?;
    }
    // The limit is about 285 years. Below it the conversion is exact to the nanosecond for every realistic value.
    let fits = !text.is_empty() && total < 9e18;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    fits.then_some(total.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("5s", Some(5_000_000_000)),
            ("200ms", Some(200_000_000)),
            ("1m30s", Some(90_000_000_000)),
            ("1.5s", Some(1_500_000_000)),
            ("7us", Some(7_000)),
            ("0", Some(0)),
            ("", None),
            ("5", None),
            ("s", None),
            ("5 s", None),
            ("-5s", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text}");
        }
    }
}
