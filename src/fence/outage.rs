//! The memory that one run of the agent leaves for the next: the last time at which the BMC was unreachable, and whether an
//! attempt has given way since.
//!
//! After an outage of everything, both nodes may reach each other's BMC at the same moment. Each may then be in the middle of an
//! attempt to fence the other, or about to begin one with its delay over. There are three reasons for that. The delay may end at
//! that moment by chance. The fencer makes the second attempt of a request (`pcmk_off_retries`, `pcmk_reboot_retries`) without a
//! delay. It also lets an attempt wait for the monitor of the same device after the delay.
//!
//! So the first attempt that reaches the BMC after an outage gives way, and the fencer's own second attempt with it. The next
//! attempt comes after a delay that began after the outage, and continues in any case. Otherwise no fencing would ever succeed
//! through a BMC that loses the first packets of every run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::{Event, Moment};
use crate::adapters::https::address::Address;
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::os::clock;
use crate::records::state_file;

/// The directory of the files that record the BMCs' outages. It is empty after a reboot.
const DIR: &str = "/run";
/// The time after a failed attempt to fence in which a new attempt counts as the fencer's immediate second one. The fencer begins
/// that attempt after about a second. It begins any other attempt only after a delay.
const RIGHT_AFTER: Duration = Duration::from_secs(2);
/// The age from which an outage of a BMC is ignored. An attempt to fence usually begins with a delay, and that delay began after
/// such an outage had ended.
const RECENT: Duration = Duration::from_secs(30);
/// The time after an attempt to fence that ended without a reset because of an outage. Within this time, no further attempt ends
/// in this way, except the fencer's immediate second one.
const SPELL: Duration = Duration::from_secs(120);

/// Two times in nanoseconds since the machine booted. `away` is the time of the BMC's last outage. `gave_way` is the time at
/// which an attempt to fence last ended without a reset because of an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OutageSeen {
    away: u64,
    gave_way: Option<u64>,
}

impl OutageSeen {
    /// Returns whether an attempt to fence that began at `began` must end without a reset, because an earlier attempt has observed an
    /// outage of the BMC.
    fn holds(self, began: Duration) -> bool {
        let is_due = self.gave_way.is_none_or(|at| at < self.away) && within(self.away, RECENT, began);
        self.allows(began) && (is_due || self.gave_way_within(RIGHT_AFTER, began))
    }

    /// Returns whether an attempt to fence that began at `began` may end without a reset. It may not if an earlier attempt has
    /// recently done so.
    fn allows(self, began: Duration) -> bool {
        !self.gave_way_within(SPELL, began) || self.gave_way_within(RIGHT_AFTER, began)
    }

    fn gave_way_within(self, span: Duration, began: Duration) -> bool {
        self.gave_way.is_some_and(|at| within(at, span, began))
    }
}

fn within(at: u64, span: Duration, began: Duration) -> bool {
    began <= Duration::from_nanos(at).saturating_add(span)
}

/// The rule by which an attempt to fence ends without a reset ("gives way") if its BMC was unreachable.
#[derive(Debug)]
pub struct Outage {
    path: PathBuf,
    seen: OutageSeen,
    began: Duration,
    /// True if this attempt must end without a reset, because an earlier attempt has observed an outage of the BMC.
    holds: bool,
}

impl Outage {
    /// Reads the record of the last outage of the BMC at `address`. `since` is the time since this attempt to fence began.
    pub fn with(address: &Address, since: Duration) -> Self {
        Self::below(Path::new(DIR), address, since)
    }

    fn below(dir: &Path, address: &Address, since: Duration) -> Self {
        let path = dir.join(format!("fence_redfish_rs-{}.json", address.full()));
        let now = clock::boot_nanoseconds();
        let is_past = |seen: &&OutageSeen| seen.away.max(seen.gave_way.unwrap_or_default()) <= now;
        let seen = state_file::read::<OutageSeen>(&path).known().filter(is_past).copied();
        let began = Duration::from_nanos(now).saturating_sub(since);
        let holds = seen.is_some_and(|seen| seen.holds(began));
        Self { path, seen: seen.unwrap_or_default(), began, holds }
    }

    /// Returns whether this attempt to fence may end without a reset after an outage of the BMC.
    pub fn may_give_way(&self) -> bool {
        self.seen.allows(self.began)
    }

