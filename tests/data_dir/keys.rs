//! Tests of the changes of keys in a database, and of `tandem data-dir diff` on generated histories.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tandem::adapters::data_dir::{Keys, MemoryDir};

use crate::writer::{Changed, Dir, Message, Writer, database_of_keys};

/// The changes of keys with which both compared histories begin.
const COMMON: [Changed<'_>; 3] =
    [(2, 0, false, b"/a", b"1"), (3, 0, false, b"/b", b"1"), (4, 0, false, b"/secret", b"common")];

/// Returns a voter's data dir with [`COMMON`] and then `changes` in its database. `logged` are requests that are only
/// in the log.
fn history(changes: &[Changed<'_>], logged: &[Vec<u8>]) -> Dir {
    let mut writer = Writer::two_voters();
    writer.puts(3);
    let applied = writer.index;
    for request in logged {
        writer.put(request);
    }
    writer.state(writer.index);
    let dir = writer.write();
    let all: Vec<Changed<'_>> = COMMON.iter().chain(changes).copied().collect();
    fs::write(dir.snap().join("db"), database_of_keys(applied, 0, &all, 2)).unwrap();
    dir
}

#[expect(clippy::disallowed_methods, reason = "the program under test is what is started")]
fn diff(one: &Path, other: &Path, more: &[&str]) -> (i32, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tandem"));
    let output = command.args(["data-dir", "diff"]).arg(one).arg(other).args(more).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn put(key: &[u8], value: &[u8]) -> Vec<u8> {
    Message::default().bytes(1, key).bytes(2, value).done()
}

fn request(field: u64, request: &[u8]) -> Vec<u8> {
    Message::default().bytes(field, request).done()
}

/// Returns the rows of the comparison's JSON: key, change, revision, whether it is uncertain, and the change in the
/// second history.
fn rows(json: &str) -> Vec<(String, String, Option<u64>, bool, String)> {
    let json: Value = serde_json::from_str(json).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |row: &Value| {
        let is_uncertain = row["uncertain"].as_bool().unwrap();
        (text(&row["key"]), text(&row["change"]), row["revision"].as_u64(), is_uncertain, text(&row["b"]))
    };
    json["keys"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn the_keys_that_one_history_lacks_are_listed_without_a_value() {
    let one = history(
        &[
            (5, 0, false, b"/a", b"hidden one"),
            (6, 0, true, b"/b", b""),
            (7, 0, false, b"/c", b"hidden two"),
            (8, 0, false, b"/d", b"equal"),
        ],
        &[],
    );
    let other = history(&[(5, 0, false, b"/b", b"hidden three"), (6, 0, false, b"/d", b"equal")], &[]);
    let (code, json, _) = diff(one.path(), other.path(), &["--json"]);
    let row = |key: &str, change: &str, revision, b: &str| {
        (key.to_owned(), change.to_owned(), Some(revision), false, b.to_owned())
    };
    let expected = [
        row("/a", "changed", 5, "unchanged"),
        row("/b", "deleted", 6, "changed"),
        row("/c", "created", 7, "unchanged"),
        row("/d", "created", 8, "same"),
    ];
    assert_eq!((code, rows(&json)), (3, expected.to_vec()));
    let (code, text, _) = diff(one.path(), other.path(), &["--limit", "2"]);
    assert!(code == 3 && text.contains("B lacks 3 of the 4 keys") && text.contains("and 2 more"), "{text}");
    assert!(!text.contains("hidden") && !json.contains("hidden"), "{text}");
    let (code, text, _) = diff(one.path(), other.path(), &["--prefix", "/d"]);
    assert!(code == 0 && text.contains("B has all of the 1 keys"), "{text}");
    assert_eq!(diff(one.path(), one.path(), &[]).0, 0, "a history lacks nothing of itself");
    let aside = one.path().join("member-history-0001-20261123T081200Z");
    fs::rename(one.path().join("member"), &aside).unwrap();
    assert_eq!(rows(&diff(&aside, other.path(), &["--json"]).1), expected);
}

#[test]
fn what_the_log_has_above_the_database_counts_and_a_transaction_is_uncertain() {
    let operation = |put: &[u8]| Message::default().bytes(2, put).done();
    let transaction =
        Message::default().bytes(2, &operation(&put(b"/then", b"1"))).bytes(3, &operation(&put(b"/else", b"1"))).done();
    let requests = [
        request(4, &put(b"/new", b"1")),
        request(6, &transaction),
        request(5, &Message::default().bytes(1, b"/a").done()),
        request(5, &Message::default().bytes(1, b"/b").bytes(2, b"/c").done()),
        request(5, &Message::default().bytes(1, b"/never").done()),
    ];
    let (one, other) = (history(&[], &requests), history(&[], &[]));
    let (code, json, _) = diff(one.path(), other.path(), &["--json"]);
    let row = |key: &str, change: &str, is_uncertain| {
        (key.to_owned(), change.to_owned(), None, is_uncertain, "unchanged".to_owned())
    };
    let expected = [
        row("/a", "deleted", false),
        row("/b", "deleted", false),
        row("/else", "created", true),
        row("/new", "created", false),
        row("/then", "created", true),
    ];
    assert_eq!((code, rows(&json)), (3, expected.to_vec()));
    let (code, json, _) = diff(other.path(), one.path(), &["--json"]);
    assert_eq!((code, rows(&json).len()), (0, 0), "B is ahead");
}

#[test]
fn a_database_that_is_damaged_is_named_with_the_page() {
    let (one, other) = (history(&[(5, 0, false, b"/a", b"1")], &[]), history(&[], &[]));
    let file = one.snap().join("db");
    let whole = fs::read(&file).unwrap();
    let spoiled = |at: usize, bytes: &[u8]| {
        let mut spoiled = whole.clone();
        spoiled[at..at + bytes.len()].copy_from_slice(bytes);
        fs::write(&file, spoiled).unwrap();
        let (code, text, why) = diff(one.path(), other.path(), &[]);
        assert_eq!((code, text.as_str()), (1, ""), "{why}");
        why.replace(&one.path().display().to_string(), "DIR")
    };
    let branch = 4 * 4096 + 16;
    let cases: [(usize, &[u8], &str); 6] = [
        (branch + 24, &5_u64.to_le_bytes(), "page 5 has revisions that do not rise"),
        (branch + 24, &4_u64.to_le_bytes(), "page 5 has revisions that do not rise"),
        (branch + 24, &9_000_u64.to_le_bytes(), "page 9000 is behind the end of the file"),
        (5 * 4096 + 12, &u32::MAX.to_le_bytes(), "page 5 is larger than any that etcd makes"),
        (5 * 4096 + 8, &7_u16.to_le_bytes(), "page 5 is no page of keys"),
        (5 * 4096 + 16 + 12, &4_090_u32.to_le_bytes(), "page 5 names keys outside of it"),
    ];
    for (at, bytes, expected) in cases {
        let why = spoiled(at, bytes);
        assert!(why.starts_with("tandem: the database DIR/member/snap/db cannot be read: page"), "{why}");
        assert!(why.contains(expected), "{why}, not {expected}");
    }
}

#[test]
fn no_link_is_followed_and_nothing_is_refused_in_words() {
    let (one, other) = (history(&[], &[]), history(&[], &[]));
    let link = one.path().join("member-history-0001-20261123T081200Z");
    std::os::unix::fs::symlink(other.path().join("member"), &link).unwrap();
    let (code, _, why) = diff(&link, other.path(), &[]);
    assert!(code == 1 && why.contains("link"), "{why}");
    let blank = tempfile::tempdir().unwrap();
    let (code, _, why) = diff(blank.path(), other.path(), &[]);
    assert!(code == 1 && why.contains("holds no data of a member"), "{why}");
    assert!(Keys::open(blank.path(), "member").is_err());
    assert!(MemoryDir::default().changes().unwrap().next_change().unwrap().is_none());
}
