//! Tests of advancing the commit index: its changes, its backups, and its refusals.

use std::fs;
use std::path::Path;

use tandem::adapters::data_dir::{self, Advanced, Error};

use crate::layout::{assert_free, lock_as_etcd};
use crate::present;
use crate::writer::{ADD, ADD_LEARNER, Dir, ME, PEER, REMOVE, Writer, database, learner, member};

/// Returns the data dir of one of two voters, with entries above its commit index.
fn lagging() -> Writer {
    let mut writer = Writer::two_voters();
    writer.puts(3);
    writer.state(3);
    writer.term = 4;
    writer.puts(2);
    writer
}

fn advance(dir: &Dir) -> Advanced {
    assert_free(dir);
    data_dir::advance_commit(dir.path()).unwrap()
}

/// Advances the commit index of `writer`'s data dir, and asserts what must hold for every such change.
fn advanced(writer: &Writer) -> Dir {
    let dir = writer.write();
    let before = present(&dir);
    let files: Vec<_> = dir.wals().iter().map(|path| fs::read(path).unwrap()).collect();
    let done = advance(&dir);
    assert_eq!((done.from, done.to), (before.commit_index, before.last_index));
    let after = present(&dir);
    let expected = data_dir::History { commit_index: before.last_index, damage: Vec::new(), ..before };
    assert_eq!(after, expected);
    // Only the last file changes, and only after its last record.
    let (tail, others) = files.split_last().unwrap();
    let paths = dir.wals();
    for (path, bytes) in paths.iter().zip(others) {
        assert!(fs::read(path).unwrap() == *bytes, "{} has changed", path.display());
    }
    assert_restorable(&done.kept_copy.unwrap(), paths.last().unwrap(), tail);
    // A second run has nothing to do.
    let bytes = fs::read(paths.last().unwrap()).unwrap();
    let again = advance(&dir);
    assert_eq!(again, Advanced { from: before.last_index, to: before.last_index, kept_copy: None });
    assert!(fs::read(paths.last().unwrap()).unwrap() == bytes);
    dir
}

/// Asserts that the original file can be restored from the changed file and `copy`, which has the replaced bytes. The
/// copy's name contains their offset and the original length.
fn assert_restorable(copy: &Path, changed: &Path, original: &[u8]) {
    let name = copy.file_name().unwrap().to_str().unwrap();
    assert!(name.contains(changed.file_name().unwrap().to_str().unwrap()), "{name}");
    let number = |key: &str| -> usize {
        let rest = name.split_once(key).unwrap().1;
        rest.split('-').next().unwrap().parse().unwrap()
    };
    let mut restored = fs::read(changed).unwrap();
    restored.truncate(number("-offset-"));
    restored.extend(fs::read(copy).unwrap());
    restored.resize(number("-length-"), 0);
    assert!(restored == original, "{name} does not lead back");
}

#[test]
fn every_entry_counts_as_committed_afterwards() {
    let mut writer = lagging();
    writer.preallocate();
    let length = writer.tail().len() as u64;
    let dir = advanced(&writer);
    assert_eq!(present(&dir).commit_index, 7);
    assert_eq!(fs::metadata(&dir.wals()[0]).unwrap().len(), length, "what is allocated in advance stays so");
}

#[test]
fn a_file_without_room_grows() {
    advanced(&lagging());
}

#[test]
fn the_checksums_go_on_from_file_to_file() {
    let mut writer = lagging();
    for _ in 0..2 {
        writer.preallocate();
        writer.cut(ME);
    }
    advanced(&writer);
    writer.puts(2);
    writer.preallocate();
    advanced(&writer);
}

#[test]
fn a_log_behind_a_snapshot_is_advanced_too() {
    let mut writer = Writer::purged(ME, 3, 45, 4);
    writer.puts(5);
    writer.snapshot_record(50, 4);
    writer.state(50);
    writer.puts(4);
    writer.preallocate();
    let dir = writer.write();
    dir.add_snapshot(50, 4, &[ME, PEER], &[], "");
    let done = advance(&dir);
    assert_eq!((done.from, done.to), (50, 54));
    assert_eq!(present(&dir).commit_index, 54);
}

#[test]
fn a_torn_tail_is_overwritten_and_nothing_of_it_stays() {
    for cut in [8, 600, 1000] {
        let mut writer = lagging();
        let start = writer.tail().len();
        writer.put(&[0x55; 2000]);
        writer.tail()[start + cut..].fill(0);
        // Later sectors can have reached the disk before earlier ones.
        let end = writer.tail().len();
        writer.tail()[end - 50..].fill(0x77);
        writer.preallocate();
        let length = writer.tail().len() as u64;
        let dir = advanced(&writer);
        let bytes = fs::read(&dir.wals()[0]).unwrap();
        assert_eq!(bytes.len() as u64, length);
        assert!(bytes[start + 64..].iter().all(|byte| *byte == 0), "something of the torn record is left");
    }
    // The file ends inside the record.
    let mut writer = lagging();
    let start = writer.tail().len();
    writer.put(&[0x55; 2000]);
    writer.tail().truncate(start + 1000);
    advanced(&writer);
}

