//! The outcomes of the last questions of one kind, and the time limit that follows from them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The number of outcomes that are kept for each kind of request. A slow answer is forgotten after as many later ones. This
/// node's etcd answers every few seconds.
const KEPT: usize = 8;
/// The factor by which the slowest recorded answer is multiplied to get the next time limit.
const MARGIN: u32 = 3;
/// The factor by which an exceeded time limit is multiplied to get the next time limit.
const GROWTH: u32 = 2;
/// The greatest time limit after requests that timed out, as a multiple of the least limit. Even a machine that is thirty times slower
/// needs less, and an action must have time for several observations.
const GUESSED_FLOORS: u32 = 12;
/// The divisor of the least time limit. An answer within the quotient counts as fast.
const QUICK_PART: u32 = 32;
/// The greatest time of an outcome in milliseconds, even if a file contains a greater one.
const LONGEST_MS: u64 = 3_600_000;

/// The outcome of one request to another program, with a time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The request was answered after the time in the field.
    Answered(u64),
    /// The request was not answered within the time in the field.
    TooLate(u64),
}

impl Outcome {
    pub(super) fn answered(took: Duration) -> Self {
        Self::Answered(millis(took))
    }

    pub(super) fn too_late(waited: Duration) -> Self {
        Self::TooLate(millis(waited))
    }

    fn is_within(self, limit: Duration) -> bool {
        matches!(self, Self::Answered(ms) if ms <= millis(limit))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).min(LONGEST_MS)
}

fn time(ms: u64) -> Duration {
    Duration::from_millis(ms.min(LONGEST_MS))
}

/// The last outcomes of requests of one kind, newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Outcomes(Vec<Outcome>);

impl Outcomes {
    /// Returns the next time limit that follows from these outcomes. Ignores requests that timed out since the last answer, unless
    /// `may_guess` is true.
    pub(super) fn wanted(&self, floor: Duration, may_guess: bool) -> Duration {
        let guessed = if may_guess { self.guessed(floor) } else { Duration::ZERO };
        (self.slowest() * MARGIN).max(guessed)
    }

    /// Returns a time limit that is longer than the ones exceeded since the last answer; zero if none was exceeded.
    pub(super) fn guessed(&self, floor: Duration) -> Duration {
        (time(self.since_the_last_answer().max().unwrap_or_default()) * GROWTH).min(floor * GUESSED_FLOORS)
    }

    /// Returns the number of requests that timed out since the last answer.
    pub(super) fn unanswered(&self) -> u64 {
        u64::try_from(self.since_the_last_answer().count()).unwrap_or(u64::MAX)
    }

    /// Returns the times of the requests that timed out since the last answer, in milliseconds, newest first.
    fn since_the_last_answer(&self) -> impl Iterator<Item = u64> {
        self.0.iter().rev().map_while(|outcome| match outcome {
            Outcome::TooLate(ms) => Some(*ms),
            Outcome::Answered(_) => None,
        })
    }

    /// Returns the time of the slowest recorded answer; zero if there is none.
    pub(super) fn slowest(&self) -> Duration {
        let answers = self.0.iter().filter_map(|outcome| match outcome {
            Outcome::Answered(ms) => Some(*ms),
            Outcome::TooLate(_) => None,
        });
        time(answers.max().unwrap_or_default())
    }

    /// Returns whether there are outcomes, and all of them are answers within `limit`.
    pub(super) fn are_all_within(&self, limit: Duration) -> bool {
        !self.0.is_empty() && self.0.iter().all(|outcome| outcome.is_within(limit))
    }

    /// Adds an outcome. Returns whether the outcomes have changed and must be saved. If all recorded answers were fast, another fast answer
    /// is not added.
    pub(super) fn add(&mut self, outcome: Outcome, floor: Duration) -> bool {
        let quick = floor / QUICK_PART;
        if outcome.is_within(quick) && self.are_all_within(quick) {
            return false;
        }
        self.0.push(outcome);
        let beyond = self.0.len().saturating_sub(KEPT);
        self.0.drain(..beyond);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_millis(2_500);

    fn after(outcomes: &[Outcome]) -> Outcomes {
        let mut all = Outcomes::default();
        for outcome in outcomes {
            all.add(*outcome, FLOOR);
        }
        all
    }

    fn wanted_ms(outcomes: &[Outcome]) -> u128 {
        after(outcomes).wanted(FLOOR, true).as_millis()
    }

    use Outcome::{Answered, TooLate};

    #[test]
    fn a_question_has_three_times_what_the_slowest_of_the_last_answers_took() {
        assert_eq!(wanted_ms(&[]), 0);
        assert_eq!(wanted_ms(&[Answered(2_000), Answered(4_000), Answered(1_000)]), 12_000);
    }

    #[test]
    fn who_did_not_answer_in_time_has_twice_as_long_until_there_is_an_answer() {
        assert_eq!(wanted_ms(&[TooLate(2_500)]), 5_000);
        assert_eq!(wanted_ms(&[TooLate(2_500), TooLate(5_000)]), 10_000);
        // An action's end may leave a question almost no time, so its missing answer proves nothing.
        assert_eq!(wanted_ms(&[TooLate(5_000), TooLate(10)]), 10_000);
        assert_eq!(wanted_ms(&[TooLate(2_500), Answered(300)]), 900);
        assert_eq!(wanted_ms(&[Answered(4_000), TooLate(2_500)]), 12_000);
        assert_eq!(after(&[TooLate(2_500)]).wanted(FLOOR, false), Duration::ZERO);
        assert_eq!(wanted_ms(&[TooLate(60_000)]), 30_000, "a start looks around now and then");
    }

    #[test]
    fn a_slow_moment_is_forgotten_after_some_quick_answers() {
        let mut all = after(&[Answered(20_000)]);
        for _ in 0..KEPT - 1 {
            assert!(all.add(Answered(5), FLOOR));
            assert_eq!(all.slowest(), Duration::from_secs(20));
        }
        all.add(Answered(5), FLOOR);
        assert_eq!(all.wanted(FLOOR, true), Duration::from_millis(15));
        assert_eq!(all.0.len(), KEPT);
    }

    /// Asserts that a fast answer is not added if all recorded answers were fast, because each monitor of a healthy machine would then
    /// write a file.
    #[test]
    fn a_quick_answer_after_nothing_but_quick_ones_is_no_news() {
        let mut all = Outcomes::default();
        assert!(all.add(Answered(20), FLOOR));
        assert!(!all.add(Answered(78), FLOOR));
        assert!(all.add(Answered(79), FLOOR));
        assert!(all.add(Answered(20), FLOOR), "what is to be forgotten");
        assert!(all.add(TooLate(20), FLOOR));
    }

    #[test]
    fn nothing_in_a_file_takes_longer_than_an_hour() {
        let outcomes = r#"[{"answered":18446744073709551615},{"too_late":18446744073709551615}]"#;
        let all: Outcomes = serde_json::from_str(outcomes).unwrap();
        assert_eq!(all.slowest(), Duration::from_secs(3_600));
        assert_eq!(all.guessed(FLOOR), FLOOR * GUESSED_FLOORS);
    }
}
