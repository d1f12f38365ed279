//! Decides which of two nodes that fence each other resets: a pure function from what this node has marked and read to its next step.
//!
//! `docs/decisions/fence-race.md` has the argument. A node marks both BMCs, and only then reads both lists. A list counts once it shows
//! this node's own mark, so of two nodes that mark one BMC, at least one sees the other. No node resets while it sees a mark of
//! the other: the preferred node waits until that mark is gone, and the other node withdraws its own.

/// A BMC that takes marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Site {
    /// The BMC of the node that is to be reset.
    Target,
    /// The BMC of the node that this agent runs on.
    Own,
}

/// Both BMCs, in the order in which they are marked and read.
pub const SITES: [Site; 2] = [Site::Target, Site::Own];

/// This node's mark on one BMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mark {
    #[default]
    Down,
    /// The BMC did not take it, as far as this node knows.
    Failed,
    Up,
    /// The last list shows it.
    Proven,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaceStep {
    Raise(Site),
    Read(Site),
    /// Take down all marks.
    Lower,
    Wait(Pause),
    /// The race is decided. Whether both lists decided it, or a wait did.
    Reset {
        proven: bool,
    },
}

/// How long a wait is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pause {
    /// Until the list is read again.
    Poll,
    /// One second: the preferred node's, where a mark cannot be proven.
    Short,
    /// `race_delay`: the other node's.
    Delay,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaceEvent {
    Raised(Raised),
    /// What a list shows; `None` where the BMC did not answer. A BMC without a list shows nothing.
    Listed(Option<Listing>),
    Lowered,
    Waited,
}

/// What a BMC did with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Raised {
    Acknowledged,
    /// It answered, and takes no marks now.
    Refused,
    /// It may have taken the mark, or have heard nothing.
    Unanswered,
}

/// What a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Listing {
    /// The mark of this run.
    pub ours: bool,
    /// A mark that may be the other node's, and of an agent that may still run.
    pub rivals: bool,
}

/// A race, as one node knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Race {
    preferred: bool,
    target: Knowledge,
    own: Knowledge,
    /// Whether this node has waited with its marks up, because it could not prove them.
    waited: bool,
    step: RaceStep,
}

/// What this node knows of one BMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Knowledge {
    mark: Mark,
    /// A rival's mark was seen, and no list that counts has shown since that it is gone.
    rival: bool,
}

impl Knowledge {
    fn listed(&mut self, listing: Option<Listing>) {
        let Some(Listing { ours, rivals }) = listing else {
            // Unknown is not absent: what was seen here before still counts.
            if self.mark == Mark::Proven {
                self.mark = Mark::Up;
            }
            return;
        };
        self.rival = rivals || (self.rival && !ours);
        self.mark = match self.mark {
            Mark::Up | Mark::Proven if ours => Mark::Proven,
            Mark::Up | Mark::Proven => Mark::Up,
            other => other,
        };
    }
}

impl Race {
    /// Begins the race of a node that is preferred, or not.
    pub fn new(preferred: bool) -> Self {
        let step = RaceStep::Raise(Site::Target);
        Self { preferred, target: Knowledge::default(), own: Knowledge::default(), waited: false, step }
    }

    /// Returns the next step.
    pub fn step(&self) -> RaceStep {
        self.step
    }

    /// Returns this node's mark on a BMC.
    pub fn mark(&self, site: Site) -> Mark {
        self.at(site).mark
    }

    /// Returns whether a rival's mark is on a BMC, as far as this node knows.
    pub fn sees_rival(&self, site: Site) -> bool {
        self.at(site).rival
    }

    fn at(&self, site: Site) -> &Knowledge {
        match site {
            Site::Target => &self.target,
            Site::Own => &self.own,
        }
    }

    fn at_mut(&mut self, site: Site) -> &mut Knowledge {
        match site {
            Site::Target => &mut self.target,
            Site::Own => &mut self.own,
        }
    }

