//! The content of `tandem gather`: its sources, the removal of secrets, and the archive.

pub(crate) mod archive;
pub mod redact;
pub mod sources;
