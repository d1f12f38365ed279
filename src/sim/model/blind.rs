//! The facts that an agent may fail to observe.

/// The fact that the agent's next observation misses. Every variant except `None` is a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Blind {
    #[default]
    None,
    Cib,
    Note,
    Disk,
    Container,
    OwnEtcd,
    PeerEtcd,
    /// The answer of the peer's etcd is missing, because an etcd of another cluster answers at the peer's address.
    Stranger,
}

impl Blind {
    /// All facts that a fault can hide from an observation.
    pub const ALL: [Self; 7] =
        [Self::Cib, Self::Note, Self::Disk, Self::Container, Self::OwnEtcd, Self::PeerEtcd, Self::Stranger];
}
