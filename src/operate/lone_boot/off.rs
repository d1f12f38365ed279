//! The time for which a machine has been off: an unbroken row of observations that found it off.

use std::time::Duration;

use super::bmc::Answered;

/// Largest time between two reports of an unbroken series. In a longer gap the machine may have been on.
const APART: Duration = Duration::from_secs(40);

/// An unbroken series of reports that one machine is off. Times are durations since the boot of this node.
#[derive(Debug, Default)]
pub(super) struct OffRow(Option<Row>);

#[derive(Debug)]
struct Row {
    answered: Answered,
    first: Duration,
    last: Duration,
}

impl OffRow {
    /// Adds a BMC's report that arrived at `now` to the series of Off reports. A report that differs from the
    /// previous one begins a new series, or ends the series if the machine may be on. Returns whether the report
    /// continues the series.
    pub(super) fn take(&mut self, answered: Option<&Answered>, now: Duration) -> bool {
        let Some(answered) = answered.filter(|answered| answered.is_proven_off()) else {
            self.0 = None;
            return false;
        };
        let continued = self.0.take().filter(|row| row.answered == *answered && now.saturating_sub(row.last) <= APART);
        let is_continued = continued.is_some();
        let first = continued.map_or(now, |row| row.first);
        self.0 = Some(Row { answered: answered.clone(), first, last: now });
        is_continued
    }

    /// Returns whether the report `answered` is equal to the reports in the series of Off reports.
    pub(super) fn goes_with(&self, answered: &Answered) -> bool {
        answered.is_proven_off() && self.0.as_ref().is_some_and(|row| row.answered == *answered)
    }

    /// Returns the time from the first to the last report in the series of Off reports, and the time from the last
    /// one to `now`. Returns `None` if there is no report.
    pub(super) fn lasted(&self, now: Duration) -> Option<(Duration, Duration)> {
        let row = self.0.as_ref()?;
        Some((row.last.saturating_sub(row.first), now.saturating_sub(row.last)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::bmc::Seen;
    use super::*;

    fn answered(power: Seen) -> Answered {
        let uuid = Some("4c4c4544-0032-3510-8054-b4c04f303158".to_owned());
        Answered { power, found: uuid.clone(), by_device: uuid, by_agent: None, resets: Vec::new() }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Returns the seconds from the first report of a series to the last one. The machine reports Off at 0, 10, 20 and 40 s. At 30 s the
    /// report `one` arrives.
    fn lasted_with(one: Option<&Answered>) -> u64 {
        let (mut row, off) = (OffRow::default(), answered(Seen::Off));
        for (seconds, is_continued) in [(0, false), (10, true), (20, true)] {
            assert_eq!(row.take(Some(&off), at(seconds)), is_continued);
        }
        row.take(one, at(30));
        row.take(Some(&off), at(40));
        row.lasted(at(43)).filter(|(_, age)| *age == at(3)).unwrap().0.as_secs()
    }

    #[test]
    fn any_other_answer_begins_a_new_row() {
        let off = answered(Seen::Off);
        assert_eq!(lasted_with(Some(&off)), 40);
        assert_eq!(lasted_with(None), 0, "no answer");
        for power in [Seen::On, Seen::Unclear("PoweringOn".to_owned()), Seen::Silent("late".to_owned())] {
            assert_eq!(lasted_with(Some(&answered(power))), 0);
        }
        let other = Some("7a4e1000-0000-4000-8000-0000000000ff".to_owned());
        assert_eq!(lasted_with(Some(&Answered { found: other.clone(), ..off.clone() })), 0, "another machine");
        assert_eq!(lasted_with(Some(&Answered { found: other.clone(), by_device: other, ..off.clone() })), 0);
        let reset = Answered { resets: vec!["2026-11-19T21:58:02Z".to_owned()], ..off };
        assert_eq!(lasted_with(Some(&reset)), 0, "it was reset in between");
    }

    #[test]
    fn looks_that_are_far_apart_make_no_row() {
        let (mut row, off) = (OffRow::default(), answered(Seen::Off));
        row.take(Some(&off), at(0));
        assert!(row.take(Some(&off), at(40)) && !row.take(Some(&off), at(81)));
        assert_eq!(row.lasted(at(81)), Some((at(0), at(0))));
        assert!(row.goes_with(&off) && !row.goes_with(&answered(Seen::On)));
    }
}
