//! Time for the agents: a deadline that every wait belongs to, and wall time that only labels.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use crate::decide::reason::utc;

/// The end of an action, on the monotonic clock: a clock step moves nothing.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    began: Instant,
    budget: Duration,
}

impl Deadline {
    /// A deadline `budget` from now.
    pub fn after(budget: Duration) -> Self {
        Self { began: Instant::now(), budget }
    }

    /// All the time that the action has.
    pub fn budget(&self) -> Duration {
        self.budget
    }

    /// Time since the action began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Time that is left, zero once it has passed.
    pub fn left(&self) -> Duration {
        self.budget.saturating_sub(self.elapsed())
    }

    /// The smaller of `wanted` and what is left: the time-out for one step inside the action.
    pub fn at_most(&self, wanted: Duration) -> Duration {
        wanted.min(self.left())
    }

    /// Whether the time is used up.
    pub fn has_passed(&self) -> bool {
        self.left().is_zero()
    }

    /// Sleeps for `wanted`, but never past the deadline.
    pub fn sleep(&self, wanted: Duration) {
        sleep(self.at_most(wanted));
    }
}

/// The one place that sleeps.
#[expect(clippy::disallowed_methods, reason = "this is the function that the rule points to")]
pub fn sleep(wanted: Duration) {
    std::thread::sleep(wanted);
}

/// Nanoseconds since the machine started, sleep included: no two reads of one boot are alike.
pub fn boot_nanoseconds() -> u64 {
    let since = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).map(Duration::from);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Seconds since 1970 by the wall clock; for labels in notes and logs, never for a decision.
#[expect(clippy::disallowed_methods, reason = "this is the function that the rule points to")]
pub fn wall_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Wall time as `20260131T235959Z`, for the names of files; in the order of time only while the clock is right.
pub fn utc_stamp() -> String {
    let seconds = i64::try_from(wall_seconds()).unwrap_or_default();
    let at = time::OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!("{year:04}{:02}{day:02}T{hour:02}{minute:02}{second:02}Z", u8::from(month))
}
