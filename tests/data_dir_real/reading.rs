//! The reader agrees with etcd at every stage of a member's life.

use std::path::Path;
use std::time::Duration;

use tandem::adapters::data_dir::{self, DataDir};
use tandem::os::clock;

use crate::etcd::{Asker, Etcd, Place, Version, until};
use crate::{each_version, present};

/// Starts a cluster of one member. Returns it with a client.
pub(crate) fn alone(version: &Version, root: &Path, more: &[&str]) -> (Etcd, Asker) {
    let place = Place::new(version, root, "one");
    let mut etcd = place.start(&[&place], "new", more);
    let client = etcd.wait();
    (etcd, client)
}

/// Adds a learner to the cluster of `voter`, and waits until the learner has all data. Returns the learner with its id.
pub(crate) fn with_learner(
    version: &Version,
    root: &Path,
    voter: &Etcd,
    client: &mut Asker,
    more: &[&str],
) -> (Etcd, u64) {
    let place = Place::new(version, root, "two");
    let id = client.add(&place, true);
    let mut learner = place.start(&[&voter.place, &place], "existing", more);
    learner.wait();
    caught_up(client, &learner);
    (learner, id)
}

/// Waits until the data dir of `etcd` reaches the leader's last index.
pub(crate) fn caught_up(client: &mut Asker, etcd: &Etcd) {
    let index = client.status().unwrap().raft_index();
    until("the data to catch up", || (present(&etcd.place.dir).last_index >= index).then_some(()));
}

/// Starts a cluster of two voters, and removes one. Returns the voter that is left with a client, and the removed one.
pub(crate) fn with_departed(version: &Version, root: &Path) -> (Etcd, Asker, Etcd) {
    let (voter, mut client) = alone(version, root, &[]);
    let (mut departed, id) = with_learner(version, root, &voter, &mut client, &[]);
    client.promote(id);
    caught_up(&mut client, &departed);
    client.remove(id);
    departed.wait_for_exit();
    (voter, client, departed)
}

#[test]
fn ids_members_and_indexes_are_etcds() {
    each_version(|version, root| {
        let (voter, mut client) = alone(version, root, &["--snapshot-count", "10"]);
        for number in 0..25 {
            client.put("key", vec![number]).unwrap();
        }
        let (mut learner, id) = with_learner(version, root, &voter, &mut client, &[]);
        let status = client.status().unwrap();
        let header = status.header().unwrap();
        for etcd in [&voter, &learner] {
            let history = present(&etcd.place.dir);
            let (me, ids) = (header.member_id(), (history.voters.clone(), history.learners.clone()));
            assert_eq!((history.cluster_id, ids), (header.cluster_id(), ([me].into(), [id].into())));
            assert_eq!((history.last_term, history.last_index), (status.raft_term(), status.raft_index()));
            assert!(!history.has_left && history.damage.is_empty(), "{history:?}");
            assert!(data_dir::is_open(&etcd.place.dir).unwrap());
            let error = data_dir::advance_commit(&etcd.place.dir).unwrap_err();
            assert!(matches!(error, data_dir::Error::Open { .. }), "{error}");
        }
        assert_eq!(present(&learner.place.dir).member_id, id);
        learner.kill();
        assert!(!data_dir::is_open(&learner.place.dir).unwrap());
    });
}

#[test]
fn a_learner_cannot_be_forced_and_its_data_is_refused() {
    each_version(|version, root| {
        let (voter, mut client) = alone(version, root, &[]);
        let (mut learner, _) = with_learner(version, root, &voter, &mut client, &[]);
        learner.kill();
        let error = data_dir::advance_commit(&learner.place.dir).unwrap_err().to_string();
        assert!(error.contains("is no voter"), "{error}");
        let mut forced = learner.place.copy("forced").force_new_cluster();
        forced.wait_for_exit();
        assert!(forced.log().contains("removed all voters"), "etcd no longer refuses; is our rule still right?");
    });
}

#[test]
fn a_promoted_learner_is_a_voter() {
    each_version(|version, root| {
        let (mut voter, mut client) = alone(version, root, &[]);
        let (mut learner, id) = with_learner(version, root, &voter, &mut client, &[]);
        client.promote(id);
        client.put("load/1", b"by both".to_vec()).unwrap();
        caught_up(&mut client, &learner);
        voter.kill();
        learner.kill();
        let (mine, its) = (present(&voter.place.dir), present(&learner.place.dir));
        assert_eq!(mine.voters, [mine.member_id, id].into());
        assert_eq!((&its.voters, its.is_voter()), (&mine.voters, true));
        data_dir::advance_commit(&learner.place.dir).unwrap();
        let mut forced = learner.place.force_new_cluster();
        assert_eq!(forced.wait().keys("load/").len(), 1);
    });
}

