//! `tandem etcdctl`: every argument after it is etcdctl's.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as a user would")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::{Command, Output};

fn tandem(words: &[&str]) -> Output {
    // The directory has no CIB, even if this machine is part of a cluster.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cib.xml");
    Command::new(env!("CARGO_BIN_EXE_tandem")).args(words).env("CIB_file", file).output().unwrap()
}

/// Asserts that `tandem etcdctl` takes every argument as one for etcdctl, so that no argument is a usage error.
/// Without a cluster all commands end with the same code.
#[test]
fn no_word_of_etcdctl_is_refused() {
    let like_others = tandem(&["space"]);
    assert_eq!(like_others.status.code(), Some(1));
    for words in [
        &["etcdctl"][..],
        &["etcdctl", "--help"],
        &["etcdctl", "-w", "json", "endpoint", "status"],
        &["etcdctl", "--endpoints=https://192.0.2.1:2379", "get", "--prefix", ""],
        &["etcdctl", "put", "--", "-key", "--value"],
        &["etcdctl", "--resource", "etcd", "member", "list", "--json"],
    ] {
        let output = tandem(words);
        assert_eq!((output.status.code(), &output.stderr), (Some(1), &like_others.stderr), "{words:?}");
    }
}