    /// Returns the race after its present step came to `event`. An event of another step changes nothing.
    #[must_use]
    pub fn after(mut self, event: RaceEvent) -> Self {
        match (self.step, event) {
            (RaceStep::Raise(Site::Target), RaceEvent::Raised(Raised::Unanswered)) => self.begin_anew(),
            (RaceStep::Raise(site), RaceEvent::Raised(raised)) => {
                let is_up = raised == Raised::Acknowledged;
                self.at_mut(site).mark = if is_up { Mark::Up } else { Mark::Failed };
                // Every mark is up before the first list is read.
                self.step = match site {
                    Site::Target if self.own.mark == Mark::Down => RaceStep::Raise(Site::Own),
                    _ => RaceStep::Read(Site::Target),
                };
            }
            (RaceStep::Read(Site::Target), RaceEvent::Listed(None)) => {
                self.target.listed(None);
                self.begin_anew();
            }
            (RaceStep::Read(site), RaceEvent::Listed(listing)) => {
                self.at_mut(site).listed(listing);
                self.step = match site {
                    // A BMC that did not take the mark has been waited for once.
                    Site::Target if self.own.mark != Mark::Failed => RaceStep::Read(Site::Own),
                    _ => self.decide(),
                };
            }
            (RaceStep::Lower, RaceEvent::Lowered) => {
                // A withdrawn node knows nothing any more: it marks and reads anew.
                self = Self { step: RaceStep::Wait(Pause::Delay), ..Self::new(self.preferred) };
            }
            (RaceStep::Wait(pause), RaceEvent::Waited) => {
                self.waited |= pause != Pause::Poll && self.target.mark != Mark::Down;
                self.step = match (self.target.mark, self.own.mark) {
                    (Mark::Down | Mark::Failed, _) => RaceStep::Raise(Site::Target),
                    (_, Mark::Down) => RaceStep::Raise(Site::Own),
                    _ => RaceStep::Read(Site::Target),
                };
            }
            _ => {}
        }
        self
    }

    /// Begins anew where the target does not answer: when the way there is back, all that was known before is too old. A node that
    /// reset then, with nothing marked, would meet a rival that saw no mark.
    fn begin_anew(&mut self) {
        self.waited = false;
        for site in SITES {
            let mark = &mut self.at_mut(site).mark;
            if *mark == Mark::Failed {
                *mark = Mark::Down;
            }
        }
        self.step = RaceStep::Wait(Pause::Poll);
    }

