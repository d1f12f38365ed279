//! Which version this is, as people and the other node are told.

/// A build that can be told to lose writes says so.
pub(crate) const VERSION: &str = if cfg!(feature = "lab-faults") {
    concat!(env!("CARGO_PKG_VERSION"), "+faults")
} else {
    env!("CARGO_PKG_VERSION")
};
