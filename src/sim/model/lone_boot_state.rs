//! What a lone boot adds to the world: how BMCs answer, how far the process of a node is, and what the CIB has about two voters.

use crate::base::Fact;
use crate::decide::evidence::Redundancy;

/// How the BMC of a machine answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bmc {
    /// As its machine is.
    #[default]
    Honest,
    Silent,
    /// At its address answers the BMC of another machine, which is off.
    Anothers,
}

/// How far the lone boot of a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lone {
    /// It looks.
    #[default]
    Looks,
    /// The peer has been off for long enough.
    OffForLong,
    Announced,
    /// It was decided to hold the peer off.
    Holds,
    HeldOff,
    /// It was decided that Corosync waits no longer.
    Ends,
}

/// What the CIB has about two voters (`etcd_redundancy`). Only with `--lone-boot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Said {
    #[default]
    Nothing,
    Alone,
    Redundant,
}

impl Said {
    /// Returns the fact that an agent finds.
    pub(super) fn fact(self, is_asked: bool) -> Fact<Redundancy> {
        match (is_asked, self) {
            (false, _) => Fact::NotAsked,
            (true, Self::Nothing) => Fact::Absent,
            (true, said) => Fact::Known(Redundancy { is_redundant: said == Self::Redundant, since: 0 }),
        }
    }
}