#[test]
fn a_departed_member_knows_that_it_left_and_is_refused() {
    each_version(|version, root| {
        let (voter, _, departed) = with_departed(version, root);
        let (mine, its) = (present(&voter.place.dir), present(&departed.place.dir));
        assert!(mine.voters == [mine.member_id].into() && mine.is_voter(), "{mine:?}");
        assert!(its.has_left && !its.is_voter(), "{its:?}");
        let error = data_dir::advance_commit(&departed.place.dir).unwrap_err().to_string();
        assert!(error.contains("has left"), "{error}");
    });
}

#[test]
fn a_member_add_that_etcd_rejects_adds_nobody() {
    each_version(|version, root| {
        let (voter, mut client) = alone(version, root, &["--snapshot-count", "5"]);
        let place = Place::new(version, root, "two");
        let id = client.add(&place, true);
        assert!(client.is_add_refused(&place) && client.is_add_refused(&voter.place));
        let after = |client: &mut Asker| {
            let index = client.status().unwrap().raft_index();
            until("the log to reach the disk", || Some(present(&voter.place.dir)).filter(|it| it.last_index >= index))
        };
        let history = after(&mut client);
        assert_eq!((history.voters, history.learners), ([history.member_id].into(), [id].into()));
        // The same holds with a snapshot of the member list in between.
        for number in 0..20 {
            client.put("key", vec![number]).unwrap();
        }
        until("a snapshot", || has_snapshot(&voter).then_some(()));
        assert!(client.is_add_refused(&place));
        let history = after(&mut client);
        assert_eq!((history.voters, history.learners), ([history.member_id].into(), [id].into()));
    });
}

fn has_snapshot(etcd: &Etcd) -> bool {
    let names = std::fs::read_dir(etcd.place.dir.join("member/snap")).unwrap();
    names.map(|entry| entry.unwrap().path()).any(|path| path.extension().is_some_and(|end| end == "snap"))
}

#[test]
fn reading_does_not_mind_a_running_etcd() {
    each_version(|version, root| {
        let (voter, mut client) = alone(version, root, &["--snapshot-count", "20"]);
        let reader = std::thread::spawn(move || {
            let mut last = 0;
            for _ in 0..300 {
                let history = present(&voter.place.dir);
                assert!(history.damage.is_empty() && history.last_index >= last, "{history:?} after {last}");
                last = history.last_index;
                clock::sleep(Duration::from_millis(5));
            }
            last
        });
        let mut writes = 0;
        while !reader.is_finished() {
            // The value has several pages, so that writing a record takes a while.
            client.put(&format!("key/{}", writes % 7), vec![b'x'; 60_000]).unwrap_or_default();
            writes += 1;
        }
        assert!(reader.join().unwrap() > 100);
    });
}

#[test]
fn a_backup_can_be_put_back() {
    each_version(|version, root| {
        let (mut voter, mut client) = alone(version, root, &[]);
        client.put("load/1", b"kept".to_vec()).unwrap();
        let dir = voter.place.dir.clone();
        let error = data_dir::move_aside(&dir).unwrap_err();
        assert!(matches!(error, data_dir::Error::Open { .. }), "{error}");
        voter.kill();
        let backup = data_dir::move_aside(&dir).unwrap().unwrap();
        assert_eq!(data_dir::read(&dir).unwrap(), DataDir::Blank);
        std::fs::rename(backup, dir.join("member")).unwrap();
        assert_eq!(voter.place.run(&[]).wait().keys("load/").len(), 1);
    });
}

#[test]
fn a_first_start_that_failed_leaves_a_blank_dir() {
    each_version(|version, root| {
        let (one, two) = (Place::new(version, root, "one"), Place::new(version, root, "two"));
        // There is no cluster that it could join.
        two.start(&[&one, &two], "existing", &[]).wait_for_exit();
        assert!(two.dir.join("member/snap/db").exists(), "etcd no longer leaves a database; is our rule still needed?");
        assert_eq!(data_dir::read(&two.dir).unwrap(), DataDir::Blank);
    });
}

#[test]
fn half_of_a_members_data_is_broken_for_etcd_and_for_us() {
    each_version(|version, root| {
        let (mut voter, mut client) = alone(version, root, &["--snapshot-count", "5"]);
        for number in 0..20 {
            client.put("key", vec![number]).unwrap();
        }
        until("a snapshot", || has_snapshot(&voter).then_some(()));
        // The database is written every 100 ms.
        clock::sleep(Duration::from_millis(500));
        voter.kill();
        let is_broken = |place: &Place| matches!(data_dir::read(&place.dir).unwrap(), DataDir::Broken { .. });
        let without_wal = voter.place.copy("without-wal");
        std::fs::remove_dir_all(without_wal.dir.join("member/wal")).unwrap();
        assert!(is_broken(&without_wal));
        let without_database = voter.place.copy("without-database");
        std::fs::remove_file(without_database.dir.join("member/snap/db")).unwrap();
        // This holds before etcd reads it, and after etcd has made an empty one and given up.
        assert!(is_broken(&without_database));
        without_database.run(&[]).wait_for_exit();
        assert!(without_database.dir.join("member/snap/db").exists() && is_broken(&without_database));
        assert_eq!(present(&voter.place.dir), present(&voter.place.copy("whole").dir));
    });
}

