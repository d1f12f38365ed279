//! Fuzzing of every external input: a bounded number of generated inputs must cause no panic, and no memory use beyond
//! a multiple of the input.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod allocation;
mod data_dir;
mod events;
mod fence;
mod fencing_agent;
mod parsers;
#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "../support/data_dir/writer.rs"]
mod writer;
