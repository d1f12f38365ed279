//! The offline reader and the advance of the commit index, on data dirs that real etcds of both supported Debian
//! versions wrote. A real etcd then judges the results.
//!
//! This is a separate tier, because it needs both etcds and takes minutes. Run it with
//! `cargo test --test data_dir_real -- --test-threads 4 --nocapture`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod auth;
mod certs;
#[path = "../support/data_dir/copy.rs"]
mod copy;
mod etcd;
mod fixtures;
mod histories;
mod locks;
mod loss;
mod members;
mod members_change;
mod reading;
mod settings;
mod vote_proxy;

use std::path::{Path, PathBuf};

use etcd::{Etcd, Place, Version};
use tandem::adapters::data_dir::{self, DataDir, History};

/// Returns a directory for the data of one test, on a real disk.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn present(dir: &Path) -> History {
    match data_dir::read(dir).unwrap() {
        DataDir::Present(history) => history,
        other => panic!("{}: no history: {other:?}", dir.display()),
    }
}

/// Runs `test` with every release of etcd, each time in a new directory.
fn each_version(test: impl Fn(&Version, &Path)) {
    for version in etcd::versions() {
        let root = scratch();
        test(&version, root.path());
    }
}

/// Starts a cluster of two voters. Returns the leader first.
fn two_voters(version: &Version, root: &Path, more: &[&str]) -> (Etcd, Etcd) {
    let (one, two) = (Place::new(version, root, "one"), Place::new(version, root, "two"));
    let start = |place: &Place| place.start(&[&one, &two], "new", more);
    let (mut first, mut second) = (start(&one), start(&two));
    let leader = first.wait().status().unwrap().leader();
    let status = second.wait().status().unwrap();
    let is_second = status.header().unwrap().member_id() == leader;
    if is_second { (second, first) } else { (first, second) }
}

/// Returns the path of the WAL file in `dir` that etcd writes to.
fn last_wal(dir: &Path) -> PathBuf {
    let names = std::fs::read_dir(dir.join("member/wal")).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|end| end == "wal")).max().unwrap()
}