/// Deletes the `.snap` files of a member's data dir. Returns their number.
fn without_snapshot_files(place: &Place) -> usize {
    let names = std::fs::read_dir(place.dir.join("member/snap")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = names.filter(|path| path.extension().is_some_and(|end| end == "snap")).collect();
    for path in &files {
        std::fs::remove_file(path).unwrap();
    }
    files.len()
}

/// Replaces the cluster's version in the member's database with another one of the same length.
fn of_version(place: &Place, from: &str, to: &str) {
    let path = place.dir.join("member/snap/db");
    let mut bytes = std::fs::read(&path).unwrap();
    let (from, to) = (format!("clusterVersion{from}"), format!("clusterVersion{to}"));
    let found: Vec<_> =
        bytes.windows(from.len()).enumerate().filter(|(_, part)| *part == from.as_bytes()).map(|(at, _)| at).collect();
    assert!(!found.is_empty(), "no {from}");
    for at in found {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
}

/// Asserts that data without its snapshot files is read exactly if etcd can start from it. A log with its beginning
/// needs no snapshot. A purged log needs one: from a file for etcd up to 3.6, or from the WAL's own record for etcd
/// 3.7.
#[test]
fn data_without_snapshot_files_is_read_as_etcd_reads_it() {
    each_version(|version, root| {
        let small = ["--snapshot-count", "30", "--max-wals", "1", "--max-snapshots", "1"];
        let (mut leader, mut follower) = crate::two_voters(version, root, &small);
        let mut client = leader.wait();
        for number in 0..70_u8 {
            client.put("key", vec![number]).unwrap();
        }
        clock::sleep(Duration::from_millis(500));
        let live = follower.place.copy("short");
        let whole = present(&live.dir);
        assert!(without_snapshot_files(&live) > 0);
        assert_eq!(present(&live.dir), whole);

        for number in 0..150 {
            client.put(&format!("big/{}", number % 3), vec![b'x'; 1_000_000]).unwrap();
        }
        let first = follower.place.dir.join("member/wal/0000000000000000-0000000000000000.wal");
        until("etcd to purge its first WAL file", || (!first.exists()).then_some(()));
        leader.kill();
        follower.kill();
        let purged = follower.place.copy("purged");
        let whole = present(&purged.dir);
        assert!(without_snapshot_files(&purged) > 0);
        let found = data_dir::read(&purged.dir).unwrap();
        assert!(matches!(found, DataDir::Broken { .. }), "etcd {}: {found:?}", version.number);
        purged.run(&[]).wait_for_exit();
        of_version(&purged, &format!("{}.0", version.number), "3.8.0");
        match data_dir::read(&purged.dir).unwrap() {
            DataDir::Present(history) => assert_eq!((version.number, history), ("3.5", whole)),
            // etcd 3.4 records no members with a snapshot, and no later one reads its WAL without the files.
            found => assert!(version.number == "3.4", "etcd {}: {found:?}", version.number),
        }
    });
}

/// Asserts that a member with a database ahead of its log starts next to its peer, and that its commit index cannot be advanced. The test
/// cuts off the end of the log. A disk that loses synced writes has the same effect.
#[test]
fn a_database_ahead_of_its_log_goes_on_beside_its_peer_and_is_not_advanced() {
    each_version(|version, root| {
        let (mut leader, mut follower) = crate::two_voters(version, root, &[]);
        let mut client = leader.wait();
        for number in 0..50_u8 {
            client.put(&format!("key/{number}"), vec![number; 4000]).unwrap();
        }
        // The pause is longer than etcd waits before it writes its database.
        clock::sleep(Duration::from_secs(1));
        leader.kill();
        follower.kill();
        assert_eq!(present(&follower.place.dir).database_ahead, None);
        let wal = crate::last_wal(&follower.place.dir);
        let mut bytes = std::fs::read(&wal).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        bytes[end - 30_000..].fill(0);
        std::fs::write(&wal, bytes).unwrap();
        let history = present(&follower.place.dir);
        assert!(history.database_ahead > Some(history.last_index), "etcd {}: {history:?}", version.number);
        let error = data_dir::advance_commit(&follower.place.dir).unwrap_err().to_string();
        assert!(error.contains("below a database that reaches"), "{error}");
        // Its peer's log has the rest.
        let (_leader, mut follower) = (leader.place.run(&[]), follower.place.run(&[]));
        assert_eq!(follower.wait().keys("key/").len(), 50, "etcd {}", version.number);
    });
}
