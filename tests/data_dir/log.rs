//! Tests of the WAL itself: its end, torn records, and damage.

use std::fs;

use tandem::adapters::data_dir::{self, DataDir, Error, History};

use crate::writer::{CLUSTER, Dir, ME, Message, OTHER, PEER, REMOVE, Writer};
use crate::{broken, ids, present, read};

#[test]
fn terms_indexes_and_members_are_read_from_a_log() {
    let mut writer = Writer::two_voters();
    writer.state(2);
    writer.term = 3;
    writer.puts(5);
    writer.state(4);
    writer.preallocate();
    let expected = History {
        cluster_id: CLUSTER,
        member_id: ME,
        last_term: 3,
        last_index: 7,
        commit_index: 4,
        voters: ids(&[ME, PEER]),
        learners: ids(&[]),
        has_left: false,
        database_ahead: None,
        damage: Vec::new(),
    };
    assert_eq!(read(&writer.write()), DataDir::Present(expected));
}

#[test]
fn the_log_ends_where_its_newest_entry_stands() {
    let mut writer = Writer::two_voters();
    writer.term = 5;
    writer.puts(4);
    writer.term = 6;
    writer.entry_at(4, 0, b"a new leader's");
    let history = present(&writer.write());
    assert_eq!((history.last_term, history.last_index), (6, 4));
}

#[test]
fn a_wal_goes_on_through_its_files() {
    let mut writer = Writer::two_voters();
    for _ in 0..3 {
        writer.puts(10);
        writer.state(writer.index - 1);
        writer.preallocate();
        writer.cut(ME);
    }
    writer.puts(1);
    let dir = writer.write();
    assert_eq!(dir.wals().len(), 4);
    let history = present(&dir);
    assert_eq!((history.last_index, history.commit_index), (33, 31));
}

#[test]
fn a_fresh_member_has_an_empty_log() {
    let history = present(&Writer::new(ME).write());
    assert_eq!((history.last_index, history.last_term, history.commit_index), (0, 0, 0));
    assert!(!history.has_left && !history.is_voter());
}

/// Returns a data dir with three entries, and after them a record of 2000 bytes that `tear` damages.
fn torn(tear: impl FnOnce(&mut [u8])) -> Dir {
    let mut writer = Writer::two_voters();
    writer.puts(3);
    writer.state(4);
    let start = writer.tail().len();
    writer.put(&[0x55; 2000]);
    tear(&mut writer.tail()[start..]);
    writer.preallocate();
    writer.write()
}

#[test]
fn a_torn_record_at_the_end_is_cut_off_and_named() {
    // Nothing is cut when nothing is torn.
    assert_eq!(present(&torn(|_| {})).last_index, 6);
    let unwritten_sectors = torn(|record| record[1024..].fill(0));
    let only_a_length = torn(|record| record[8..].fill(0));
    let impossible_length = torn(|record| record[..8].copy_from_slice(&0x00ff_ffff_ffff_ffff_u64.to_le_bytes()));
    for dir in [unwritten_sectors, only_a_length, impossible_length] {
        let history = present(&dir);
        assert_eq!((history.last_index, history.commit_index), (5, 4));
        assert_eq!(history.damage.len(), 1, "{:?}", history.damage);
        assert!(history.damage[0].contains("0000000000000000-0000000000000000.wal at byte "), "{:?}", history.damage);
    }
}

#[test]
fn a_file_that_ends_inside_a_record_is_torn() {
    let mut writer = Writer::two_voters();
    let whole = writer.tail().len();
    writer.put(&[0x55; 100]);
    let full = writer.tail().clone();
    for length in whole + 1..full.len() {
        *writer.tail() = full[..length].to_vec();
        let history = present(&writer.write());
        assert_eq!((history.last_index, history.damage.len()), (2, 1), "length {length}");
    }
}

