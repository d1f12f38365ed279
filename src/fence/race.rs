//! The decision which of two nodes that fence each other sends a reset. It is a pure function from this node's marks and readings
//! to its next step.
//!
//! `docs/decisions/fence-race.md` has the argument. A node marks both BMCs, and only then reads both lists. A list counts once it
//! shows this node's own mark. So if two nodes mark one BMC, at least one sees the other. No node resets while it sees a mark of
//! the other. The preferred node waits until that mark has gone, and the other node withdraws its own.

/// A BMC on which an agent opens a mark session. This is a Redfish session that shows the other node's agent that this agent
/// plans a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Site {
    /// The BMC of the node that is to be reset.
    Target,
    /// The BMC of the node that this agent runs on.
    Own,
}

pub const SITES: [Site; 2] = [Site::Target, Site::Own];

/// The BMCs that have not yet answered the present step of the fence race. The agent queries both at the same time, and they
/// answer in any order.
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

/// The state of this node's mark session (see [`Site`]) on one BMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mark {
    #[default]
    Down,
    /// The BMC did not open the mark session (see [`Site`]), or opened it without this node's knowledge.
    Failed,
    /// The target's BMC did not answer the request for a mark session (see [`Site`]).
    Silent,
    Up,
    /// The BMC's last list of sessions contains this node's mark session (see [`Site`]).
    Proven,
}

/// The next step of a race between the agents of two nodes that fence each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaceStep {
    Raise(Open),
    Read(Open),
    /// Delete this node's mark sessions (see [`Site`]) on both BMCs.
    Lower,
    Wait(Pause),
    /// Send the reset, because this node has won the race. `proven` is true if the lists of both BMCs show that. It is false if
    /// this node has only waited long enough.
    Reset {
        proven: bool,
    },
}

/// The length of a wait in a fence race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pause {
    /// The wait before the agent reads the BMCs' lists of sessions again.
    Poll,
    /// One second. The preferred node waits so long if a BMC's list does not show the session that this node opened there for the
    /// race.
    Short,
    /// The value of the option `race_delay`. The node that is not preferred waits so long.
    Delay,
}

/// The result of a step of a fence race on one BMC, or the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaceEvent {
    Raised(Site, Raised),
    /// The BMC's list of sessions. It is empty if the BMC offers no list, and `None` if the BMC did not answer.
    Listed(Site, Option<Listing>),
    Lowered,
    Waited,
}

/// A BMC's answer to the request for a mark session (see [`Site`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Raised {
    Acknowledged,
    /// The BMC answered that it opens no session at present.
    Refused,
    /// The BMC did not answer. It may not have received the request, or may have opened the session.
    Unanswered,
}

/// Facts from a BMC's list of sessions that matter to the fence race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Listing {
    /// True if the list contains the session by which this agent announces its reset.
    pub ours: bool,
    /// True if the list contains a session by which the other node may announce a reset. A session does not count once the agent
    /// that opened it must have ended.
    pub rivals: bool,
}

/// The state of a fence race as one node knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Race {
    preferred: bool,
    target: Knowledge,
    own: Knowledge,
    /// True once this node has waited while its mark sessions (see [`Site`]) were open. It waits if a BMC's list does not show
    /// its mark session.
    waited: bool,
    step: RaceStep,
}

/// The mark sessions (see [`Site`]) of both nodes on one BMC, as far as this node knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Knowledge {
    mark: Mark,
    /// True if this node has seen the other node's mark session (see [`Site`]) on this BMC. It becomes false once a later list
    /// contains this node's session and not the other node's.
    rival: bool,
}

impl Knowledge {
    fn listed(&mut self, listing: Option<Listing>) {
        let Some(Listing { ours, rivals }) = listing else {
            // Unknown is not absent, so an earlier observation still counts.
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
    /// Begins a fence race. `preferred` is true for the node that wins if both nodes take part.
    pub fn new(preferred: bool) -> Self {
        let step = RaceStep::Raise(Open::BOTH);
        Self { preferred, target: Knowledge::default(), own: Knowledge::default(), waited: false, step }
    }

    pub fn step(&self) -> RaceStep {
        self.step
    }

    /// Returns the state of this node's mark session (see [`Site`]) on a BMC.
    pub fn mark(&self, site: Site) -> Mark {
        self.at(site).mark
    }

    /// Returns whether the other node has a mark session (see [`Site`]) on a BMC, as far as this node knows.
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

    /// Returns the state of the race after `event`. If the event does not belong to the present step, the state does not change.
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
            // A late answer: the mark is up, and a list may prove it.
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
                // A node that has withdrawn forgets its observations, and marks and reads anew.
                self = Self { step: RaceStep::Wait(Pause::Delay), ..Self::new(self.preferred) };
            }
            (RaceStep::Wait(pause), RaceEvent::Waited) => {
                self.waited |= pause != Pause::Poll && self.target.mark != Mark::Down;
                let target = matches!(self.target.mark, Mark::Down | Mark::Failed | Mark::Silent);
                // A target that was silent must answer before this node marks its own BMC again.
                let own = self.own.mark == Mark::Down && self.target.mark != Mark::Silent;
                let open = Open { target, own };
                self.step = if open.is_empty() { self.read() } else { RaceStep::Raise(open) };
            }
            _ => {}
        }
        self
    }

    /// Returns the step after both BMCs have answered the requests for mark sessions (see [`Site`]). The agent reads the BMCs'
    /// lists only after both answers.
    fn after_raising(&mut self) -> RaceStep {
        match (self.target.mark, self.own.mark) {
            // A node that cannot reset must not leave a mark, because the other node waits for it.
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
        // The wait for a BMC that did not accept the mark is over.
        RaceStep::Read(Open { target: true, own: self.own.mark != Mark::Failed })
    }

    /// Begins the race again, because the target's BMC does not answer. By the time that it answers, this node's observations
    /// will be outdated. Without a mark session (see [`Site`]) this node must not reset, because the other node may reset at the
    /// same time.
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

    /// Returns the next step of the fence race, which this node decides from the lists of sessions of both BMCs.
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
