//! The losses of a forced new cluster, and the proof that it loses nothing once the commit index is advanced.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use tandem::adapters::data_dir;

use crate::etcd::{Etcd, Place, Version, until};
use crate::{each_version, present, two_voters};

/// The number of times that each etcd release is killed under load. In our measurements, nearly every forced new cluster lost a write if
/// the commit index was not advanced before.
const TRIALS: usize = 4;

/// Writes through `leader` for the time `load`, and kills both etcds right after an acknowledgement. Returns the
/// acknowledged keys.
fn killed_under_load(leader: &mut Etcd, follower: &mut Etcd, load: Duration, size: usize) -> BTreeSet<String> {
    let mut client = leader.wait();
    let began = Instant::now();
    let mut acknowledged = BTreeSet::new();
    while began.elapsed() < load {
        let key = format!("load/{:08}", acknowledged.len());
        client.put(&key, vec![b'x'; size]).unwrap();
        acknowledged.insert(key);
    }
    leader.kill();
    follower.kill();
    acknowledged
}

/// Forces a new cluster on the data of `place`. Returns the number of `acknowledged` keys that it lacks.
fn lost_when_forced(place: &Place, acknowledged: &BTreeSet<String>) -> usize {
    let mut etcd = place.force_new_cluster();
    let mut client = etcd.wait();
    assert_eq!(client.members().len(), 1);
    client.put("after", b"writable".to_vec()).unwrap();
    let found: BTreeSet<_> = client.keys("load/").into_iter().collect();
    acknowledged.difference(&found).count()
}

/// Kills two voters under load, and forces a new cluster from the follower's data. Returns two numbers of lost keys: one for the data
/// as it was, and one for the data after its commit index was advanced.
fn trial(version: &Version, root: &Path, number: usize) -> (usize, usize) {
    let root = root.join(number.to_string());
    std::fs::create_dir(&root).unwrap();
    let (mut leader, mut follower) = two_voters(version, &root, &[]);
    let acknowledged = killed_under_load(&mut leader, &mut follower, Duration::from_millis(1500), 20);
    assert!(acknowledged.len() > 20, "hardly anything was written: {}", acknowledged.len());
    let (plain, advanced) = (follower.place.copy("plain"), follower.place.copy("advanced"));
    let done = data_dir::advance_commit(&advanced.dir).unwrap();
    let losses = (lost_when_forced(&plain, &acknowledged), lost_when_forced(&advanced, &acknowledged));
    let (version, count) = (version.number, acknowledged.len());
    println!("etcd {version}: {count} acknowledged, commit {} to {}, lost {losses:?}", done.from, done.to);
    let after = present(&advanced.dir);
    assert_eq!(after.voters, [after.member_id].into());
    std::fs::remove_dir_all(&root).unwrap();
    losses
}

#[test]
fn advancing_the_commit_index_saves_what_a_plain_force_loses() {
    each_version(|version, root| {
        let losses: Vec<_> = (0..TRIALS).map(|number| trial(version, root, number)).collect();
        assert!(losses.iter().all(|(_, advanced)| *advanced == 0), "writes were lost: {losses:?}");
        assert!(losses.iter().any(|(plain, _)| *plain > 0), "the test does not bite, nothing is ever lost: {losses:?}");
    });
}

#[test]
fn a_long_compacted_log_is_advanced_too() {
    each_version(|version, root| {
        let small = ["--snapshot-count", "30", "--max-wals", "1", "--max-snapshots", "1"];
        let (mut leader, mut follower) = two_voters(version, root, &small);
        let mut client = leader.wait();
        // This fills more than two WAL files of 64 MB.
        for number in 0..150 {
            client.put(&format!("big/{}", number % 3), vec![b'x'; 1_000_000]).unwrap();
        }
        let wal = follower.place.dir.join("member/wal");
        let is_first_gone = || !wal.join("0000000000000000-0000000000000000.wal").exists();
        until("etcd to purge its first WAL file", || is_first_gone().then_some(()));
        let acknowledged = killed_under_load(&mut leader, &mut follower, Duration::from_millis(1500), 20);
        let before = present(&follower.place.dir);
        assert!(before.last_index > 150 && before.voters.len() == 2, "{before:?}");
        let advanced = follower.place.copy("advanced");
        let done = data_dir::advance_commit(&advanced.dir).unwrap();
        assert_eq!((done.from, done.to), (before.commit_index, before.last_index));
        assert_eq!(lost_when_forced(&advanced, &acknowledged), 0);
    });
}

#[test]
fn a_last_record_that_fills_its_file_is_followed_by_the_new_one() {
    each_version(|version, root| {
        let (mut leader, mut follower) = two_voters(version, root, &[]);
        let acknowledged = killed_under_load(&mut leader, &mut follower, Duration::from_millis(700), 20);
        let full = follower.place.copy("full");
        let wal = crate::last_wal(&full.dir);
        let bytes = std::fs::read(&wal).unwrap();
        // Records are padded to 8 bytes, and the last byte of one may be zero.
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        std::fs::File::options().write(true).open(&wal).unwrap().set_len(end.next_multiple_of(8) as u64).unwrap();
        assert_eq!(present(&full.dir), present(&follower.place.dir));
        data_dir::advance_commit(&full.dir).unwrap();
        assert_eq!(lost_when_forced(&full, &acknowledged), 0);
    });
}

#[test]
fn a_torn_tail_is_cut_off_as_etcd_does_it() {
    each_version(|version, root| {
        // A log that ends before its database is damage of another kind. So the database must not be synced after the
        // torn entry, which otherwise happens every 100 ms.
        let unsynced = ["--backend-batch-interval", "1h"];
        let (mut leader, mut follower) = two_voters(version, root, &unsynced);
        let acknowledged = killed_under_load(&mut leader, &mut follower, Duration::from_millis(700), 4000);
        let torn = follower.place.copy("torn");
        let wal = crate::last_wal(&torn.dir);
        let mut bytes = std::fs::read(&wal).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        bytes[end - 2000..=end].fill(0);
        std::fs::write(&wal, bytes).unwrap();
        let whole = present(&follower.place.dir);
        let history = present(&torn.dir);
        assert!(history.last_index < whole.last_index && history.damage.len() == 1, "{history:?}");
        // The torn entry is lost in any case, but no entry before it.
        let expected = usize::try_from(whole.last_index - history.last_index).unwrap();
        data_dir::advance_commit(&torn.dir).unwrap();
        assert!(lost_when_forced(&torn, &acknowledged) <= expected);
        let after = present(&torn.dir);
        assert!(after.damage.is_empty(), "{:?}", after.damage);
    });
}
