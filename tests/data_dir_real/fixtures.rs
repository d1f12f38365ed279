//! Makes the real data dirs that the hermetic tests read (`tests/data/fixtures/data_dir`). Each run checks that etcd still
//! writes the same kind of data. `TANDEM_WRITE_FIXTURES=1` renews the fixtures.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tandem::adapters::data_dir::{self, DataDir};
use tandem::os::clock;

use crate::etcd::{Asker, Etcd, Place, Version};
use crate::reading::{alone, with_departed, with_learner};
use crate::{each_version, present, two_voters};

/// Returns the ids, members and positions of the member `etcd` as etcd itself reports them. `client` is connected to
/// the leader.
fn said(client: &mut Asker, etcd: &Etcd) -> Value {
    let status = client.status().unwrap();
    let members = client.members();
    let ids = |is_learner| -> BTreeSet<u64> {
        members.iter().filter(|member| member.is_learner() == is_learner).map(etcd_client::Member::id).collect()
    };
    let me = members.iter().find(|member| member.peer_urls().contains(&etcd.place.peer_url));
    json!({
        "cluster_id": status.header().unwrap().cluster_id(), "member_id": me.map(etcd_client::Member::id),
        "last_term": status.raft_term(), "last_index": status.raft_index(),
        "voters": ids(false), "learners": ids(true), "has_left": me.is_none(), "damage": []
    })
}

/// Asserts that the data of a member reads as etcd reported it (`expected`). With `TANDEM_WRITE_FIXTURES` set, also
/// stores both in `tests/data/fixtures/data_dir`.
fn check(version: &Version, name: &str, place: &Place, mut expected: Value) {
    let history = present(&place.dir);
    assert!(history.commit_index <= history.last_index);
    let read = serde_json::to_value(&history).unwrap();
    if expected["member_id"].is_null() {
        // etcd no longer describes a member that has left.
        expected["member_id"] = read["member_id"].clone();
    }
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(read[key], *value, "{key} of the {name}");
    }
    if std::env::var_os("TANDEM_WRITE_FIXTURES").is_some() {
        let to =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures/data_dir").join(version.number).join(name);
        let _ = fs::remove_dir_all(&to);
        store(&place.dir, &to);
        fs::write(to.join("expected.json"), serde_json::to_string_pretty(&expected).unwrap() + "\n").unwrap();
        assert_eq!(data_dir::read(&to).unwrap(), DataDir::Present(history));
    }
}

/// Copies a data dir without the zeros that etcd allocates in advance.
fn store(from: &Path, to: &Path) {
    for part in ["member/wal", "member/snap"] {
        fs::create_dir_all(to.join(part)).unwrap();
        for entry in fs::read_dir(from.join(part)).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            // Spare WAL files end in `.tmp`.
            if path.extension().is_none_or(|extension| extension != "tmp") {
                // A record of the WAL ends at a multiple of 8, a page of the database at one of 4096.
                let unit = if path.ends_with("db") { 4096 } else { 8 };
                let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                bytes.truncate(used.next_multiple_of(unit));
                fs::write(to.join(part).join(path.file_name().unwrap()), bytes).unwrap();
            }
        }
    }
}

#[test]
fn a_voter_killed_under_load_is_read_as_etcd_describes_it() {
    each_version(|version, root| {
        let (mut leader, mut follower) = two_voters(version, root, &["--snapshot-count", "10"]);
        let mut client = leader.wait();
        for number in 0..40 {
            client.put("key", vec![number]).unwrap();
        }
        // A snapshot flushes the WAL, including the commit index that is known then.
        clock::sleep(Duration::from_millis(500));
        let mut expected = said(&mut client, &follower);
        // No entry may follow the last write, because it would inform the follower of the commit.
        client.put("key", b"acknowledged".to_vec()).unwrap();
        expected["last_index"] = json!(expected["last_index"].as_u64().unwrap() + 1);
        leader.kill();
        follower.kill();
        check(version, "voter", &follower.place, expected);
    });
}

#[test]
fn a_killed_learner_is_read_as_etcd_describes_it() {
    each_version(|version, root| {
        let (voter, mut client) = alone(version, root, &[]);
        client.put("key", b"value".to_vec()).unwrap();
        let (mut learner, _) = with_learner(version, root, &voter, &mut client, &[]);
        let expected = said(&mut client, &learner);
        learner.kill();
        check(version, "learner", &learner.place, expected);
    });
}

#[test]
fn a_removed_member_is_read_as_etcd_describes_it() {
    each_version(|version, root| {
        let (_voter, mut client, departed) = with_departed(version, root);
        let expected = said(&mut client, &departed);
        check(version, "departed", &departed.place, expected);
    });
}
