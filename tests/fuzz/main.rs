//! Whatever comes from outside is parsed without a panic and without memory beyond a multiple of what is read: inputs that
//! nobody thinks of, a bounded number of them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod allocation;
mod data_dir;
mod events;
mod fence;
mod fencing_agent;
mod parsers;
#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "../data_dir/writer.rs"]
mod writer;
