//! This node's own contact with each member: challenges with a nonce, and their answers.
//!
//! An answer counts from the time at which its challenge was sent. The member was reachable and both directions worked at that
//! time or later, however long the answer took. To count from the arrival would claim more than is known.

use std::collections::BTreeMap;
use std::time::Duration;

use super::input::{Name, NetworkRule};

/// The smoothed round-trip time and its mean deviation, as TCP computes them (RFC 6298).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    pub(crate) mean: Duration,
    pub(crate) deviation: Duration,
}

impl RoundTrip {
    fn first(sample: Duration) -> Self {
        Self { mean: sample, deviation: sample / 2 }
    }

    fn with(self, sample: Duration) -> Self {
        let off = self.mean.abs_diff(sample);
        Self { mean: (self.mean * 7 + sample) / 8, deviation: (self.deviation * 3 + off) / 4 }
    }
}

/// The contact with one member on one network: challenges and their answers.
#[derive(Clone, Debug, Default)]
struct Path {
    /// The unanswered challenges, each with its nonce and the time at which it was sent.
    open: Vec<(u64, Duration)>,
    /// The time at which the newest answered challenge was sent; `None` before the first answer.
    newest: Option<Duration>,
    round_trip: Option<RoundTrip>,
}

/// The contact with all other listed members, by member and network.
#[derive(Clone, Debug)]
pub(crate) struct Contacts {
    rule: NetworkRule,
    networks: usize,
    peers: BTreeMap<Name, Vec<Path>>,
}

impl Contacts {
    pub(crate) fn new(networks: usize, rule: NetworkRule) -> Self {
        Self { rule, networks: networks.max(1), peers: BTreeMap::new() }
    }

    /// Keeps the contacts with `peers`, adds new members, and drops all others.
    pub(crate) fn list(&mut self, peers: impl Iterator<Item = Name>) {
        let mut before = std::mem::take(&mut self.peers);
        let networks = self.networks;
        self.peers = peers
            .map(|name| {
                let paths = before.remove(&name).unwrap_or_else(|| vec![Path::default(); networks]);
                (name, paths)
            })
            .collect();
    }

    pub(crate) fn networks(&self) -> usize {
        self.networks
    }

    /// Records a challenge that is sent at `now`. Drops challenges from before `oldest`, because answers to them come too late to count.
    pub(crate) fn challenged(&mut self, name: &str, network: usize, nonce: u64, now: Duration, oldest: Duration) {
        if let Some(path) = self.path(name, network) {
            path.open.retain(|(_, sent)| *sent >= oldest);
            path.open.push((nonce, now));
        }
    }

    /// Records an answer, and returns the time at which its challenge was sent. Returns `None` for a nonce without an open challenge, so
    /// that a copied or forged answer does not count.
    pub(crate) fn answered(&mut self, name: &str, network: usize, nonce: u64, now: Duration) -> Option<Duration> {
        let path = self.path(name, network)?;
        let at = path.open.iter().position(|(open, _)| *open == nonce)?;
        let (_, sent) = path.open.swap_remove(at);
        path.newest = path.newest.max(Some(sent));
        let took = now.saturating_sub(sent);
        path.round_trip = Some(path.round_trip.map_or_else(|| RoundTrip::first(took), |known| known.with(took)));
        Some(sent)
    }

    /// Returns the time of the newest contact with the member `name`, as far as contact counts for feeding the watchdog. The configured
    /// rule for networks decides whether one network or all networks must have contact.
    pub(crate) fn counted(&self, name: &str) -> Option<Duration> {
        self.by_rule(self.peers.get(name)?)
    }

    fn by_rule(&self, paths: &[Path]) -> Option<Duration> {
        let newest = paths.iter().map(|path| path.newest);
        match self.rule {
            NetworkRule::Any => newest.max().flatten(),
            NetworkRule::All => newest.min().flatten(),
        }
    }

    /// Returns, for each member, the time of the newest contact that counts for feeding the watchdog (see [`Contacts::counted`]).
    pub(crate) fn all_counted(&self) -> Vec<Option<Duration>> {
        self.peers.values().map(|paths| self.by_rule(paths)).collect()
    }

    /// Returns the time of the newest contact with a member on any network; `None` without contact.
    pub(crate) fn newest(&self, name: &str) -> Option<Duration> {
        self.peers.get(name)?.iter().filter_map(|path| path.newest).max()
    }

    /// Returns the time at which the newest unanswered challenge was sent to a member; `None` if there is none.
    pub(crate) fn pending(&self, name: &str) -> Option<Duration> {
        self.peers.get(name)?.iter().flat_map(|path| &path.open).map(|(_, sent)| *sent).max()
    }

