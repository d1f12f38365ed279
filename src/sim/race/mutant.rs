//! Rules broken on purpose, from the outside: the input of the race, or the use of its steps. The race has no switch.

use crate::fence::race::{Listing, Pause, Race, RaceStep, Site};

/// A rule of the fence race that is broken on purpose. The search must catch each one. The rules are about mark sessions: sessions that
/// an agent opens on a BMC to show the other node's agent that it is about to send a reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mutant {
    #[default]
    None,
    /// A node decides by lists of sessions that it read before it opened its own mark sessions.
    LookBeforeRaise,
    /// The preferred node sends its reset although it sees a mark session of the other node.
    PreferredContinues,
    /// A list of sessions counts although this node's own mark session is missing in it.
    OwnMarkUnproven,
    /// A node opens no mark session on its own BMC, and any list of sessions from that BMC counts.
    OwnBmcUnproven,
    /// Nodes use the BMCs' locate lights, and no mark sessions. A node switches on the light at its target's BMC, and reads the light
    /// at its own BMC. So no node sees both lights.
    Light,
    /// If a BMC acknowledges a mark session too late, the node forgets that session and never closes it.
    LateForgotten,
    /// A node closes its mark sessions before it has the answer to its reset and a proof that it worked.
    LoweredEarly,
    /// A list of sessions that cannot be read counts as one without mark sessions.
    UnreadIsGone,
    /// A mark session of a killed agent is ignored although that agent's reset may still take effect.
    YoungIsKilled,
    /// The node that is not preferred keeps its mark sessions open while it waits.
    NeverWithdraws,
    BothPreferred,
    NeitherPreferred,
}

/// All broken rules, each with its name on the command line.
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

    /// Returns whether a node under this rule opens a mark session on its own BMC, in addition to that on its target's BMC.
    pub(super) fn marks_own(self) -> bool {
        !matches!(self, Self::OwnBmcUnproven | Self::Light)
    }

    /// Returns whether the two nodes wait for different times under this rule.
    pub(super) fn waits_differ(self) -> bool {
        !matches!(self, Self::BothPreferred | Self::NeitherPreferred)
    }

    /// Returns the step that an agent takes under this rule in place of its next one.
    pub(super) fn step(self, race: Race) -> RaceStep {
        match race.step() {
            RaceStep::Wait(Pause::Poll) if self == Self::PreferredContinues => RaceStep::Reset { proven: true },
            step => step,
        }
    }

    /// Returns a BMC's list of sessions as the agent reads it under this rule. `at_first` is true if the other node had a mark session
    /// on that BMC when the agent was called.
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
