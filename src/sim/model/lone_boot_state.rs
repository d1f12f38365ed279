//! The part of the world that a lone boot adds: the answers of BMCs, the progress of the process on each node, and the
//! CIB's property about two voters.

use crate::base::Fact;
use crate::decide::evidence::Redundancy;

/// The way in which a machine's BMC answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bmc {
    /// The BMC reports the real power state of its machine.
    #[default]
    Honest,
    Silent,
    /// A third machine's BMC answers at this BMC's address, and reports that the third machine is off.
    Anothers,
}

/// The progress of `tandem lone-boot` on a node that boots without its peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lone {
    /// The process observes the peer, which has not yet been off for long enough.
    #[default]
    Looks,
    /// The peer has been off for so long that the process may act.
    OffForLong,
    Announced,
    /// The process has decided to have the fencer fence the peer, so that the peer stays off. It has yet to do so.
    Holds,
    HeldOff,
    /// The process has decided to end Corosync's wait for the peer, and has yet to do so.
    Ends,
}

/// The CIB's property that records whether there are two voters (`etcd_redundancy`). It has a value only in a search with
/// `--lone-boot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Said {
    #[default]
    Nothing,
    Alone,
    Redundant,
}

impl Said {
    /// Converts the property to evidence. `is_asked` is true if the agent reads the property.
    pub(super) fn fact(self, is_asked: bool) -> Fact<Redundancy> {
        match (is_asked, self) {
            (false, _) => Fact::NotAsked,
            (true, Self::Nothing) => Fact::Absent,
            (true, said) => Fact::Known(Redundancy { is_redundant: said == Self::Redundant, since: 0 }),
        }
    }
}
