//! Which of two histories the parameters keep.

/// Which of two histories a node's parameters keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeptHistory {
    /// The primary's continues: what both nodes are configured with.
    #[default]
    Primarys,
    /// An operator chooses.
    Neither,
    /// They name the other node as the primary.
    Others,
}
