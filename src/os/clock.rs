//! Time for the agents: deadlines, which every wait has, and wall time, which is only for labels.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time limit of an action, by the monotonic clock. A step of the wall clock does not move it.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    began: Instant,
    budget: Duration,
}

impl Deadline {
    /// Creates a time limit for an action that begins now. It ends after `budget`.
    pub fn after(budget: Duration) -> Self {
        Self { began: Instant::now(), budget }
    }

    /// Returns the whole time from the beginning of the action to its limit.
    pub fn budget(&self) -> Duration {
        self.budget
    }

    /// Returns the time since the action began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the remaining time; zero after the limit.
    pub fn left(&self) -> Duration {
        self.budget.saturating_sub(self.elapsed())
    }

    /// Returns the smaller of `wanted` and the remaining time, for callers that need the time-out of one step.
    pub fn at_most(&self, wanted: Duration) -> Duration {
        wanted.min(self.left())
    }

    /// Returns whether the time limit has passed.
    pub fn has_passed(&self) -> bool {
        self.left().is_zero()
    }

    /// Sleeps for `wanted`, but not beyond the time limit.
    pub fn sleep(&self, wanted: Duration) {
        sleep(self.at_most(wanted));
    }
}

/// Sleeps for `wanted`. All of the program's sleeps use this function.
#[expect(clippy::disallowed_methods, reason = "this is the function that the rule points to")]
pub fn sleep(wanted: Duration) {
    std::thread::sleep(wanted);
}

/// Returns the nanoseconds since the machine started, suspended time included. No two calls in one boot return the same number.
pub fn boot_nanoseconds() -> u64 {
    let since = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).map(Duration::from);
    since.map_or(0, nanoseconds)
}

/// Returns the nanoseconds in `time`, or the greatest number if they are more.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the seconds since 1970 by the wall clock. They are only for files and logs, and never for a decision, because the wall clock may
/// step.
#[expect(clippy::disallowed_methods, reason = "this is the function that the rule points to")]
pub fn wall_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the milliseconds since 1970 by the wall clock. Like those of [`wall_seconds`], they are only for files and logs.
#[expect(clippy::disallowed_methods, reason = "this is the function that the rule points to")]
pub fn wall_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the wall-clock time as `20260131T235959Z`, for names of files. Such names sort by time only while the clock is right.
pub fn utc_stamp() -> String {
    let seconds = i64::try_from(wall_seconds()).unwrap_or_default();
    let at = time::OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!("{year:04}{:02}{day:02}T{hour:02}{minute:02}{second:02}Z", u8::from(month))
}

/// Returns the month with the short English name `name`, such as `Jan` (as C's `ctime` prints it); `None` for another text.
pub fn month(name: &str) -> Option<time::Month> {
    const NAMES: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let number = 1 + u8::try_from(NAMES.iter().position(|known| *known == name)?).ok()?;
    time::Month::try_from(number).ok()
}

/// Returns the time in a text of [`utc_stamp`], in seconds since 1970; `None` for any other text.
pub fn of_utc_stamp(stamp: &str) -> Option<u64> {
    let part = |from: usize, to: usize| stamp.get(from..to)?.parse::<u8>().ok();
    let is_one = stamp.len() == 16 && stamp.get(8..9) == Some("T") && stamp.ends_with('Z');
    let month = time::Month::try_from(part(4, 6)?).ok()?;
    let day = time::Date::from_calendar_date(stamp.get(..4)?.parse().ok()?, month, part(6, 8)?).ok()?;
    let at = time::PrimitiveDateTime::new(day, time::Time::from_hms(part(9, 11)?, part(11, 13)?, part(13, 15)?).ok()?);
    u64::try_from(at.assume_utc().unix_timestamp()).ok().filter(|_| is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_nothing_else_is() {
        let now = wall_seconds();
        let read = of_utc_stamp(&utc_stamp()).unwrap();
        assert!((now..now + 60).contains(&read), "{read}");
        assert_eq!(of_utc_stamp("20260131T235959Z"), Some(1_769_903_999));
        for wrong in
            ["", "20260131T235959", "20260231T235959Z", "20260131-235959Z", "20260131T245959Z", "2026013éT23595Z"]
        {
            assert_eq!(of_utc_stamp(wrong), None, "{wrong}");
        }
    }
}
