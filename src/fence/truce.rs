//! What one run of the agent tells the next: when the BMC was out of reach last, and whether a try has given way since.
//!
//! After an outage of everything, both nodes may reach each other's BMC at the same moment. Each of them may then be in
//! the middle of a try to fence the other, or about to begin one whose delay is over: the delay may end in that moment by
//! chance, the fencer makes the second try of a request (`pcmk_off_retries`, `pcmk_reboot_retries`) without a delay, and it
//! lets a try wait for the monitor of the same device after the delay. So the first try that reaches the BMC after an
//! outage gives way, and the fencer's own second one with it. The next comes after a delay that began when all was back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::{Event, Moment};
use crate::clock;
use crate::notes;
use crate::redfish::address::Address;
use crate::redfish::failure::{Failure, Kind};

/// Where no reboot reaches.
const DIR: &str = "/run";
/// The fencer begins its own second try a second after the first. What comes after a delay comes later.
const RIGHT_AFTER: Duration = Duration::from_secs(2);
/// An outage that is longer ago than any usual delay and the requests around it was over before that delay began.
const RECENT: Duration = Duration::from_secs(30);

/// In nanoseconds since the machine booted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    away: u64,
    gave_way: Option<u64>,
}

impl Seen {
    /// Whether a run that began at `began` has to give way.
    fn holds(self, began: Duration) -> bool {
        let within = |at: u64, span: Duration| began <= Duration::from_nanos(at).saturating_add(span);
        let is_due = self.gave_way.is_none_or(|at| at < self.away) && within(self.away, RECENT);
        is_due || self.gave_way.is_some_and(|at| within(at, RIGHT_AFTER))
    }
}

/// The runs of the agent that turn to one BMC.
#[derive(Debug)]
pub struct Truce {
    path: PathBuf,
    seen: Seen,
    /// Whether this run has to give way for what earlier ones saw.
    holds: bool,
}

impl Truce {
    /// For a run that began `since` ago.
    pub fn with(address: &Address, since: Duration) -> Self {
        Self::below(Path::new(DIR), address, since)
    }

    fn below(dir: &Path, address: &Address, since: Duration) -> Self {
        let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        let host: String = address.host().chars().map(plain).collect();
        let path = dir.join(format!("fence_redfish_rs-{host}.json"));
        let now = clock::boot_nanoseconds();
        let is_past = |seen: &&Seen| seen.away.max(seen.gave_way.unwrap_or_default()) <= now;
        let seen = notes::read::<Seen>(&path).known().filter(is_past).copied();
        let began = Duration::from_nanos(now).saturating_sub(since);
        let holds = seen.is_some_and(|seen| seen.holds(began));
        Self { path, seen: seen.unwrap_or_default(), holds }
    }

    /// Takes note for the next run where the BMC is out of reach, or was until now. Answers what the history lacks then:
    /// that somebody knocked in vain, in a run before this one or in a packet that was lost.
    pub fn missed(&mut self, history: &[Moment], event: &Event, just_back: impl FnOnce() -> bool) -> Option<Event> {
        let any = |is: fn(&Event) -> bool| history.iter().any(|moment| is(&moment.event));
        let is_first = !any(|event| matches!(event, Event::Read { .. }));
        let outage = match event {
            // A BMC that is away after a reset is no reason not to try again.
            Event::Unread(_) if any(|event| matches!(event, Event::Posted)) => false,
            Event::Unread(failure) => failure.kind == Kind::Unreachable,
            Event::Read { .. } => is_first && just_back(),
            Event::Posted | Event::Refused(_) => false,
        };
        if outage {
            self.note(Seen { away: clock::boot_nanoseconds(), ..self.seen });
        }
        let missed = is_first && matches!(event, Event::Read { .. }) && (outage || self.holds);
        missed.then(|| Event::Unread(Failure::new(Kind::Unreachable, "nobody answered at first")))
    }

    /// This try does nothing; what follows from that one which did nothing before counts from there.
    pub fn give_way(&mut self) -> Failure {
        let now = clock::boot_nanoseconds();
        let is_second = self.seen.gave_way.is_some_and(|at| at >= self.seen.away);
        if !is_second {
            self.note(Seen { gave_way: Some(now), ..self.seen });
        }
        given_way()
    }