#[test]
fn a_record_that_was_changed_later_is_damage() {
    let why = broken(&torn(|record| record[1500] ^= 1));
    assert!(why.contains("checksum"), "{why}");
    // This also holds in the middle, with complete records after it.
    let mut writer = Writer::two_voters();
    let middle = writer.tail().len() + 40;
    writer.puts(9);
    writer.tail()[middle] ^= 1;
    writer.preallocate();
    broken(&writer.write());
}

#[test]
fn only_the_last_file_can_be_torn() {
    let mut writer = Writer::two_voters();
    let start = writer.tail().len();
    writer.put(&[0x55; 2000]);
    writer.cut(ME);
    writer.puts(1);
    let mut unwritten = writer;
    let whole = unwritten.file(0).clone();
    unwritten.file(0)[start + 1024..].fill(0);
    broken(&unwritten.write());
    *unwritten.file(0) = whole[..start + 100].to_vec();
    broken(&unwritten.write());
}

#[test]
fn a_commit_index_beyond_the_log_means_that_its_end_is_lost() {
    let mut writer = Writer::two_voters();
    writer.state(9);
    let why = broken(&writer.write());
    assert!(why.contains("index 9 was committed"), "{why}");
}

#[test]
fn missing_entries_are_damage() {
    let mut writer = Writer::two_voters();
    writer.entry_at(4, 0, b"but where is 3?");
    let why = broken(&writer.write());
    assert!(why.contains("4 follows 2"), "{why}");
}

#[test]
fn missing_files_are_damage() {
    let mut writer = Writer::two_voters();
    for _ in 0..2 {
        writer.puts(3);
        writer.cut(ME);
    }
    for missing in [0, 1] {
        let dir = writer.write();
        fs::remove_file(&dir.wals()[missing]).unwrap();
        broken(&dir);
    }
    // The sequence alone is proof: without any record, checksums have nothing to chain.
    let mut empty = Writer::purged(ME, 0, 0, 1);
    empty.snapshot_record(0, 0);
    let dir = empty.write();
    fs::write(dir.wal().join(format!("{:016x}-{:016x}.wal", 2, 1)), b"").unwrap();
    let why = broken(&dir);
    assert!(why.contains("is missing"), "{why}");
}

#[test]
fn files_of_another_member_are_damage() {
    let mut writer = Writer::two_voters();
    writer.cut(OTHER);
    let why = broken(&writer.write());
    assert!(why.contains("different members"), "{why}");
}

#[test]
fn files_whose_checksums_do_not_continue_are_damage() {
    let mut writer = Writer::two_voters();
    writer.puts(1);
    let mut later = Writer::purged(ME, 1, writer.index, 1);
    later.puts(1);
    let dir = writer.write();
    fs::write(dir.wal().join(&later.names()[0]), later.tail()).unwrap();
    let why = broken(&dir);
    assert!(why.contains("does not continue"), "{why}");
}

#[test]
fn what_a_newer_etcd_writes_is_unknown_and_not_broken() {
    let mut record = Writer::two_voters();
    record.record(6, b"what is this?");
    let mut change = Writer::two_voters();
    change.change(4, PEER, "");
    let joint = Writer::two_voters();
    let joint = joint.write();
    let outgoing = Message::default().number(1, ME).number(3, PEER).done();
    let metadata = Message::default().bytes(1, &outgoing).done();
    let snapshot = Message::default().bytes(2, &metadata).done();
    let crc = u64::from(crate::writer::crc32c(0, &snapshot));
    let file = Message::default().number(1, crc).bytes(2, &snapshot).done();
    fs::write(joint.snap().join(format!("{:016x}-{:016x}.snap", 0, 0)), file).unwrap();
    for dir in [record.write(), change.write(), joint] {
        let error = data_dir::read(dir.path()).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("upgrade tandem"), "{error}");
    }
}

#[test]
fn what_was_overwritten_does_not_count() {
    let mut writer = Writer::two_voters();
    writer.change(REMOVE, ME, "");
    assert!(present(&writer.write()).has_left);
    writer.term = 2;
    writer.entry_at(3, 0, b"a new leader did not have the removal");
    let history = present(&writer.write());
    assert!(history.is_voter() && !history.has_left, "{history:?}");
}
