//! The version of this program, as people and the other node see it.

/// The version. A build that can inject faults is marked.
pub(crate) const VERSION: &str = if cfg!(feature = "lab-faults") {
    concat!(env!("CARGO_PKG_VERSION"), "+faults")
} else {
    env!("CARGO_PKG_VERSION")
};
