//! What the collector observes on its timer, and its last observation on disk.

pub mod machines;
pub mod openshift;
pub mod passwords;
mod secrets;
pub mod seen;
pub mod status;
