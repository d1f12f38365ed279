//! Moving a member's data aside.

use std::fs;
use std::path::PathBuf;

use tandem::data_dir::{self, DataDir, Error};

use crate::layout::lock_as_etcd;
use crate::read;
use crate::writer::{Dir, Writer};

/// Fills `member` again, with a mark.
fn refill(dir: &Dir, mark: usize) {
    fs::create_dir_all(dir.path().join("member")).unwrap();
    fs::write(dir.path().join("member/mark"), mark.to_string()).unwrap();
}

fn aside(dir: &Dir, keep: usize) -> Option<PathBuf> {
    data_dir::move_aside(dir.path(), keep).unwrap()
}

#[test]
fn the_data_is_elsewhere_and_whole() {
    let dir = Writer::two_voters().write();
    let before = read(&dir);
    let backup = aside(&dir, 3).unwrap();
    assert_eq!(backup.parent(), Some(dir.path()));
    assert!(backup.file_name().unwrap().to_str().unwrap().starts_with("member-backup-0001-"), "{}", backup.display());
    assert_eq!(read(&dir), DataDir::Blank);
    fs::rename(&backup, dir.path().join("member")).unwrap();
    assert_eq!(read(&dir), before);
}

#[test]
fn nothing_there_is_nothing_moved() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(data_dir::move_aside(dir.path(), 1).unwrap(), None);
    assert_eq!(data_dir::move_aside(&dir.path().join("missing"), 1).unwrap(), None);
}

#[test]
fn the_oldest_go_and_the_newest_stays() {
    let dir = Writer::two_voters().write();
    let backups: Vec<_> = (0..12)
        .map(|mark| {
            refill(&dir, mark);
            aside(&dir, 3).unwrap()
        })
        .collect();
    let kept: Vec<_> = backups.iter().map(|path| path.exists()).collect();
    assert_eq!(kept, [[false; 9].as_slice(), &[true; 3]].concat());
    assert_eq!(fs::read_to_string(backups[11].join("mark")).unwrap(), "11");
    refill(&dir, 12);
    let newest = aside(&dir, 0).unwrap();
    assert!(newest.exists(), "the one just made is never pruned");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn order_does_not_come_from_the_clock() {
    let dir = Writer::two_voters().write();
    let from_the_future = dir.path().join("member-backup-0001-29991231T235959Z");
    fs::create_dir(&from_the_future).unwrap();
    let foreign = dir.path().join("member-backup-by-hand");
    fs::create_dir(&foreign).unwrap();
    let first = aside(&dir, 2).unwrap();
    refill(&dir, 1);
    let second = aside(&dir, 2).unwrap();
    assert!(first.exists() && second.exists() && foreign.exists() && !from_the_future.exists());
}

#[test]
fn what_was_half_deleted_goes() {
    let dir = Writer::two_voters().write();
    let half = dir.path().join("member-discard-member-backup-0001-20250101T000000Z");
    fs::create_dir(&half).unwrap();
    aside(&dir, 2).unwrap();
    assert!(!half.exists());
}

#[test]
fn an_open_data_dir_is_refused() {
    let dir = Writer::two_voters().write();
    let _lock = lock_as_etcd(&dir.wals()[0]);
    let error = data_dir::move_aside(dir.path(), 3).unwrap_err();
    assert!(matches!(error, Error::Open { .. }), "{error}");
    assert!(dir.wal().exists());
}