    /// Returns what follows from both lists.
    fn decide(self) -> RaceStep {
        let proven = self.target.mark == Mark::Proven && self.own.mark == Mark::Proven;
        match (self.target.rival || self.own.rival, self.preferred) {
            (true, true) => RaceStep::Wait(Pause::Poll),
            (true, false) => RaceStep::Lower,
            (false, _) if proven || self.waited => RaceStep::Reset { proven },
            (false, true) => RaceStep::Wait(Pause::Short),
            (false, false) => RaceStep::Wait(Pause::Delay),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAISED: RaceEvent = RaceEvent::Raised(Raised::Acknowledged);
    const FAILED: RaceEvent = RaceEvent::Raised(Raised::Refused);
    const UNANSWERED: RaceEvent = RaceEvent::Raised(Raised::Unanswered);
    const UNREAD: RaceEvent = RaceEvent::Listed(None);
    const ALONE: RaceEvent = listed(true, false);
    const MET: RaceEvent = listed(true, true);

    const fn listed(ours: bool, rivals: bool) -> RaceEvent {
        RaceEvent::Listed(Some(Listing { ours, rivals }))
    }

    fn after(preferred: bool, events: &[RaceEvent]) -> Race {
        events.iter().fold(Race::new(preferred), |race, event| race.after(*event))
    }

    #[test]
    fn both_marks_stand_before_a_list_is_read() {
        let mut race = Race::new(false);
        let events = [RAISED, RAISED, ALONE, ALONE];
        let mut steps = vec![race.step()];
        for event in events {
            race = race.after(event);
            steps.push(race.step());
        }
        let [target, own] = SITES;
        let expected =
            [RaceStep::Raise(target), RaceStep::Raise(own), RaceStep::Read(target), RaceStep::Read(own)].into_iter();
        assert_eq!(steps, expected.chain([RaceStep::Reset { proven: true }]).collect::<Vec<_>>());
    }

    #[test]
    fn the_preferred_node_waits_until_the_other_marks_are_gone() {
        let met = after(true, &[RAISED, RAISED, ALONE, MET]);
        assert_eq!((met.step(), met.sees_rival(Site::Own)), (RaceStep::Wait(Pause::Poll), true));
        let again = met.after(RaceEvent::Waited).after(ALONE);
        assert_eq!(again.step(), RaceStep::Read(Site::Own));
        assert_eq!(again.after(ALONE).step(), RaceStep::Reset { proven: true });
        for unknown in [UNREAD, listed(false, false)] {
            let unread = again.after(unknown);
            assert_eq!((unread.step(), unread.mark(Site::Own)), (RaceStep::Wait(Pause::Poll), Mark::Up), "{unknown:?}");
        }
    }

    #[test]
    fn the_other_node_withdraws_waits_and_begins_anew() {
        let met = after(false, &[RAISED, RAISED, MET, ALONE]);
        assert_eq!(met.step(), RaceStep::Lower);
        let withdrawn = met.after(RaceEvent::Lowered);
        assert_eq!((withdrawn.step(), withdrawn.mark(Site::Target)), (RaceStep::Wait(Pause::Delay), Mark::Down));
        assert_eq!(withdrawn.after(RaceEvent::Waited), Race::new(false));
    }

    #[test]
    fn what_is_not_proven_is_waited_for_once_and_never_as_long_on_both() {
        for (preferred, pause) in [(true, Pause::Short), (false, Pause::Delay)] {
            for blind in [[RAISED, FAILED, ALONE].as_slice(), &[RAISED, RAISED, listed(false, false), ALONE]] {
                let race = after(preferred, blind);
                assert_eq!(race.step(), RaceStep::Wait(pause), "{blind:?}");
                let again = race.after(RaceEvent::Waited);
                assert_eq!(again.step(), RaceStep::Read(Site::Target), "the marks stand meanwhile");
                let own = again.after(ALONE);
                let own = if own.step() == RaceStep::Read(Site::Own) { own.after(UNREAD) } else { own };
                assert_eq!(own.step(), RaceStep::Reset { proven: false }, "{blind:?}");
            }
        }
        // A mark that the target's BMC did not take is tried again, and one that appears meanwhile counts.
        let failed = after(false, &[FAILED, RAISED, listed(false, false), ALONE, RaceEvent::Waited]);
        assert_eq!(failed.step(), RaceStep::Raise(Site::Target));
        let both = failed.after(RAISED).after(ALONE);
        assert_eq!(both.after(ALONE).step(), RaceStep::Reset { proven: true });
        assert_eq!(both.after(MET).step(), RaceStep::Lower);
    }

    #[test]
    fn a_target_that_does_not_answer_is_marked_anew_and_never_reset() {
        for away in
            [&[UNANSWERED][..], &[FAILED, UNANSWERED, UNREAD], &[RAISED, FAILED, ALONE, RaceEvent::Waited, UNREAD]]
        {
            let race = after(false, away);
            assert_eq!(race.step(), RaceStep::Wait(Pause::Poll), "{away:?}");
            let back = race.after(RaceEvent::Waited);
            let back = if back.step() == RaceStep::Raise(Site::Target) { back.after(RAISED) } else { back };
            // The other BMC may be back as well, and what was waited for before counts no more.
            let own =
                if back.step() == RaceStep::Raise(Site::Own) { back.after(UNANSWERED).after(ALONE) } else { back };
            assert_eq!(own.step(), RaceStep::Wait(Pause::Delay), "{away:?}");
        }
    }

    #[test]
    fn an_event_of_another_step_changes_nothing() {
        let race = Race::new(true);
        for event in [ALONE, RaceEvent::Lowered, RaceEvent::Waited] {
            assert_eq!(race.after(event), race);
        }
    }
}
