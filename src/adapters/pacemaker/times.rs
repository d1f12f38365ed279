//! Times in the human-readable output of Pacemaker's tools. The tools run in UTC, so a time without a zone is in UTC.

use time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};

use crate::os::clock;

/// Returns the seconds since 1970 of a time in Pacemaker's output. Its form is `Mon Nov 23 14:02:51 2026` (up to 2.1.5), `2026-11-23
/// 14:02:51Z` or `2026-11-23 15:02:51 +01:00`, with or without a fraction.
///
/// Returns `None` for invalid text, and for the beginning of 1970, which means "never".
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let seconds = match text.parse::<i64>() {
        Ok(seconds) => seconds,
        Err(_) if text.starts_with(|letter: char| letter.is_ascii_digit()) => calendar(text)?,
        Err(_) => ctime(text)?,
    };
    u64::try_from(seconds).ok().filter(|seconds| *seconds > 0)
}

/// Reads a time such as `Mon Nov 23 14:02:51 2026`. A day of one digit has a blank in front.
fn ctime(text: &str) -> Option<i64> {
    let mut words = text.split_whitespace();
    let (_, month, day, of_day, year) = (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    Some(since_1970(date(year, clock::month(month)?, day)?, time_of_day(of_day)?, UtcOffset::UTC))
}

/// Reads a time such as `2026-11-23 14:02:51Z` or `2026-11-23 15:02:51 +01:00`.
fn calendar(text: &str) -> Option<i64> {
    let (day, rest) = text.split_once([' ', 'T'])?;
    let mut parts = day.split('-');
    let (year, month, day) = (parts.next()?, Month::try_from(parts.next()?.parse::<u8>().ok()?).ok()?, parts.next()?);
    let rest = rest.trim();
    let end = rest.find(['Z', '+', '-', ' ']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(end);
    Some(since_1970(date(year, month, day)?, time_of_day(clock)?, offset(zone.trim())?))
}

fn date(year: &str, month: Month, day: &str) -> Option<Date> {
    Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()
}

fn time_of_day(clock: &str) -> Option<Time> {
    let whole = clock.split('.').next()?;
    let mut parts = whole.split(':').map(str::parse::<u8>);
    let mut next = || parts.next()?.ok();
    Time::from_hms(next()?, next()?, next()?).ok()
}

/// Reads the time zone in a time: `Z`, nothing, or `+01:00`.
fn offset(zone: &str) -> Option<UtcOffset> {
    if matches!(zone, "" | "Z" | "UTC") {
        return Some(UtcOffset::UTC);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let digits: String = zone.get(1..)?.chars().filter(|letter| *letter != ':').collect();
    let (hours, minutes): (i8, i8) = (digits.get(..2)?.parse().ok()?, digits.get(2..4).unwrap_or("0").parse().ok()?);
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

fn since_1970(date: Date, time: Time, offset: UtcOffset) -> i64 {
    PrimitiveDateTime::new(date, time).assume_offset(offset).unix_timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pacemakers_way_to_write_a_time_is_read() {
        for text in [
            "Mon Nov 23 14:02:51 2026",
            "2026-11-23 14:02:51Z",
            "2026-11-23 14:02:51",
            "2026-11-23 15:02:51 +01:00",
            "2026-11-23 15:02:51+01:00",
            "2026-11-23 08:32:51 -05:30",
            "2026-11-23 14:02:51.123456Z",
            "2026-11-23 15:02:51.5 +01:00",
            "2026-11-23T14:02:51Z",
            "1795442571",
            " 1795442571 ",
        ] {
            assert_eq!(parse(text), Some(1_795_442_571), "{text}");
        }
        assert_eq!(parse("Sun Nov  1 00:00:00 2026"), Some(1_793_491_200));
    }

    #[test]
    fn what_is_no_time_and_what_stands_for_never_is_none() {
        for text in [
            "",
            "never",
            "Mon Nov 23",
            "Mon Brumaire 23 14:02:51 2026",
            "2026-11-31 14:02:51Z",
            "2026-11-23",
            "2026-11-23 25:02:51Z",
            "2026-11-23 14:02Z",
            "2026-11-23 14:02:51 +é",
            "2026-11-23 14:02:51 CET",
            "Thu Jan  1 00:00:00 1970",
            "1970-01-01 00:00:00Z",
            "0",
            "-1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
