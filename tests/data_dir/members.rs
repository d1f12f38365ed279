//! Tests of the member list: snapshots, and the changes after them.

use std::fs;

use tandem::adapters::data_dir::voters_are_committed;

use crate::layout::lock_as_etcd;
use crate::writer::{
    ADD, ADD_LEARNER, ME, Message, OTHER, PEER, REMOVE, UPDATE, Writer, database_of, learner, member, promotion,
};
use crate::{broken, ids, present};

const MY_URL: &str = "http://10.0.0.1:2380";
const PEER_URL: &str = "http://10.0.0.2:2380";
const OTHER_URL: &str = "http://10.0.0.3:2380";

/// Returns the data dir of a single voter that has added its peer as a learner.
fn voter_and_learner() -> Writer {
    let mut writer = Writer::new(ME);
    writer.change(ADD, ME, &member(MY_URL));
    writer.change(ADD_LEARNER, PEER, &learner(PEER_URL));
    writer
}

#[test]
fn a_learner_is_a_voter_once_its_promotion_is_in_the_log() {
    let mut writer = voter_and_learner();
    let history = present(&writer.write());
    assert_eq!((history.voters, history.learners), (ids(&[ME]), ids(&[PEER])));
    writer.change(ADD, PEER, promotion());
    let history = present(&writer.write());
    assert_eq!((history.voters, history.learners), (ids(&[ME, PEER]), ids(&[])));
    assert_eq!(history.commit_index, 0, "nothing of this is committed");
}

#[test]
fn a_member_has_left_once_its_removal_is_in_the_log() {
    let mut writer = Writer::two_voters();
    writer.change(REMOVE, PEER, "");
    let history = present(&writer.write());
    assert!(history.voters == ids(&[ME]) && !history.has_left && history.is_voter());
    let mut writer = Writer::two_voters();
    writer.change(REMOVE, ME, "");
    let history = present(&writer.write());
    assert!(history.voters == ids(&[PEER]) && history.has_left && !history.is_voter());
}

/// Asserts that a removal from among three voters counts only once it is committed. Suppose that the leader is cut off from
/// both followers, and logs a removal. The other two elect a leader and continue. The first leader's log must not count as
/// that of a voter of two. Otherwise it could force a cluster without the writes that the other two acknowledged.
#[test]
fn a_removal_from_among_three_voters_counts_once_it_is_committed() {
    for removed in [OTHER, ME] {
        let mut writer = Writer::two_voters();
        writer.change(ADD_LEARNER, OTHER, &learner(OTHER_URL));
        writer.change(ADD, OTHER, promotion());
        writer.change(REMOVE, removed, "");
        let history = present(&writer.write());
        assert_eq!((history.voters, history.has_left), (ids(&[ME, PEER, OTHER]), false), "{removed}");
        writer.state(history.last_index);
        let history = present(&writer.write());
        let left: Vec<u64> = [ME, PEER, OTHER].into_iter().filter(|id| *id != removed).collect();
        assert_eq!((history.voters, history.has_left), (ids(&left), removed == ME), "{removed}");
    }
}

/// Asserts that a change of the voters counts as committed only by the commit index. A removal that only one of two
/// logs has does not bind the other voter, which may continue by its own log.
#[test]
fn a_change_of_the_voters_counts_as_committed_once_the_log_says_so() {
    let is_committed = |writer: &Writer| voters_are_committed(writer.write().path()).unwrap();
    let mut writer = Writer::two_voters();
    writer.change(REMOVE, PEER, "");
    assert!(!is_committed(&writer));
    let last_index = present(&writer.write()).last_index;
    writer.state(last_index);
    assert!(is_committed(&writer));
    writer.change(ADD_LEARNER, OTHER, &learner(OTHER_URL));
    assert!(is_committed(&writer), "a learner has no vote");
    writer.change(ADD, OTHER, promotion());
    assert!(!is_committed(&writer));
}

#[test]
fn a_removed_id_never_comes_back() {
    let mut writer = Writer::two_voters();
    writer.change(REMOVE, ME, "");
    writer.change(ADD, ME, &member(MY_URL));
    let history = present(&writer.write());
    assert!(history.has_left && history.voters == ids(&[PEER]));
}

