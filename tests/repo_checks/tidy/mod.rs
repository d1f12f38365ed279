//! The order of the sources: imports between folders, no circles between files, and no file that outgrows its topic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod borders;
mod circles;
mod core;
mod globals;
mod one_place;
mod sizes;
mod sources;