    /// Returns the time of the newest contact with a member on each network.
    pub(crate) fn by_network(&self, name: &str) -> Vec<Option<Duration>> {
        self.peers.get(name).map_or_else(Vec::new, |paths| paths.iter().map(|path| path.newest).collect())
    }

    /// Returns the network with the newest contact with a member. Messages that are not sent on all networks use it.
    pub(crate) fn best_network(&self, name: &str) -> usize {
        let paths = self.peers.get(name).map_or(&[][..], Vec::as_slice);
        (0..paths.len()).rev().max_by_key(|at| paths[*at].newest).unwrap_or_default()
    }

    /// Returns the round-trip time to a member on the network with the newest contact.
    pub(crate) fn round_trip(&self, name: &str) -> Option<RoundTrip> {
        self.peers.get(name)?.get(self.best_network(name))?.round_trip
    }

    fn path(&mut self, name: &str, network: usize) -> Option<&mut Path> {
        self.peers.get_mut(name)?.get_mut(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn contacts(networks: usize, rule: NetworkRule) -> Contacts {
        let mut contacts = Contacts::new(networks, rule);
        contacts.list(["b", "c"].into_iter().map(Name::from));
        contacts
    }

    #[test]
    fn an_answer_counts_from_when_its_challenge_was_sent() {
        let mut contacts = contacts(1, NetworkRule::Any);
        contacts.challenged("b", 0, 7, ms(100), ms(0));
        assert_eq!(contacts.answered("b", 0, 7, ms(2_900)), Some(ms(100)));
        assert_eq!((contacts.counted("b"), contacts.counted("c")), (Some(ms(100)), None));
    }

    #[test]
    fn an_older_answer_that_comes_later_moves_nothing_back() {
        let mut contacts = contacts(1, NetworkRule::Any);
        contacts.challenged("b", 0, 7, ms(100), ms(0));
        contacts.challenged("b", 0, 8, ms(350), ms(0));
        contacts.answered("b", 0, 8, ms(400));
        contacts.answered("b", 0, 7, ms(500));
        assert_eq!(contacts.counted("b"), Some(ms(350)));
    }

    #[test]
    fn no_answer_counts_twice_nor_for_another_member_or_network() {
        let mut contacts = contacts(2, NetworkRule::Any);
        contacts.challenged("b", 0, 7, ms(100), ms(0));
        assert_eq!(contacts.answered("c", 0, 7, ms(110)), None);
        assert_eq!(contacts.answered("b", 1, 7, ms(110)), None);
        assert_eq!(contacts.answered("b", 0, 8, ms(110)), None);
        assert_eq!(contacts.answered("b", 0, 7, ms(110)), Some(ms(100)));
        assert_eq!(contacts.answered("b", 0, 7, ms(120)), None);
        assert_eq!(contacts.answered("x", 0, 7, ms(110)), None);
    }

    #[test]
    fn a_challenge_from_before_the_window_is_forgotten() {
        let mut contacts = contacts(1, NetworkRule::Any);
        contacts.challenged("b", 0, 7, ms(100), ms(0));
        contacts.challenged("b", 0, 8, ms(3_200), ms(200));
        assert_eq!(contacts.answered("b", 0, 7, ms(3_210)), None);
    }

    #[test]
    fn any_network_is_enough_or_all_are_needed() {
        for (rule, counted) in [(NetworkRule::Any, Some(ms(500))), (NetworkRule::All, Some(ms(100)))] {
            let mut contacts = contacts(2, rule);
            contacts.challenged("b", 0, 1, ms(100), ms(0));
            contacts.answered("b", 0, 1, ms(110));
            assert_eq!(contacts.counted("b").is_some(), rule == NetworkRule::Any);
            contacts.challenged("b", 1, 2, ms(500), ms(0));
            contacts.answered("b", 1, 2, ms(510));
            assert_eq!((contacts.counted("b"), contacts.newest("b")), (counted, Some(ms(500))));
            assert_eq!(contacts.best_network("b"), 1);
        }
    }

    #[test]
    fn a_member_that_is_listed_no_more_is_forgotten() {
        let mut contacts = contacts(1, NetworkRule::Any);
        contacts.challenged("b", 0, 7, ms(100), ms(0));
        contacts.answered("b", 0, 7, ms(110));
        contacts.list(std::iter::once(Name::from("c")));
        contacts.list(["b", "c"].into_iter().map(Name::from));
        assert_eq!(contacts.counted("b"), None);
    }

    #[test]
    fn the_round_trip_is_smoothed() {
        let first = RoundTrip::first(ms(80));
        assert_eq!(first, RoundTrip { mean: ms(80), deviation: ms(40) });
        assert_eq!(first.with(ms(160)), RoundTrip { mean: ms(90), deviation: ms(50) });
    }
}