#[test]
fn what_etcd_rejects_does_not_count() {
    // A script that retries adds a second member with the same peer URL.
    let mut taken = voter_and_learner();
    taken.change(ADD_LEARNER, OTHER, &learner(PEER_URL));
    taken.change(ADD, OTHER, &member(MY_URL));
    // This promotes a member that is no learner, and one that does not exist.
    taken.change(ADD, ME, promotion());
    taken.change(ADD, OTHER, promotion());
    // This adds a member that exists already.
    taken.change(ADD, PEER, &member(OTHER_URL));
    taken.change(ADD_LEARNER, ME, &learner(OTHER_URL));
    taken.change(REMOVE, 77, "");
    taken.change(ADD, 0, &member(OTHER_URL));
    let history = present(&taken.write());
    assert_eq!((history.voters, history.learners), (ids(&[ME]), ids(&[PEER])));
}

#[test]
fn a_url_is_free_again_after_removal_or_update() {
    let mut writer = voter_and_learner();
    writer.change(REMOVE, PEER, "");
    writer.change(ADD_LEARNER, OTHER, &learner(PEER_URL));
    assert_eq!(present(&writer.write()).learners, ids(&[OTHER]));
    let mut writer = voter_and_learner();
    writer.change(UPDATE, PEER, &member(OTHER_URL));
    writer.change(ADD, OTHER, &member(PEER_URL));
    let history = present(&writer.write());
    assert_eq!((history.voters, history.learners), (ids(&[ME, OTHER]), ids(&[PEER])));
}

#[test]
fn rafts_newer_kind_of_change_counts_too() {
    let mut writer = voter_and_learner();
    let single = |kind, id| Message::default().number(1, kind).number(2, id).done();
    let change = Message::default().bytes(2, &single(ADD, PEER)).bytes(2, &single(REMOVE, ME)).done();
    writer.entry_at(writer.index + 1, 2, &change);
    // This empty change is the second step, which ends the change.
    writer.entry_at(writer.index + 1, 2, b"");
    let history = present(&writer.write());
    assert!(history.voters == ids(&[PEER]) && history.has_left);
}

#[test]
fn a_change_that_cannot_be_decoded_is_damage() {
    let mut writer = Writer::two_voters();
    writer.entry_at(writer.index + 1, 1, &[0xff; 9]);
    assert!(broken(&writer.write()).contains("at index 3"));
}

/// Returns a log that ends at index 103. Its beginning was purged. It records a snapshot at index 100 of term 4, but the snapshot's
/// file is missing.
fn compacted() -> Writer {
    let mut writer = Writer::purged(ME, 5, 90, 4);
    writer.puts(10);
    writer.snapshot_record(100, 4);
    writer.puts(3);
    writer.state(102);
    writer
}

#[test]
fn a_snapshot_and_the_changes_behind_it_give_the_members() {
    let mut writer = compacted();
    let dir = writer.write();
    dir.add_snapshot(100, 4, &[ME], &[PEER], "");
    let history = present(&dir);
    assert_eq!((history.voters, history.learners), (ids(&[ME]), ids(&[PEER])));
    assert_eq!((history.last_term, history.last_index, history.commit_index), (4, 103, 102));
    writer.change(ADD, PEER, promotion());
    let dir = writer.write();
    dir.add_snapshot(100, 4, &[ME], &[PEER], "");
    assert_eq!(present(&dir).voters, ids(&[ME, PEER]));
}

#[test]
fn changes_before_the_snapshot_are_in_it() {
    let mut writer = Writer::two_voters();
    writer.change(REMOVE, PEER, "");
    writer.snapshot_record(3, 1);
    writer.state(3);
    let dir = writer.write();
    dir.add_snapshot(3, 1, &[ME], &[], "");
    let history = present(&dir);
    assert_eq!((history.voters, history.last_index, history.last_term), (ids(&[ME]), 3, 1));
}