    /// Records for the next attempt to fence that the BMC is unreachable, or was until now. If `history` does not show this
    /// outage, returns a failed connection, which the caller adds to `history`.
    ///
    /// `history` does not show an outage that only an earlier attempt met, or in which this attempt lost only a packet.
    pub fn missed(&mut self, history: &[Moment], event: &Event, just_back: impl FnOnce() -> bool) -> Option<Event> {
        let any = |is: fn(&Event) -> bool| history.iter().any(|moment| is(&moment.event));
        let is_first = !any(|event| matches!(event, Event::Read { .. }));
        let outage = match event {
            // A BMC that is unreachable after a reset is no reason to give way.
            Event::Unread(_) | Event::ChassisUnread(_) if any(|event| matches!(event, Event::Posted)) => false,
            Event::Unread(failure) | Event::ChassisUnread(failure) => failure.kind == FailureKind::Unreachable,
            Event::Read { .. } => is_first && just_back(),
            Event::Posted | Event::Refused(_) | Event::Undone(_) | Event::Chassis { .. } => false,
        };
        if outage {
            self.note(OutageSeen { away: clock::boot_nanoseconds(), ..self.seen });
        }
        let missed = is_first && matches!(event, Event::Read { .. }) && (outage || self.holds);
        missed.then(|| Event::Unread(Failure::new(FailureKind::Unreachable, "nobody answered at first")))
    }

    /// Records that this attempt ends without a reset, and returns its failure. If this attempt is the fencer's immediate second
    /// one, keeps the recorded time.
    ///
    /// Returns `None` if the record cannot be written. This attempt then continues, because without the record all later attempts
    /// would end without a reset, too.
    pub fn give_way(&mut self) -> Option<Failure> {
        let now = clock::boot_nanoseconds();
        let is_noted =
            self.seen.gave_way_within(SPELL, self.began) || self.note(OutageSeen { gave_way: Some(now), ..self.seen });
        is_noted.then(given_way)
    }

    /// Writes `seen` for the next attempt to fence. Returns whether that succeeded.
    fn note(&mut self, seen: OutageSeen) -> bool {
        self.seen = seen;
        let written = state_file::write(&self.path, &seen);
        if let Err(error) = &written {
            log::info!("{} cannot be written: {error}", self.path.display());
        }
        written.is_ok()
    }
}

