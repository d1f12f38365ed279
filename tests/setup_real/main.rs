//! The commands of `tandem setup`, done by pcs itself on files: from nothing, and from each place at which they may have been cut off, they
//! make the cluster that was described; and what somebody changed is seen, and changed back by the commands of `--change`.
//!
//! Needs root and the packages pcs and pacemaker-cli-utils; both agents are put in their places in mount namespaces of the tests' own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod from_blank;
#[path = "../namespaces/mod.rs"]
mod namespaces;
mod of_the_api;
mod repairs;
#[path = "../setup/variants.rs"]
mod variants;
mod workshop;