#[test]
fn the_snapshots_member_list_names_urls_and_removed_ids() {
    let store = r#"{"Root":{"Path":"/","Children":{"0":{"Path":"/0","Children":{"members":{"Children":{
        "fedcba9876543210":{"Children":{"raftAttributes":{"Value":"{\"peerURLs\":[\"http://10.0.0.1:2380\"]}"},
        "attributes":{"Value":"{\"name\":\"one\"}"}}},"8000000000000001":{"Children":{"raftAttributes":{"Value":
        "{\"peerURLs\":[\"http://10.0.0.2:2380\"],\"isLearner\":true}"}}}}},
        "removed_members":{"Children":{"9000000000000002":{"Value":""}}}}},"1":{"Children":{}}}},"WatcherHub":{}}"#;
    let mut writer = compacted();
    writer.change(ADD_LEARNER, 77, &learner(PEER_URL));
    writer.change(ADD, OTHER, &member(OTHER_URL));
    let dir = writer.write();
    dir.add_snapshot(100, 4, &[ME], &[PEER], store);
    let history = present(&dir);
    assert_eq!((history.voters, history.learners), (ids(&[ME]), ids(&[PEER])));
}

#[test]
fn a_snapshot_without_this_member_is_from_after_it_left() {
    let dir = compacted().write();
    dir.add_snapshot(100, 4, &[PEER], &[], "");
    assert!(present(&dir).has_left);
}

#[test]
fn a_snapshot_that_the_wal_does_not_vouch_for_is_not_used() {
    let mut writer = compacted();
    writer.snapshot_record(103, 4);
    let dir = writer.write();
    dir.add_snapshot(100, 4, &[ME, PEER], &[], "");
    // These are not recorded, of another term, or not committed.
    for (index, term) in [(101, 4), (100, 5), (103, 4)] {
        dir.add_snapshot(index, term, &[OTHER], &[], "");
    }
    let history = present(&dir);
    assert_eq!((history.voters, history.damage.len()), (ids(&[ME, PEER]), 0));
}

#[test]
fn an_unreadable_snapshot_is_skipped_and_named() {
    let mut writer = compacted();
    writer.snapshot_record(102, 4);
    let dir = writer.write();
    dir.add_snapshot(100, 4, &[ME, PEER], &[], "");
    let newer = dir.add_snapshot(102, 4, &[OTHER], &[], "");
    let whole = fs::read(&newer).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for bytes in [&b""[..], &whole[..whole.len() - 1], &flipped] {
        fs::write(&newer, bytes).unwrap();
        let history = present(&dir);
        assert_eq!(history.voters, ids(&[ME, PEER]));
        assert!(history.damage[0].contains("0000000000000004-0000000000000066.snap"), "{:?}", history.damage);
    }
}

#[test]
fn the_snapshot_that_a_running_etcd_is_writing_is_no_damage() {
    let mut writer = compacted();
    writer.snapshot_record(102, 4);
    let dir = writer.write();
    dir.add_snapshot(100, 4, &[ME, PEER], &[], "");
    let newer = dir.add_snapshot(102, 4, &[OTHER], &[], "");
    fs::write(&newer, "").unwrap();
    let _lock = lock_as_etcd(&dir.wals()[0]);
    let history = present(&dir);
    assert_eq!((history.voters, history.damage), (ids(&[ME, PEER]), Vec::<String>::new()));
    // etcd no longer writes to the snapshot before it.
    let older = dir.add_snapshot(101, 4, &[OTHER], &[], "");
    fs::write(&older, "").unwrap();
    let damage = present(&dir).damage;
    assert!(damage.len() == 1 && damage[0].contains("0000000000000004-0000000000000065.snap"), "{damage:?}");
}

#[test]
fn without_its_snapshot_a_compacted_log_is_broken() {
    let why = broken(&compacted().write());
    assert!(why.contains("index 0 is missing"), "{why}");
}

