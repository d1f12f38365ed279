//! Durations in the CIB, read as Pacemaker reads them (`lib/common/utils.c`, `lib/common/iso8601.c`).

/// Returns the milliseconds of a duration in the CIB, such as `60s`, `60`, `200ms`, `1min` or `PT1M30S`; `None` for any other text.
pub fn millis(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(period) = text.strip_prefix("PT") {
        return iso_period(period);
    }
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().ok()?;
    match unit.trim().to_ascii_lowercase().as_str() {
        "" | "s" | "sec" => number.checked_mul(1_000),
        "ms" | "msec" => Some(number),
        "us" | "usec" => Some(number / 1_000),
        "m" | "min" => number.checked_mul(60_000),
        "h" | "hr" => number.checked_mul(3_600_000),
        "d" => number.checked_mul(86_400_000),
        _ => None,
    }
}

/// Returns the milliseconds of that part of an ISO 8601 period that follows `PT`, such as `1H30M5S`.
fn iso_period(mut text: &str) -> Option<u64> {
    let mut sum = 0_u64;
    while !text.is_empty() {
        let end = text.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, rest) = text.split_at(end);
        let unit = match rest.get(..1)? {
            "H" => 3_600_000,
            "M" => 60_000,
            "S" => 1_000,
            _ => return None,
        };
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        text = rest.get(1..)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_spelling() {
        for (text, expected) in [
            ("60s", Some(60_000)),
            ("60", Some(60_000)),
            ("0", Some(0)),
            ("200ms", Some(200)),
            ("2 min", Some(120_000)),
            (" 2min ", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("PT1M30S", Some(90_000)),
            ("INFINITY", None),
            ("", None),
            ("1w", None),
            ("soon", None),
            ("5 years", None),
            ("-1", None),
            ("1.5", None),
            ("500ms", Some(500)),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }
}
