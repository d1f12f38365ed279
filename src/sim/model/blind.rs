//! What an agent may fail to find out.

/// What the next look of an agent does not find out; each is a fault.
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
    /// The peer's own etcd, because an etcd of another cluster answers at its address.
    Stranger,
}

impl Blind {
    /// Each of them, but that nothing is hidden.
    pub const ALL: [Self; 7] =
        [Self::Cib, Self::Note, Self::Disk, Self::Container, Self::OwnEtcd, Self::PeerEtcd, Self::Stranger];
}
