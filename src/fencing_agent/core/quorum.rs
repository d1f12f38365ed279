//! The number of members in a quorum, and the time until which contact with them feeds this node.

use std::time::Duration;

/// The interval of reads from the API server while exactly half of the members are reachable.
pub(crate) const API_INTERVAL: Duration = Duration::from_secs(2);

/// The number of reachable members that a node needs so that its watchdog is fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quorum {
    pub(crate) listed: usize,
    pub(crate) needed: usize,
    /// Half of the number of listed members; `None` if exactly half of the members never suffices, even with a tie-breaker.
    half: Option<usize>,
}

impl Quorum {
    /// Returns the quorum for `listed` members. It is more than half of them, or `set` if the operator has configured more.
    pub(crate) fn of(listed: usize, set: Option<usize>, has_tie_breaker: bool) -> Self {
        let least = listed / 2 + 1;
        let needed = set.unwrap_or(least).min(listed).max(least);
        let has_halves = has_tie_breaker && listed >= 4 && listed.is_multiple_of(2) && needed == least;
        Self { listed, needed, half: has_halves.then_some(listed / 2) }
    }

    /// Returns until when this node's contacts feed its watchdog. `others` has the time of the newest contact with each *other* member.
    /// This node itself counts as a contact at `now`. No suspicion, health score or report of another node has any influence.
    pub(crate) fn reach(
        &self,
        now: Duration,
        others: &[Option<Duration>],
        window: Duration,
        api: Option<Duration>,
    ) -> Reach {
        let mut newest: Vec<Duration> = others.iter().flatten().map(|contact| (*contact).min(now)).collect();
        newest.push(now);
        newest.sort_unstable_by(|one, other| other.cmp(one));
        let until = |count: usize| newest.get(count.saturating_sub(1)).map(|contact| *contact + window);
        let by_quorum = until(self.needed);
        let half = self.half.and_then(until);
        let by_tie = half.zip(api).map(|(half, api)| half.min(api.min(now) + window));
        Reach {
            reachable: newest.iter().filter(|contact| **contact + window > now).count(),
            by_quorum,
            by_tie,
            half,
            window,
        }
    }
}

/// The times until which this node's contacts feed its watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The number of members that answered a challenge of the last window (`timing.window`), including this node.
    pub(crate) reachable: usize,
    by_quorum: Option<Duration>,
    by_tie: Option<Duration>,
    half: Option<Duration>,
    window: Duration,
}