/// Returns a data dir with a log that was compacted at index 100. The WAL's own record has the members, and the
/// snapshot file is missing. `version` is that of the cluster.
fn without_files(version: &str, removed: &[u64], changes: impl FnOnce(&mut Writer)) -> crate::writer::Dir {
    let mut writer = Writer::purged(ME, 3, 97, 4);
    writer.puts(3);
    writer.snapshot_record_of(100, 4, &[ME, PEER], &[]);
    writer.state(100);
    changes(&mut writer);
    let dir = writer.write();
    let members = [(ME, MY_URL), (PEER, PEER_URL)];
    fs::write(dir.snap().join("db"), database_of(103, version, &members, removed)).unwrap();
    dir
}

/// Asserts that the members come from the WAL's record if no snapshot file has them. etcd 3.7 starts without these
/// files, and later versions write none.
#[test]
fn the_wal_says_who_the_members_were_where_no_file_does() {
    for version in ["3.7.0", "3.8.0", "4.0.0", "nonsense"] {
        let history = present(&without_files(version, &[], |writer| writer.puts(4)));
        assert_eq!((history.last_index, history.voters, history.has_left), (104, ids(&[ME, PEER]), false), "{version}");
        assert!(history.damage.is_empty() && history.learners.is_empty(), "{:?}", history.damage);
    }
    // etcd up to 3.6 needs the file, and does not start.
    for version in ["3.4.0", "3.5.0", "3.6.0"] {
        let why = broken(&without_files(version, &[], |writer| writer.puts(4)));
        assert!(why.contains("index 0 is missing"), "{version}: {why}");
    }
    // A database that cannot be read is no proof of damage.
    let dir = without_files("3.6.0", &[], |writer| writer.puts(4));
    fs::write(dir.snap().join("db"), b"not looked into").unwrap();
    assert_eq!(present(&dir).voters, ids(&[ME, PEER]));
    // A database that lacks a part of the compacted log is faulty without the file, too.
    fs::write(dir.snap().join("db"), database_of(99, "3.8.0", &[], &[])).unwrap();
    assert!(broken(&dir).contains("reaches only up to index 99"));
    // An older etcd left this file, which belongs to a log that is gone.
    let dir = without_files("3.8.0", &[], |writer| writer.puts(4));
    dir.add_snapshot(50, 2, &[OTHER], &[], "");
    assert_eq!(present(&dir).voters, ids(&[ME, PEER]));
}

#[test]
fn the_database_says_which_changes_etcd_drops_where_no_file_does() {
    let voters = |removed: &[u64], changes: fn(&mut Writer)| present(&without_files("3.8.0", removed, changes)).voters;
    let taken = |writer: &mut Writer| writer.change(ADD, OTHER, &member(PEER_URL));
    assert_eq!(voters(&[], taken), ids(&[ME, PEER]), "its URL is taken");
    let free = |writer: &mut Writer| writer.change(ADD, OTHER, &member(OTHER_URL));
    assert_eq!(voters(&[], free), ids(&[ME, PEER, OTHER]));
    assert_eq!(voters(&[OTHER], free), ids(&[ME, PEER]), "removed before");
    // A member at that time that has been removed since is removed by the log.
    let leaves = |writer: &mut Writer| writer.change(REMOVE, PEER, "");
    assert_eq!(voters(&[PEER], leaves), ids(&[ME]));
    assert!(present(&without_files("3.8.0", &[ME], |writer| writer.change(REMOVE, ME, ""))).has_left);
}

#[test]
fn the_newest_snapshot_that_is_vouched_for_counts() {
    let history = present(&without_files("3.8.0", &[], |writer| {
        writer.puts(4);
        writer.snapshot_record_of(103, 4, &[ME], &[PEER]);
        writer.state(104);
        // This snapshot is not committed yet, because it was being applied.
        writer.snapshot_record_of(110, 4, &[OTHER], &[]);
    }));
    assert_eq!((history.voters, history.learners), (ids(&[ME]), ids(&[PEER])));
    let why = broken(&without_files("3.8.0", &[], |writer| {
        writer.snapshot_record_of(101, 4, &[ME, PEER], &[PEER]);
        writer.puts(1);
        writer.state(101);
    }));
    assert!(why.contains("names a member as both voter and learner"), "{why}");
}
