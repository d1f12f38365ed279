//! What one run of the agent tells the next: when the BMC was out of reach last.
//!
//! After an outage of everything, both nodes may reach each other's BMC at the same moment. Each of them may then be in
//! the middle of a try to fence the other, or about to begin one whose delay is over already: the fencer makes the second
//! try of a request (`pcmk_off_retries`, `pcmk_reboot_retries`) without a delay, and lets a try wait for the monitor of
//! the same device after the delay. A try that begins right after the outage was seen gives way as one in its middle does.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::plan::{Event, Moment};
use crate::clock;
use crate::notes;
use crate::redfish::address::Address;
use crate::redfish::failure::{Failure, Kind};

/// Where no reboot reaches.
const DIR: &str = "/run";
/// The fencer begins its own second try a second after the first. What comes after a delay comes later.
const RIGHT_AFTER: Duration = Duration::from_secs(2);

/// The runs of the agent that turn to one BMC.
#[derive(Debug)]
pub struct Truce {
    path: PathBuf,
    /// Whether this run began right after the BMC was out of reach.
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
        let (now, seen) = (clock::boot_nanoseconds(), notes::read(&path));
        let began = Duration::from_nanos(now).saturating_sub(since);
        let right_after = |at: u64| at <= now && began <= Duration::from_nanos(at) + RIGHT_AFTER;
        let holds = seen.known().is_some_and(|at| right_after(*at));
        Self { path, holds }
    }

    /// Takes note for the next run where the BMC is out of reach, or was until now. Answers what the history lacks then:
    /// that somebody knocked in vain, in a run right before this one or in a packet that was lost.
    pub fn missed(&self, history: &[Moment], event: &Event, just_back: impl FnOnce() -> bool) -> Option<Event> {
        let is_first = !history.iter().any(|moment| matches!(moment.event, Event::Read { .. }));
        let outage = match event {
            Event::Unread(failure) => failure.kind == Kind::Unreachable,
            Event::Read { .. } => is_first && just_back(),
            Event::Posted | Event::Refused(_) => false,
        };
        if outage {
            self.mark();
        }
        let missed = is_first && matches!(event, Event::Read { .. }) && (outage || self.holds);
        missed.then(|| Event::Unread(Failure::new(Kind::Unreachable, "nobody answered at first")))
    }

    /// What cannot be written down costs the next run's patience and no more.
    fn mark(&self) {
        if let Err(error) = notes::write(&self.path, &clock::boot_nanoseconds()) {
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

    #[test]
    fn what_begins_right_after_an_outage_knows_of_it_and_what_comes_later_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let truce = |host: &str, since| {
            Truce::below(dir.path(), &Address::parse(host, 443).unwrap(), Duration::from_millis(since))
        };
        let on = || Event::Read { power: Power::read(Some(&"On".into())), last_reset: None };
        let failed = |kind| Event::Unread(Failure::new(kind, "x"));
        let knocked = |truce: &Truce, event: &Event, just_back| truce.missed(&[], event, || just_back).is_some();
        let knows = |truce: &Truce| knocked(truce, &on(), false);
        let first = truce("192.0.2.1", 0);
        // Whoever answers is there, and so is who is silent.
        assert!(!knocked(&first, &on(), false) && !knocked(&first, &failed(Kind::Silent), false));
        assert!(!knows(&truce("192.0.2.1", 0)));
        // A failure stands in the history already; a lost packet does not.
        assert!(!knocked(&first, &failed(Kind::Unreachable), false));
        assert!(knows(&truce("192.0.2.1", 0)));
        fs::remove_file(&first.path).unwrap();
        assert!(knocked(&first, &on(), true));
        assert!(knows(&truce("192.0.2.1", 0)));
        assert!(!knows(&truce("192.0.2.2", 0)), "another BMC");
        // Only the first look is late.
        let looked = [Moment { at: Duration::ZERO, event: on() }];
        assert_eq!(truce("192.0.2.1", 0).missed(&looked, &on(), || true), None);
        let long_ago = clock::boot_nanoseconds() - 3_000_000_000;
        fs::write(&first.path, long_ago.to_string()).unwrap();
        assert!(!knows(&truce("192.0.2.1", 0)));
        // What counts is when it began, however long it took to reach the BMC.
        assert!(knows(&truce("192.0.2.1", 1_500)));
        for odd in ["", "x", "99999999999999999999", &u64::MAX.to_string()] {
            fs::write(&first.path, odd).unwrap();
            assert!(!knows(&truce("192.0.2.1", 0)), "{odd}");
        }
    }
}
