//! Tests of data dirs that are blank, incomplete or unreadable, and of the processes that hold them open.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;

use nix::fcntl::{FcntlArg, Flock, FlockArg, fcntl};
use nix::libc;
use tandem::adapters::data_dir::{self, DataDir, Error};

use crate::writer::{Dir, ME, Writer, database};
use crate::{broken, present, read};

/// Takes the lock that etcd takes on its WAL files, and returns the open file.
pub(crate) fn lock_as_etcd(path: &std::path::Path) -> File {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&whole_file())).unwrap();
    file
}

fn whole_file() -> libc::flock {
    libc::flock { l_type: libc::F_WRLCK.try_into().unwrap(), l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 }
}

#[test]
fn nothing_at_all_is_blank() {
    let dir = tempfile::tempdir().unwrap();
    let read = |path: &std::path::Path| data_dir::read(path).unwrap();
    assert_eq!(read(dir.path()), DataDir::Blank);
    assert_eq!(read(&dir.path().join("missing")), DataDir::Blank);
    fs::create_dir_all(dir.path().join("member/snap")).unwrap();
    assert_eq!(read(dir.path()), DataDir::Blank);
    fs::create_dir_all(dir.path().join("member/wal")).unwrap();
    assert_eq!(read(dir.path()), DataDir::Blank);
    assert!(!data_dir::is_open(dir.path()).unwrap());
}

#[test]
fn what_a_failed_first_start_leaves_is_blank() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("member/snap")).unwrap();
    // An incomplete WAL may exist or not.
    for _ in 0..2 {
        for bytes in [Vec::new(), database(None, true), database(None, false)] {
            fs::write(dir.path().join("member/snap/db"), bytes).unwrap();
            assert_eq!(data_dir::read(dir.path()).unwrap(), DataDir::Blank);
        }
        fs::create_dir_all(dir.path().join("member/wal.tmp")).unwrap();
    }
}

fn two_voters() -> Dir {
    Writer::two_voters().write()
}

#[test]
fn half_a_data_dir_is_broken_and_not_blank() {
    let dir = two_voters();
    let wal = dir.wals().remove(0);
    fs::rename(&wal, wal.with_extension("wal.broken")).unwrap();
    assert!(broken(&dir).contains("no readable WAL file"));
    let dir = two_voters();
    fs::remove_dir_all(dir.wal()).unwrap();
    assert!(broken(&dir).contains("cannot be read, and no WAL"));
    for inline in [true, false] {
        fs::write(dir.snap().join("db"), database(Some(9), inline)).unwrap();
        assert!(broken(&dir).contains("has a database, but no WAL"));
    }
    fs::write(dir.snap().join("db"), database(None, true)).unwrap();
    assert_eq!(read(&dir), DataDir::Blank);
    dir.add_snapshot(2, 1, &[ME], &[], "");
    assert!(broken(&dir).contains("has snapshots, but no WAL"));
}

#[test]
fn a_log_whose_end_is_lost_is_told_by_the_database() {
    let mut writer = Writer::two_voters();
    writer.puts(8);
    let dir = writer.write();
    for (applied, damage) in [(9, 0), (10, 0), (11, 1)] {
        fs::write(dir.snap().join("db"), database(Some(applied), true)).unwrap();
        assert_eq!(present(&dir).damage.len(), damage, "{applied}");
    }
    assert!(present(&dir).damage[0].contains("up to index 11, the log ends at 10"));
    // A running etcd has continued since its log was read.
    let _etcd = lock_as_etcd(&dir.snap().join("db"));
    assert_eq!(present(&dir).damage, Vec::<String>::new());
}