#[test]
fn a_torn_tail_goes_even_if_all_else_is_committed() {
    let mut writer = lagging();
    writer.state(7);
    writer.put(&[0x55; 2000]);
    let end = writer.tail().len();
    writer.tail()[end - 1200..].fill(0);
    writer.preallocate();
    advanced(&writer);
}

#[test]
fn garbage_behind_the_end_is_cleared() {
    let mut writer = lagging();
    writer.preallocate();
    let garbage = writer.tail().len() - 3000;
    writer.tail()[garbage..garbage + 1000].fill(0xee);
    let dir = advanced(&writer);
    assert!(fs::read(&dir.wals()[0]).unwrap()[garbage..].iter().all(|byte| *byte == 0));
}

#[test]
fn the_record_is_etcds_own() {
    let mut writer = lagging();
    let dir = advanced(&writer);
    // The state's term is below the last entry's. The new one takes that term, in which no vote was cast.
    let state = crate::writer::Message::default().number(1, 4).number(3, 7).done();
    writer.record(3, &state);
    assert!(fs::read(&dir.wals()[0]).unwrap() == *writer.tail());
    // Otherwise term and vote stay as they are.
    let mut writer = Writer::two_voters();
    writer.state(1);
    let dir = advanced(&writer);
    writer.state(2);
    assert!(fs::read(&dir.wals()[0]).unwrap() == *writer.tail());
}

/// Asserts that the advance of the commit index is refused with a reason that contains `why`, and that no file
/// changes.
fn assert_refused(dir: &Dir, why: &str) {
    let before: Vec<_> = dir.wals().iter().map(|path| fs::read(path).unwrap()).collect();
    let error = data_dir::advance_commit(dir.path()).unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
    let after: Vec<_> = dir.wals().iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(before == after, "a refusal has changed the WAL");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a refusal has left a file");
}

#[test]
fn an_open_data_dir_is_refused() {
    let dir = lagging().write();
    let lock = lock_as_etcd(&dir.wals()[0]);
    assert_refused(&dir, "etcd has ");
    drop(lock);
    // A starting etcd opens its database before its WAL.
    let database = fs::File::open(dir.snap().join("db")).unwrap();
    let lock = nix::fcntl::Flock::lock(database, nix::fcntl::FlockArg::LockExclusiveNonblock).unwrap();
    assert_refused(&dir, "snap/db open");
    drop(lock);
    advance(&dir);
}

#[test]
fn a_learners_data_is_refused() {
    let mut writer = Writer::new(ME);
    writer.change(ADD, PEER, &member("http://10.0.0.2:2380"));
    writer.change(ADD_LEARNER, ME, &learner("http://10.0.0.1:2380"));
    writer.state(1);
    assert_refused(&writer.write(), "is no voter");
}

#[test]
fn a_departed_members_data_is_refused() {
    let mut writer = lagging();
    writer.change(REMOVE, ME, "");
    assert_refused(&writer.write(), "has left the cluster");
}

/// Asserts that the commit index is not advanced if the database is ahead of the log. On such data, a forced start of etcd 3.5.22, 3.6.1
/// and later would continue from the database's index. It would leave a log with a gap, which no etcd can read.
#[test]
fn a_database_ahead_of_its_log_is_refused() {
    let mut writer = lagging();
    let ahead = |writer: &Writer, applied| {
        let dir = writer.write();
        fs::write(dir.snap().join("db"), database(Some(applied), true)).unwrap();
        dir
    };
    let dir = ahead(&writer, 8);
    assert_eq!(present(&dir).database_ahead, Some(8));
    assert_refused(&dir, "below a database that reaches index 8");
    // The database may contain everything in the log.
    assert_eq!(present(&ahead(&writer, 7)).database_ahead, None);
    advance(&ahead(&writer, 7));
    // Data that must not be forced at all is refused for that reason.
    writer.change(REMOVE, ME, "");
    assert_refused(&ahead(&writer, 9), "has left the cluster");
}

#[test]
fn a_snapshot_that_was_being_taken_over_is_refused() {
    let mut writer = lagging();
    // The snapshot is above the commit index, but below the end of the log that it would replace.
    writer.snapshot_record(5, 4);
    let dir = writer.write();
    dir.add_snapshot(5, 4, &[ME], &[], "");
    assert_eq!(present(&dir).last_index, 7);
    assert_refused(&dir, "was taking over a snapshot");
    // A snapshot that was applied completely is acceptable.
    writer.state(5);
    let dir = writer.write();
    dir.add_snapshot(5, 4, &[ME], &[], "");
    advance(&dir);
}

#[test]
fn damaged_and_missing_data_are_refused() {
    let mut writer = lagging();
    writer.tail()[100] ^= 1;
    assert_refused(&writer.write(), "damaged");
    let dir = lagging().write();
    fs::remove_dir_all(dir.path().join("member")).unwrap();
    let error = data_dir::advance_commit(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[test]
fn old_copies_are_pruned() {
    let dir = lagging().write();
    let wal = dir.wals().remove(0);
    let original = fs::read(&wal).unwrap();
    let mut copies = Vec::new();
    for _ in 0..8 {
        fs::write(&wal, &original).unwrap();
        copies.push(advance(&dir).kept_copy.unwrap());
    }
    let kept: Vec<_> = copies.iter().map(|path| path.exists()).collect();
    assert_eq!(kept, [false, false, false, true, true, true, true, true]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&copies[7]).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}
