//! What `tandem gather` packs: its sources, with secrets taken out, as an archive.

pub(crate) mod archive;
pub mod redact;
pub mod sources;
