//! Pieces of real data dirs, with etcd's own description when they were made; see `tests/data/fixtures/data_dir`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tandem::adapters::data_dir::{self, DataDir, History};

use crate::copy::copy_dir;

fn fixture(version: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures/data_dir").join(version).join(name)
}

fn history(dir: &Path) -> History {
    match data_dir::read(dir).unwrap() {
        DataDir::Present(history) => history,
        other => panic!("{}: {other:?}", dir.display()),
    }
}

#[test]
fn what_is_read_is_what_etcd_said() {
    for version in ["3.4", "3.5"] {
        for name in ["voter", "learner", "departed"] {
            let dir = fixture(version, name);
            let read = serde_json::to_value(history(&dir)).unwrap();
            let expected: Value = serde_json::from_slice(&fs::read(dir.join("expected.json")).unwrap()).unwrap();
            let expected = expected.as_object().unwrap();
            assert_eq!(expected.len(), 8);
            for (key, value) in expected {
                assert_eq!(read[key], *value, "{key} of {}", dir.display());
            }
        }
    }
}

/// Asserts that the revision and the members' names are read from the database. Data that was moved aside must read like the
/// present data.
#[test]
fn the_revision_and_names_are_those_of_the_database() {
    for version in ["3.4", "3.5"] {
        for name in ["voter", "learner", "departed"] {
            let dir = fixture(version, name);
            let described = data_dir::described(&dir.join("member"));
            if name == "voter" {
                let mut names: Vec<&str> = described.names.values().map(String::as_str).collect();
                names.sort_unstable();
                // The 40 keys that the test wrote.
                assert_eq!((described.revision, names), (Some(41), vec!["one", "two"]), "etcd {version}");
            }
            assert_eq!(data_dir::read_aside(&dir.join("member")).unwrap(), data_dir::read(&dir).unwrap());
        }
    }
}

#[test]
fn only_the_voters_data_can_be_advanced() {
    for version in ["3.4", "3.5"] {
        let scratch = tempfile::tempdir().unwrap();
        let copy = |name| {
            let dir = scratch.path().join(name);
            copy_dir(&fixture(version, name).join("member"), &dir.join("member"));
            dir
        };
        for name in ["learner", "departed"] {
            assert!(data_dir::advance_commit(&copy(name)).is_err(), "etcd {version}, {name}");
        }
        let dir = copy("voter");
        let before = history(&dir);
        let done = data_dir::advance_commit(&dir).unwrap();
        assert_eq!((done.from, done.to), (before.commit_index, before.last_index));
        assert!(done.from < done.to, "etcd {version}: nothing is left to advance, this shows nothing");
        assert_eq!(history(&dir), History { commit_index: before.last_index, ..before });
    }
}

#[test]
fn the_database_says_whether_the_rest_is_missing() {
    for version in ["3.4", "3.5"] {
        let scratch = tempfile::tempdir().unwrap();
        copy_dir(&fixture(version, "voter").join("member"), &scratch.path().join("member"));
        fs::remove_dir_all(scratch.path().join("member/wal")).unwrap();
        let snap = scratch.path().join("member/snap");
        for entry in fs::read_dir(&snap).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|name| name != "db") {
                fs::remove_file(path).unwrap();
            }
        }
        let found = data_dir::read(scratch.path()).unwrap();
        assert!(matches!(&found, DataDir::Broken { why } if why.contains("has a database, but no WAL")), "{found:?}");
    }
}
