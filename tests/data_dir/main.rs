//! The offline reader of etcd's data dir, on generated data dirs and on pieces of real ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod advance;
mod aside;
mod command;
#[path = "../support/data_dir/copy.rs"]
mod copy;
mod fixtures;
mod keys;
mod layout;
mod log;
mod members;
mod planted;
#[path = "../support/data_dir/writer.rs"]
mod writer;

use std::collections::BTreeSet;

use tandem::adapters::data_dir::{self, DataDir, History};
use writer::Dir;

fn read(dir: &Dir) -> DataDir {
    data_dir::read(dir.path()).unwrap()
}

/// Returns the content of a data dir that must hold readable data.
fn present(dir: &Dir) -> History {
    match read(dir) {
        DataDir::Present(history) => history,
        other => panic!("no history: {other:?}"),
    }
}

/// Returns the reason why the data is broken, and fails if it is not.
fn broken(dir: &Dir) -> String {
    match read(dir) {
        DataDir::Broken { why } => why,
        other => panic!("not broken: {other:?}"),
    }
}

fn ids(ids: &[u64]) -> BTreeSet<u64> {
    ids.iter().copied().collect()
}
