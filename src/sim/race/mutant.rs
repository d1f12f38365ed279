//! Rules broken on purpose, from the outside: the input of the race, or the use of its steps. The race has no switch.

use crate::fence::race::{Listing, Pause, Race, RaceStep, Site};

/// A broken rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mutant {
    #[default]
    None,
    /// The lists that count are older than the marks.
    LookBeforeRaise,
    /// The preferred node resets at the sight of a mark.
    PreferredContinues,
    /// A list counts without this node's mark in it.
    OwnMarkUnproven,
    /// A node does not mark its own BMC, and takes any list of it.
    OwnBmcUnproven,
    /// The flag is a light that a node switches on at its target's BMC, and reads at its own. No list shows both.
    Light,
    /// A mark that is acknowledged too late is never taken down.
    LateForgotten,
    /// Marks go before the reset is answered and proven.
    LoweredEarly,
    /// A list that cannot be read shows no mark.
    UnreadIsGone,
    /// A killed agent's mark is ignored while its reset may still work.
    YoungIsKilled,
    /// The other node keeps its marks up while it waits.
    NeverWithdraws,
    BothPreferred,
    NeitherPreferred,
}

/// All broken rules, with the names that the command takes.
pub const ALL: [(&str, Mutant); 12] = [
    ("look-before-raise", Mutant::LookBeforeRaise),
    ("preferred-continues", Mutant::PreferredContinues),
    ("own-mark-unproven", Mutant::OwnMarkUnproven),
    ("own-bmc-unproven", Mutant::OwnBmcUnproven),
    ("light", Mutant::Light),
    ("late-forgotten", Mutant::LateForgotten),
    ("lowered-early", Mutant::LoweredEarly),
    ("unread-is-gone", Mutant::UnreadIsGone),
    ("young-is-killed", Mutant::YoungIsKilled),
    ("never-withdraws", Mutant::NeverWithdraws),
    ("both-preferred", Mutant::BothPreferred),
    ("neither-preferred", Mutant::NeitherPreferred),
];

impl Mutant {
    pub(super) fn is_preferred(self, node: usize) -> bool {
        match self {
            Self::BothPreferred => true,
            Self::NeitherPreferred => false,
            _ => node == 0,
        }
    }

    /// Returns whether a node marks its own BMC.
    pub(super) fn marks_own(self) -> bool {
        !matches!(self, Self::OwnBmcUnproven | Self::Light)
    }

    /// Returns whether the two nodes wait for different times.
    pub(super) fn waits_differ(self) -> bool {
        !matches!(self, Self::BothPreferred | Self::NeitherPreferred)
    }

    /// Returns the step that an agent takes instead of its next one.
    pub(super) fn step(self, race: Race) -> RaceStep {
        match race.step() {
            RaceStep::Wait(Pause::Poll) if self == Self::PreferredContinues => RaceStep::Reset { proven: true },
            step => step,
        }
    }

    /// Returns the list as the agent reads it. `at_first`: that BMC had a rival's mark when the agent was called.
    pub(super) fn listing(self, site: Site, listing: Option<Listing>, at_first: bool) -> Option<Listing> {
        match (self, listing) {
            (Self::LookBeforeRaise, Some(_)) => Some(Listing { ours: true, rivals: at_first }),
            (Self::OwnMarkUnproven, Some(listing)) => Some(Listing { ours: true, ..listing }),
            (Self::OwnBmcUnproven | Self::Light, Some(listing)) if site == Site::Own => {
                Some(Listing { ours: true, ..listing })
            }
            (Self::Light, Some(listing)) => Some(Listing { rivals: false, ..listing }),
            (Self::UnreadIsGone, None) => Some(Listing { ours: true, rivals: false }),
            (_, listing) => listing,
        }
    }
}