/// Returns the failure of an attempt to fence that ends without a reset after an outage.
fn given_way() -> Failure {
    Failure::new(
        FailureKind::Unreachable,
        "the BMC was out of reach and is back just now: nothing was done, so that the delay of this fence device \
         counts again before the next try, as the other node may be back at the same moment",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::adapters::redfish::resource::Power;

    #[test]
    fn the_file_keeps_its_form() {
        let text = include_str!("../../tests/data/fixtures/formats/0.1.0/outage.json");
        let seen = OutageSeen { away: 1_000_000_000, gave_way: Some(2_000_000_000) };
        assert_eq!(serde_json::from_str::<OutageSeen>(text).unwrap(), seen);
        assert_eq!(serde_json::to_string(&seen).unwrap(), text.trim_end());
    }

    fn on() -> Event {
        Event::Read { power: Power::read(Some(&"On".into())), last_reset: None, is_there: true }
    }

    fn failed(kind: FailureKind) -> Event {
        Event::Unread(Failure::new(kind, "x"))
    }

    fn begun(dir: &Path, host: &str, since: u64) -> Outage {
        Outage::below(dir, &Address::parse(host, 443).unwrap(), Duration::from_millis(since))
    }

    fn knocked(outage: &mut Outage, event: &Event, just_back: bool) -> bool {
        outage.missed(&[], event, || just_back).is_some()
    }

    #[test]
    fn what_begins_after_an_outage_knows_of_it_and_what_comes_much_later_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let knows = |host, since| knocked(&mut begun(dir.path(), host, since), &on(), false);
        let mut first = begun(dir.path(), "192.0.2.1", 0);
        // A BMC that answers is reachable, and so is one that accepts a connection and is silent.
        assert!(!knocked(&mut first, &on(), false) && !knocked(&mut first, &failed(FailureKind::Silent), false));
        assert!(!knows("192.0.2.1", 0));
        // The history already has a failure, but not a lost packet.
        for (event, just_back, is_told) in [(failed(FailureKind::Unreachable), false, false), (on(), true, true)] {
            assert_eq!(knocked(&mut first, &event, just_back), is_told);
            assert!(knows("192.0.2.1", 0));
            assert!(!knows("192.0.2.2", 0), "another BMC");
            fs::remove_file(&first.path).unwrap();
        }
        // Only the first observation can be late, and a failure after a reset is no outage.
        for (event, seen) in [(on(), on()), (failed(FailureKind::Unreachable), Event::Posted)] {
            let looked = [Moment { at: Duration::ZERO, event: seen }];
            assert_eq!(first.missed(&looked, &event, || true), None);
            assert!(!knows("192.0.2.1", 0));
        }
        first.note(OutageSeen { away: clock::boot_nanoseconds() - 31_000_000_000, gave_way: None });
        assert!(!knows("192.0.2.1", 0));
        // The beginning of the run counts, however long it took to reach the BMC.
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
            begun(dir.path(), "192.0.2.1", 0).note(OutageSeen { away: ago(away), gave_way: gave_way.map(ago) });
            begun(dir.path(), "192.0.2.1", 0).holds
        };
        assert!(holds(10_000, None) && holds(10_000, Some(1_000)));
        assert!(!holds(10_000, Some(3_000)));
        assert!(!holds(10_000, Some(12_000)), "another outage, too soon");
        assert!(holds(10_000, Some(130_000)), "another outage");
        let mut first = begun(dir.path(), "192.0.2.1", 0);
        first.note(OutageSeen { away: now - 1, gave_way: None });
        assert!(first.may_give_way() && first.give_way().is_some());
        let gave = first.seen.gave_way;
        assert!(gave.is_some_and(|at| at >= now));
        let mut second = begun(dir.path(), "192.0.2.1", 0);
        assert!(second.may_give_way() && second.give_way().is_some());
        assert_eq!((second.holds, second.seen.gave_way), (true, gave), "it counts from the first");
    }

    #[test]
    fn a_bmc_that_is_away_at_the_beginning_of_every_run_is_fenced_by_the_second() {
        let dir = tempfile::tempdir().unwrap();
        let ago = |seconds: u64| clock::boot_nanoseconds() - seconds * 1_000_000_000;
        for (gave_way, may) in [(1, true), (3, false), (14, false), (119, false), (121, true)] {
            begun(dir.path(), "192.0.2.1", 0)
                .note(OutageSeen { away: ago(gave_way + 1), gave_way: Some(ago(gave_way)) });
            let mut run = begun(dir.path(), "192.0.2.1", 0);
            // This run itself does not reach the BMC.
            knocked(&mut run, &failed(FailureKind::Unreachable), false);
            assert_eq!(run.may_give_way(), may, "{gave_way} s after the last that gave way");
        }
        // The fencer's second attempt meets another outage. It does not postpone the third one.
        let first = ago(1);
        begun(dir.path(), "192.0.2.1", 0).note(OutageSeen { away: ago(2), gave_way: Some(first) });
        let mut second = begun(dir.path(), "192.0.2.1", 0);
        knocked(&mut second, &failed(FailureKind::Unreachable), false);
        assert!(second.give_way().is_some());
        assert_eq!(second.seen.gave_way, Some(first));
    }

    #[test]
    fn what_cannot_be_remembered_is_not_put_off() {
        let dir = tempfile::tempdir().unwrap();
        let blocked = dir.path().join("a-file");
        fs::write(&blocked, "").unwrap();
        assert!(begun(&blocked, "192.0.2.1", 0).give_way().is_none());
    }

    #[test]
    fn each_bmc_has_a_note_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path =
            |host: &str, port| Outage::below(dir.path(), &Address::parse(host, port).unwrap(), Duration::ZERO).path;
        let others = [
            ("bmc-a", 443),
            ("bmc.a", 443),
            ("bmc-a", 8443),
            ("192.0.2.1", 443),
            ("192.0.2.1", 8443),
            ("192.0.2.14", 43),
            ("::1", 443),
            ("fe80::1%eth0", 443),
            ("fe80::1%eth1", 443),
        ];
        let paths: std::collections::BTreeSet<_> = others.iter().map(|(host, port)| path(host, *port)).collect();
        assert_eq!(paths.len(), others.len(), "{paths:?}");
        assert_eq!(path("BMC-A:8443", 443), path("bmc-a", 8443), "however it is written");
        assert_eq!(path("192.0.2.1", 443), dir.path().join("fence_redfish_rs-192.0.2.1:443.json"));
    }
}
