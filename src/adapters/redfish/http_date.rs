//! The `Date` header of an answer: the BMC's clock, to the second.

use time::{Date, PrimitiveDateTime, Time};

use crate::os::clock::month;

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`; nothing for the two older forms, which no service sends any more.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let mut words = text.split_ascii_whitespace().skip(1);
    let day = words.next()?.parse().ok()?;
    let month = month(words.next()?)?;
    let year = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<u8>);
    let mut part = || clock.next()?.ok();
    let (hour, minute, second) = (part()?, part()?, part()?);
    if words.next() != Some("GMT") {
        return None;
    }
    let date = Date::from_calendar_date(year, month, day).ok()?;
    // The 61st second of a minute is the next minute's first to everybody else.
    let at = Time::from_hms(hour, minute, second.min(59)).ok()?;
    Some(PrimitiveDateTime::new(date, at).assume_utc().unix_timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_form_is_a_date() {
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Sat, 31 Dec 2016 23:59:60 GMT"), seconds("Sat, 31 Dec 2016 23:59:59 GMT"));
        for other in [
            "",
            "now",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 31 Feb 2026 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 99999999999 08:49:37 GMT",
        ] {
            assert_eq!(seconds(other), None, "{other}");
        }
    }
}
