//! The choice of the parameters between two histories.

/// The history that a node's parameters keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeptHistory {
    /// The primary's history continues. Both nodes are configured with this.
    #[default]
    Primarys,
    /// An operator chooses.
    Neither,
    /// The parameters name the other node as the primary.
    Others,
}
