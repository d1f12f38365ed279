//! The part of the world that a lone boot adds: the answers of BMCs, the progress of the process on each node, and the
//! CIB's property about two voters.

use crate::base::Fact;
use crate::decide::evidence::Redundancy;

/// The way in which a machine's BMC answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bmc {
    /// The BMC reports the real power of its machine.
    #[default]
    Honest,
    Silent,
    /// The BMC of another machine answers at the address, and that machine is off.
    Anothers,
}

/// The progress of `tandem lone-boot` on a node that boots without its peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lone {
    /// The process observes, and has seen the peer off for too short a time.
    #[default]
    Looks,
    /// The peer has been off for long enough that the process may act.
    OffForLong,
    Announced,
    /// The process has decided to hold the peer off, and has not done so yet.
    Holds,
    HeldOff,
    /// The process has decided to let Corosync wait for the peer no longer, and has not done so yet.
    Ends,
}

/// The CIB's property about whether there are two voters (`etcd_redundancy`). The model has it only with `--lone-boot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Said {
    #[default]
    Nothing,
    Alone,
    Redundant,
}

impl Said {
    /// Returns the property as evidence. `is_asked` is true if the agent reads it.
    pub(super) fn fact(self, is_asked: bool) -> Fact<Redundancy> {
        match (is_asked, self) {
            (false, _) => Fact::NotAsked,
            (true, Self::Nothing) => Fact::Absent,
            (true, said) => Fact::Known(Redundancy { is_redundant: said == Self::Redundant, since: 0 }),
        }
    }
}
