//! The choice of the parameters between two histories.

/// The history that survives by a node's parameters if the two nodes hold different ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeptHistory {
    /// The history of the configured primary survives (`two_histories=primary`). Both nodes are configured so at the
    /// beginning.
    #[default]
    Primarys,
    /// No history survives by itself, so an operator has to choose.
    Neither,
    /// The history of the node that is not the configured primary survives, because the parameters name that node as
    /// the primary.
    Others,
}
