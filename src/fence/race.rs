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

/// Both BMCs.
pub const SITES: [Site; 2] = [Site::Target, Site::Own];

/// The BMCs that have not answered a step yet. They are asked at once, and answer in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Open {
    pub target: bool,
    pub own: bool,
}

impl Open {
    pub const BOTH: Self = Self { target: true, own: true };

    pub fn has(self, site: Site) -> bool {
        match site {
            Site::Target => self.target,
            Site::Own => self.own,
        }
    }

    fn without(self, site: Site) -> Self {
        Self { target: self.target && site != Site::Target, own: self.own && site != Site::Own }
    }

    fn is_empty(self) -> bool {
        self == Self { target: false, own: false }
    }
}

/// This node's mark on one BMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mark {
    #[default]
    Down,
    /// The BMC did not take it, as far as this node knows.
    Failed,
    /// The target's BMC did not answer.
    Silent,
    Up,
    /// The last list shows it.
    Proven,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaceStep {
    Raise(Open),
    Read(Open),
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
    Raised(Site, Raised),
    /// What a list shows; `None` where the BMC did not answer. A BMC without a list shows nothing.
    Listed(Site, Option<Listing>),
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
        let step = RaceStep::Raise(Open::BOTH);
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
            (RaceStep::Raise(open), RaceEvent::Raised(site, raised)) if open.has(site) => {
                self.at_mut(site).mark = match raised {
                    Raised::Acknowledged => Mark::Up,
                    Raised::Unanswered if site == Site::Target => Mark::Silent,
                    Raised::Refused | Raised::Unanswered => Mark::Failed,
                };
                self.step = match open.without(site) {
                    rest if rest.is_empty() => self.after_raising(),
                    rest => RaceStep::Raise(rest),
                };
            }
            (RaceStep::Read(open), RaceEvent::Listed(Site::Target, None)) if open.target => {
                self.target.listed(None);
                self.begin_anew();
            }
            (RaceStep::Read(open), RaceEvent::Listed(site, listing)) if open.has(site) => {
                self.at_mut(site).listed(listing);
                self.step = match open.without(site) {
                    rest if rest.is_empty() => self.decide(),
                    rest => RaceStep::Read(rest),
                };
            }
            // An answer that comes late: the mark is up, and a list may prove it.
            (RaceStep::Wait(_), RaceEvent::Raised(site, Raised::Acknowledged))
                if matches!(self.at(site).mark, Mark::Failed | Mark::Silent) =>
            {
                self.at_mut(site).mark = Mark::Up;
            }
            (RaceStep::Lower, RaceEvent::Lowered) if self.target.mark == Mark::Silent => {
                self.own.mark = Mark::Down;
                self.begin_anew();
            }
            (RaceStep::Lower, RaceEvent::Lowered) => {
                // A withdrawn node knows nothing any more: it marks and reads anew.
                self = Self { step: RaceStep::Wait(Pause::Delay), ..Self::new(self.preferred) };
            }
            (RaceStep::Wait(pause), RaceEvent::Waited) => {
                self.waited |= pause != Pause::Poll && self.target.mark != Mark::Down;
                let target = matches!(self.target.mark, Mark::Down | Mark::Failed | Mark::Silent);
                // A target that was silent answers before this node marks its own BMC again.
                let own = self.own.mark == Mark::Down && self.target.mark != Mark::Silent;
                let open = Open { target, own };
                self.step = if open.is_empty() { self.read() } else { RaceStep::Raise(open) };
            }
            _ => {}
        }
        self
    }

    /// Every mark is up before the first list is read.
    fn after_raising(&mut self) -> RaceStep {
        match (self.target.mark, self.own.mark) {
            // A mark of a node that cannot reset may not stay: the other node waits for it.
            (Mark::Silent, Mark::Up | Mark::Proven) => RaceStep::Lower,
            (Mark::Silent, _) => {
                self.begin_anew();
                self.step
            }
            (_, Mark::Down) => RaceStep::Raise(Open { target: false, own: true }),
            _ => self.read(),
        }
    }

    fn read(&self) -> RaceStep {
        // A BMC that did not take the mark has been waited for once.
        RaceStep::Read(Open { target: true, own: self.own.mark != Mark::Failed })
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
mod tests;
