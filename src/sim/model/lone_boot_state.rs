//! The part of the world that a lone boot adds: the answers of BMCs, the progress of the process on each node, and the
//! CIB's property about two voters.

use crate::base::Fact;
use crate::decide::evidence::Redundancy;

/// The answer of a machine's BMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bmc {
    /// The BMC reports the power of its machine.
    #[default]
    Honest,
    Silent,
    /// The BMC of another machine, which is off, answers at the address.
    Anothers,
}

/// The progress of a node's lone boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lone {
    /// The process observes.
    #[default]
    Looks,
    /// The peer has been off for long enough.
    OffForLong,
    Announced,
    /// The process has decided to hold the peer off.
    Holds,
    HeldOff,
    /// The process has decided that Corosync waits no longer.
    Ends,
}

/// The CIB's property about two voters (`etcd_redundancy`). Only with `--lone-boot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Said {
    #[default]
    Nothing,
    Alone,
    Redundant,
}

impl Said {
    /// Returns the fact that an agent observes.
    pub(super) fn fact(self, is_asked: bool) -> Fact<Redundancy> {
        match (is_asked, self) {
            (false, _) => Fact::NotAsked,
            (true, Self::Nothing) => Fact::Absent,
            (true, said) => Fact::Known(Redundancy { is_redundant: said == Self::Redundant, since: 0 }),
        }
    }
}
