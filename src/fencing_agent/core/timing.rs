//! The timings for the number of listed members, unless the operator has set others.

use std::time::Duration;

use super::input::TimingOverrides;

/// The shortest default for the time between two challenges to one member. The time is shorter if a window would otherwise contain fewer
/// than four challenges.
const CHALLENGE: Duration = Duration::from_millis(250);
/// The largest number of members in a short list. Members of a short list are challenged more often, which finds a lost member sooner than
/// gossip. In a longer list, so many challenges would cost too much.
pub(crate) const FEW: usize = 32;
/// The number of challenges to each member in a window (`timing.window`), in a list of at most [`FEW`] members.
const OF_FEW: u32 = 12;
/// The number of challenges to each member in a window (`timing.window`), in a list of more than [`FEW`] members.
const OF_MANY: u32 = 4;
/// The number of unanswered challenges in a row after which a member is suspected without a probe.
const UNANSWERED: u32 = 4;

/// The default timings in milliseconds, by the number of members: gossip, probe, shortest and longest suspicion, and the time for which the
/// watchdog is fed after the last contact with a quorum (`window`). Values between two rows are interpolated linearly.
const TABLE: [(usize, [u64; 5]); 7] = [
    (3, [200, 500, 1_000, 2_000, 3_000]),
    (10, [250, 750, 2_000, 3_000, 4_000]),
    (50, [400, 1_000, 4_000, 6_000, 7_000]),
    (100, [500, 1_500, 6_000, 10_000, 11_000]),
    (300, [700, 2_000, 10_000, 15_000, 16_000]),
    (500, [1_000, 2_500, 12_000, 18_000, 19_000]),
    (1_000, [1_500, 3_000, 15_000, 25_000, 26_000]),
];

/// The effective timings: the defaults for the number of members, unless the operator has configured others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) gossip: Duration,
    pub(crate) probe: Duration,
    /// The shortest and the longest duration of a suspicion.
    pub(crate) suspicion: (Duration, Duration),
    pub(crate) window: Duration,
    /// The time between two challenges to one member.
    pub(crate) challenge: Duration,
}

impl Timing {
    /// Returns the timings for `members` listed members. The values in `set` replace the defaults.
    pub(crate) fn of(members: usize, set: &TimingOverrides) -> Self {
        let [gossip, probe, lower, upper, window] = row(members).map(Duration::from_millis);
        let window = set.window.unwrap_or(window);
        let of_few = (window / OF_FEW).max(CHALLENGE);
        Self {
            gossip: set.gossip.unwrap_or(gossip),
            probe: set.probe.unwrap_or(probe),
            suspicion: set.suspicion.unwrap_or((lower, upper)),
            window,
            challenge: if members > FEW { window / OF_MANY } else { of_few.min(window / OF_MANY) },
        }
    }

    /// Returns the time without an answer to any challenge after which a member is suspected. It covers one regular challenge and three
    /// more, which are sent at the shorter interval for suspects.
    pub(crate) fn silence(&self) -> Duration {
        (self.challenge + self.challenge_of_suspects() * (UNANSWERED - 1)).max(self.probe)
    }

    /// Returns the time between two challenges to a member that has not answered the last one. It is short, because a suspect must learn of
    /// its suspicion soon, and an absent member's return must be seen soon.
    pub(crate) fn challenge_of_suspects(&self) -> Duration {
        self.challenge.min(self.probe / 2)
    }
}

fn row(members: usize) -> [u64; 5] {
    let after = TABLE.iter().position(|(upto, _)| members <= *upto);
    match after {
        Some(0) => TABLE[0].1,
        None => TABLE[TABLE.len() - 1].1,
        Some(after) => {
            let ((from, low), (to, high)) = (TABLE[after - 1], TABLE[after]);
            let (done, whole) = ((members - from) as u64, (to - from) as u64);
            std::array::from_fn(|at| low[at] + (high[at] - low[at]) * done / whole)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(members: usize) -> Timing {
        Timing::of(members, &TimingOverrides::default())
    }

    #[test]
    fn the_table_holds_and_is_linear_in_between() {
        let seconds = |from: f64| Duration::from_secs_f64(from);
        assert_eq!(of(1), of(3));
        assert_eq!((of(3).gossip, of(3).probe, of(3).window), (seconds(0.2), seconds(0.5), seconds(3.0)));
        assert_eq!(of(100).suspicion, (seconds(6.0), seconds(10.0)));
        assert_eq!((of(30).window, of(30).suspicion), (seconds(5.5), (seconds(3.0), seconds(4.5))));
        assert_eq!(of(5_000), of(1_000));
    }

    #[test]
    fn a_window_has_at_least_four_challenges() {
        assert_eq!(of(3).challenge, Duration::from_millis(250));
        assert_eq!(of(10).challenge.as_millis(), 333);
        assert_eq!(of(32).challenge.as_millis(), 470);
        assert_eq!(of(100).challenge, Duration::from_millis(2_750));
        let set = TimingOverrides { window: Some(Duration::from_millis(400)), ..TimingOverrides::default() };
        assert_eq!(Timing::of(3, &set).challenge, Duration::from_millis(100));
        assert_eq!(of(100).challenge_of_suspects(), Duration::from_millis(750));
    }

    #[test]
    fn the_silence_that_suspects_makes_no_leap_with_the_length_of_the_list() {
        assert_eq!(of(3).silence(), Duration::from_secs(1));
        assert_eq!(of(32).silence().as_millis(), 1_801);
        // At 33 members, four regular challenges would take the window of 5.6 s.
        assert_eq!(of(33).silence().as_millis(), 2_770);
        assert_eq!(of(100).silence(), Duration::from_secs(5));
    }

    #[test]
    fn what_the_operator_has_set_replaces_the_table() {
        let two = Some(Duration::from_secs(2));
        let set = TimingOverrides { gossip: two, probe: two, suspicion: two.zip(two), window: two };
        let timing = Timing::of(1_000, &set);
        assert_eq!((Some(timing.gossip), Some(timing.probe), Some(timing.window)), (two, two, two));
        assert_eq!(timing.suspicion.0, timing.suspicion.1);
    }
}
