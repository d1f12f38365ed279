//! The commands of `tandem setup`, executed by pcs itself on files. They make the described cluster from blank hosts
//! and from each state in which a run may have been interrupted. A later change is detected, and the commands of
//! `--change` revert it.
//!
//! Needs root and the packages pcs and pacemaker-cli-utils. Both agents are installed in mount namespaces of the tests'
//! own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod from_blank;
#[path = "../support/namespaces.rs"]
mod namespaces;
mod of_the_api;
mod repairs;
#[path = "../support/secrets_api.rs"]
mod secrets_api;
#[path = "../support/setup/variants.rs"]
mod variants;
mod workshop;
