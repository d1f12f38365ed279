//! The duration of a suspicion, and the health score of this node.

use std::collections::BTreeSet;
use std::time::Duration;

use super::input::Name;

/// The highest health score, which means the worst health.
const WORST: u8 = 7;
/// The number of independent confirmations that shorten a suspicion to its shortest duration. Short lists need fewer.
const ENOUGH: usize = 2;

/// A suspicion that a member is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suspicion {
    pub(super) began: Duration,
    /// The start number of the suspected member.
    pub(super) number: u64,
    /// The incarnation of the suspected member at the beginning of the suspicion.
    pub(super) incarnation: u16,
    /// The member from which this node learned of the suspicion.
    pub(super) first: Name,
    /// The members that themselves failed to reach the suspect. A member that only forwards another one's report does not count.
    pub(super) accusers: BTreeSet<Name>,
    /// The time for which this node itself was held up during the suspicion.
    pub(super) held: Duration,
}

impl Suspicion {
    pub(super) fn new(began: Duration, number: u64, incarnation: u16, first: Name) -> Self {
        Self { began, number, incarnation, first, accusers: BTreeSet::new(), held: Duration::ZERO }
    }

    /// Restarts the suspicion, because the member has answered a challenge that was sent after the suspicion began.
    pub(super) fn restart(&mut self, now: Duration) {
        self.began = now;
        self.accusers.clear();
        self.held = Duration::ZERO;
    }

    /// Returns the time at which the suspect is declared lost unless it answers. `times` has the shortest and the longest duration of a
    /// suspicion.
    pub(super) fn due(&self, listed: usize, times: (Duration, Duration)) -> Duration {
        self.began
            + self.held
            + lasts(self.accusers.len().saturating_sub(1), ENOUGH.min(listed.saturating_sub(2)), times)
    }
}

/// Returns the duration of a suspicion. Without confirmations it is `upper`. With each confirmation it falls logarithmically, down to
/// `lower` after `enough` confirmations.
fn lasts(confirmations: usize, enough: usize, (lower, upper): (Duration, Duration)) -> Duration {
    if confirmations >= enough {
        return lower;
    }
    let shares = |count: usize| f64::from(u32::try_from(count + 1).unwrap_or(u32::MAX)).ln();
    let share = shares(confirmations) / shares(enough);
    upper.saturating_sub(upper.saturating_sub(lower).mul_f64(share))
}

/// The health of this node by SWIM's Lifeguard extension. A score of 0 is healthy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Health {
    is_on: bool,
    score: u8,
}

impl Health {
    pub(super) fn new(is_on: bool) -> Self {
        Self { is_on, score: 0 }
    }

    pub(super) fn score(self) -> u8 {
        self.score
    }

    /// Lowers the health score by one, after a probe that was answered.
    pub(super) fn improve(&mut self) {
        self.score = self.score.saturating_sub(1);
    }

    /// Raises the health score by one, after a failed probe or a suspicion of this node. Does nothing if Lifeguard is off.
    pub(super) fn worsen(&mut self) {
        if self.is_on {
            self.score = WORST.min(self.score + 1);
        }
    }

    /// Returns `time`, multiplied by the health score plus one.
    pub(super) fn stretch(self, time: Duration) -> Duration {
        time * (u32::from(self.score) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    const TIMES: (Duration, Duration) = (ms(2_000), ms(3_000));

    #[test]
    fn each_confirmation_shortens_it_logarithmically() {
        let found = [0, 1, 2, 3].map(|count| lasts(count, 2, TIMES).as_millis());
        assert_eq!(found, [3_000, 2_369, 2_000, 2_000]);
    }

    #[test]
    fn one_confirmation_is_enough_for_three_members_and_none_for_two() {
        let mut suspicion = Suspicion::new(ms(10_000), 1, 0, "b".into());
        assert_eq!(suspicion.due(2, TIMES), ms(12_000));
        assert_eq!(suspicion.due(3, TIMES), ms(13_000));
        suspicion.accusers.insert("a".into());
        assert_eq!(suspicion.due(3, TIMES), ms(13_000));
        suspicion.accusers.insert("b".into());
        assert_eq!(
            (suspicion.due(3, TIMES), suspicion.due(4, TIMES)),
            (ms(12_000), Duration::from_nanos(12_369_070_246))
        );
    }

    #[test]
    fn an_echo_of_the_same_member_confirms_nothing() {
        let mut suspicion = Suspicion::new(ms(10_000), 1, 0, "b".into());
        for _ in 0..5 {
            suspicion.accusers.insert("b".into());
        }
        assert_eq!(suspicion.due(10, TIMES), ms(13_000));
    }

    #[test]
    fn what_held_this_node_up_is_added() {
        let mut suspicion = Suspicion::new(ms(10_000), 1, 0, "b".into());
        suspicion.held = ms(500);
        assert_eq!(suspicion.due(9, TIMES), ms(13_500));
        suspicion.restart(ms(11_000));
        assert_eq!(suspicion.due(9, TIMES), ms(14_000));
    }

    #[test]
    fn the_score_stays_from_0_to_7() {
        let mut health = Health::new(true);
        health.improve();
        assert_eq!((health.score(), health.stretch(ms(500))), (0, ms(500)));
        (0..9).for_each(|_| health.worsen());
        assert_eq!((health.score(), health.stretch(ms(500))), (7, ms(4_000)));
        health.improve();
        assert_eq!(health.score(), 6);
        let mut off = Health::new(false);
        off.worsen();
        assert_eq!(off.score(), 0);
    }
}
