//! The choice of the parameters between two histories.

/// The history that a node's parameters keep if the two nodes hold different ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeptHistory {
    /// The history of the configured primary (`two_histories=primary`). At first the parameters of both nodes keep this one.
    #[default]
    Primarys,
    /// No history is kept until an operator chooses one.
    Neither,
    /// The history of the node that is not the primary in `Bounds::primary`. Parameters with this value name that node as the primary.
    Others,
}