impl Reach {
    /// Returns the time until which this node's watchdog is fed; `None` without contact with enough members.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.by_quorum.max(self.by_tie)
    }

    /// Returns whether the deadline for feeding is after `now`.
    pub(crate) fn is_fed(&self, now: Duration) -> bool {
        self.deadline() > Some(now)
    }

    /// Returns whether only half of the members are reachable, and this node is fed because the tie-breaker agreed.
    pub(crate) fn is_fed_by_tie(&self, now: Duration) -> bool {
        self.by_quorum <= Some(now) && self.by_tie > Some(now)
    }

    /// Returns whether exactly half of the members are reachable, which is no quorum.
    pub(crate) fn is_half(&self, now: Duration) -> bool {
        self.by_quorum <= Some(now) && self.half > Some(now)
    }

    /// Returns whether the API server must be read now. It must if at least half of the members are reachable, and the contact with a
    /// quorum is lost or ends within half a window.
    pub(crate) fn wants_api(&self, now: Duration) -> bool {
        self.half > Some(now) && self.asks_from() <= Some(now)
    }

    /// Returns the time from which the API server must be read if no member answers before; `None` without a tie-breaker.
    pub(crate) fn asks_from(&self) -> Option<Duration> {
        self.half?;
        Some(self.by_quorum.map_or(Duration::ZERO, |until| until.saturating_sub(self.window / 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    const WINDOW: Duration = ms(3_000);

    #[test]
    fn a_quorum_is_more_than_half_of_the_listed() {
        let needed = [1, 2, 3, 4, 5, 6, 100].map(|listed| Quorum::of(listed, None, false).needed);
        assert_eq!(needed, [1, 2, 2, 3, 3, 4, 51]);
    }

    #[test]
    fn the_operator_may_ask_for_more_and_never_for_less() {
        let needed = [1, 3, 4, 5, 9].map(|set| Quorum::of(5, Some(set), false).needed);
        assert_eq!(needed, [3, 3, 4, 5, 5]);
    }

    #[test]
    fn the_contact_that_completes_the_quorum_decides() {
        let quorum = Quorum::of(5, None, false);
        let others = [Some(ms(9_900)), Some(ms(8_000)), Some(ms(9_000)), None];
        let reach = quorum.reach(ms(10_000), &others, WINDOW, None);
        assert_eq!((reach.deadline(), reach.reachable), (Some(ms(12_000)), 4));
        let minority = quorum.reach(ms(10_000), &[Some(ms(9_900)), None, None, None], WINDOW, None);
        assert_eq!((minority.deadline(), minority.reachable), (None, 2));
        let late = quorum.reach(ms(12_000), &others, WINDOW, None);
        assert!(!late.is_fed(ms(12_000)) && late.reachable == 2, "{late:?}");
    }

    #[test]
    fn no_contact_lies_ahead_of_now() {
        let reach = Quorum::of(3, None, false).reach(ms(1_000), &[Some(ms(9_000)), Some(ms(9_000))], WINDOW, None);
        assert_eq!(reach.deadline(), Some(ms(4_000)));
    }

    #[test]
    fn a_half_is_fed_by_the_api_alone_and_from_when_it_was_asked() {
        let quorum = Quorum::of(4, None, true);
        let others = [Some(ms(9_900)), Some(ms(6_000)), None];
        let now = ms(10_000);
        let none = quorum.reach(now, &others, WINDOW, None);
        assert!(!none.is_fed(now) && none.is_half(now) && none.wants_api(now), "{none:?}");
        let fed = quorum.reach(now, &others, WINDOW, Some(ms(8_000)));
        assert_eq!(fed.deadline(), Some(ms(11_000)));
        assert!(fed.is_fed_by_tie(now));
        let stale = quorum.reach(now, &others, WINDOW, Some(ms(6_500)));
        assert!(!stale.is_fed(now), "{stale:?}");
        let silent = quorum.reach(now, &[Some(ms(6_500)), None, None], WINDOW, Some(now));
        assert!(!silent.is_fed(now), "{silent:?}");
    }

    #[test]
    fn less_than_half_is_never_fed_by_the_api() {
        let reach = Quorum::of(6, None, true).reach(
            ms(10_000),
            &[Some(ms(9_900)), None, None, None, None],
            WINDOW,
            Some(ms(9_999)),
        );
        assert!(!reach.is_fed(ms(10_000)) && !reach.wants_api(ms(10_000)), "{reach:?}");
    }

    #[test]
    fn only_even_lists_from_four_have_halves() {
        let now = ms(10_000);
        for (listed, set, has) in
            [(2, None, false), (3, None, false), (4, None, true), (5, None, false), (6, Some(5), false)]
        {
            let others = vec![Some(ms(9_900)); listed / 2 - 1];
            let reach = Quorum::of(listed, set, true).reach(now, &others, WINDOW, Some(now));
            assert_eq!(reach.is_fed(now), has, "{listed} {set:?}");
        }
    }

    #[test]
    fn the_api_is_asked_before_the_window_ends() {
        let quorum = Quorum::of(4, None, true);
        let others = [Some(ms(9_900)), Some(ms(8_000)), None];
        let reach = quorum.reach(ms(9_000), &others, WINDOW, None);
        assert_eq!(reach.asks_from(), Some(ms(9_500)));
        assert!(!reach.wants_api(ms(9_400)) && reach.wants_api(ms(9_500)));
    }
}