#[test]
fn a_compacted_log_needs_a_database_that_reaches_its_snapshot() {
    let mut writer = Writer::two_voters();
    writer.puts(8);
    writer.state(10);
    writer.snapshot_record(9, 1);
    let dir = writer.write();
    dir.add_snapshot(9, 1, &[ME], &[], "");
    for applied in [9, 10] {
        fs::write(dir.snap().join("db"), database(Some(applied), true)).unwrap();
        assert_eq!(present(&dir).last_index, 10);
    }
    fs::write(dir.snap().join("db"), database(Some(8), false)).unwrap();
    assert!(broken(&dir).contains("reaches only up to index 8"));
    fs::write(dir.snap().join("db"), database(None, false)).unwrap();
    assert!(broken(&dir).contains("missing or empty"));
    fs::remove_file(dir.snap().join("db")).unwrap();
    assert!(broken(&dir).contains("missing or empty"));
    // A database that the leader sent is good enough.
    fs::write(dir.snap().join("0000000000000009.snap.db"), b"").unwrap();
    present(&dir);
}

#[test]
fn a_whole_log_without_snapshots_is_enough() {
    let dir = two_voters();
    fs::remove_dir_all(dir.snap()).unwrap();
    assert_eq!(present(&dir).last_index, 2);
}

#[test]
fn what_could_not_be_looked_at_is_unknown() {
    // This is a link to a file system that is not mounted.
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link");
    symlink("/nowhere/at/all", &link).unwrap();
    assert!(data_dir::read(&link).is_err());
    symlink("/nowhere/at/all", dir.path().join("member")).unwrap();
    assert!(data_dir::read(dir.path()).is_err());
    // This is a file in the place of a directory.
    let dir = two_voters();
    fs::remove_dir_all(dir.snap()).unwrap();
    fs::write(dir.snap(), b"").unwrap();
    assert!(data_dir::read(dir.path()).is_err());
    // This file cannot be read: a directory gives an error even to root.
    let dir = two_voters();
    let wal = dir.wals().remove(0);
    fs::remove_file(&wal).unwrap();
    fs::create_dir(&wal).unwrap();
    let error = data_dir::read(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(error.to_string().contains(".wal"), "{error}");
}

#[test]
fn leftovers_do_no_harm() {
    let dir = two_voters();
    fs::create_dir(dir.path().join("member/wal.tmp")).unwrap();
    fs::write(dir.wal().join("0000000000000000-0000000000000000.wal.broken"), b"").unwrap();
    fs::write(dir.snap().join("0000000000000001-0000000000000009.snap.broken"), b"").unwrap();
    fs::write(dir.wal().join("0.tmp"), b"").unwrap();
    let history = present(&dir);
    assert_eq!((history.last_index, history.damage.len()), (2, 1), "{:?}", history.damage);
}

#[test]
fn a_lock_on_wal_or_database_means_open() {
    let dir = two_voters();
    assert!(!data_dir::is_open(dir.path()).unwrap());
    let lock = lock_as_etcd(&dir.wals()[0]);
    assert!(data_dir::is_open(dir.path()).unwrap());
    present(&dir);
    drop(lock);
    assert_free(&dir);
    // etcd locks the database before the WAL, and file systems without the newer locks have only these.
    for path in [dir.snap().join("db"), dir.wals().remove(0)] {
        let lock = Flock::lock(File::open(path).unwrap(), FlockArg::LockExclusiveNonblock).unwrap();
        assert!(data_dir::is_open(dir.path()).unwrap());
        drop(lock);
        assert_free(&dir);
    }
}

/// Waits until no process has the data dir open. A child that another test forks meanwhile has this process's files
/// open until its `exec`.
pub(crate) fn assert_free(dir: &Dir) {
    let deadline = tandem::os::clock::Deadline::after(std::time::Duration::from_secs(10));
    while data_dir::is_open(dir.path()).unwrap() {
        assert!(!deadline.has_passed(), "a lock that was given back is still there");
        tandem::os::clock::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_record_that_etcd_is_writing_is_no_damage() {
    let mut writer = Writer::two_voters();
    let whole = writer.tail().len();
    writer.put(&[0x55; 2000]);
    writer.tail().truncate(whole + 600);
    let dir = writer.write();
    assert_eq!(present(&dir).damage.len(), 1);
    let _lock = lock_as_etcd(&dir.wals()[0]);
    assert_eq!(present(&dir).damage.len(), 0);
    assert!(matches!(read(&dir), DataDir::Present(_)));
}
