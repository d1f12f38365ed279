//! The choice of the parameters between two histories.

/// The history that is kept, according to a node's parameters, if the two nodes hold different ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeptHistory {
    /// The history of the configured primary is kept (`two_histories=primary`). Both nodes are configured so at the
    /// beginning.
    #[default]
    Primarys,
    /// No history is kept until an operator chooses one.
    Neither,
    /// The history of the node that is not the configured primary is kept, because the parameters name that node as the
    /// primary.
    Others,
}
