//! The version of this program, as people and the other node see it.

/// The version of this program. It has a suffix in a build that can inject faults.
pub(crate) const VERSION: &str = if cfg!(feature = "lab-faults") {
    concat!(env!("CARGO_PKG_VERSION"), "+faults")
} else {
    env!("CARGO_PKG_VERSION")
};