    /// What cannot be written down costs the next run's patience and no more.
    fn note(&mut self, seen: Seen) {
        self.seen = seen;
        if let Err(error) = notes::write(&self.path, &seen) {
            log::info!("{} cannot be written: {error}", self.path.display());
        }
    }
}

/// How a try that gives way ends.
pub fn given_way() -> Failure {
    Failure::new(
        Kind::Unreachable,
        "the BMC was out of reach and is back just now: nothing was done, so that the delay of this fence device \
         counts again before the next try, as the other node may be back at the same moment",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::redfish::resource::Power;

    fn on() -> Event {
        Event::Read { power: Power::read(Some(&"On".into())), last_reset: None }
    }

    fn failed(kind: Kind) -> Event {
        Event::Unread(Failure::new(kind, "x"))
    }

    fn begun(dir: &Path, host: &str, since: u64) -> Truce {
        Truce::below(dir, &Address::parse(host, 443).unwrap(), Duration::from_millis(since))
    }

    fn knocked(truce: &mut Truce, event: &Event, just_back: bool) -> bool {
        truce.missed(&[], event, || just_back).is_some()
    }

    #[test]
    fn what_begins_after_an_outage_knows_of_it_and_what_comes_much_later_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let knows = |host, since| knocked(&mut begun(dir.path(), host, since), &on(), false);
        let mut first = begun(dir.path(), "192.0.2.1", 0);
        // Whoever answers is there, and so is who is silent.
        assert!(!knocked(&mut first, &on(), false) && !knocked(&mut first, &failed(Kind::Silent), false));
        assert!(!knows("192.0.2.1", 0));
        // A failure stands in the history already; a lost packet does not.
        for (event, just_back, is_told) in [(failed(Kind::Unreachable), false, false), (on(), true, true)] {
            assert_eq!(knocked(&mut first, &event, just_back), is_told);
            assert!(knows("192.0.2.1", 0));
            assert!(!knows("192.0.2.2", 0), "another BMC");
            fs::remove_file(&first.path).unwrap();
        }
        // Only the first look is late, and what comes after a reset is no outage.
        for (event, seen) in [(on(), on()), (failed(Kind::Unreachable), Event::Posted)] {
            let looked = [Moment { at: Duration::ZERO, event: seen }];
            assert_eq!(first.missed(&looked, &event, || true), None);
            assert!(!knows("192.0.2.1", 0));
        }
        first.note(Seen { away: clock::boot_nanoseconds() - 31_000_000_000, gave_way: None });
        assert!(!knows("192.0.2.1", 0));
        // What counts is when it began, however long it took to reach the BMC.
        assert!(knows("192.0.2.1", 1_500));
        for odd in ["", "x", "7", "{}", &format!("{{\"away\":{},\"gave_way\":null}}", u64::MAX)] {
            fs::write(&first.path, odd).unwrap();
            assert!(!knows("192.0.2.1", 0), "{odd}");
        }
    }

    #[test]
    fn one_try_gives_way_with_the_fencers_second_one_and_the_next_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let now = clock::boot_nanoseconds();
        let holds = |away: u64, gave_way: Option<u64>| {
            let ago = |ms: u64| now - ms * 1_000_000;
            begun(dir.path(), "192.0.2.1", 0).note(Seen { away: ago(away), gave_way: gave_way.map(ago) });
            begun(dir.path(), "192.0.2.1", 0).holds
        };
        assert!(holds(10_000, None) && holds(10_000, Some(1_000)));
        assert!(!holds(10_000, Some(3_000)));
        assert!(holds(10_000, Some(12_000)), "another outage");
        let mut first = begun(dir.path(), "192.0.2.1", 0);
        first.note(Seen { away: now - 1, gave_way: None });
        first.give_way();
        let gave = first.seen.gave_way;
        assert!(gave.is_some_and(|at| at >= now));
        let mut second = begun(dir.path(), "192.0.2.1", 0);
        second.give_way();
        assert_eq!((second.holds, second.seen.gave_way), (true, gave), "it counts from the first");
    }
}
