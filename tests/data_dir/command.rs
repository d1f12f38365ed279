//! `tandem data-dir`, as an operator types it.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, UNIX_EPOCH};

use nix::sys::stat::{Mode, SFlag};
use serde_json::{Value, json};

use crate::layout::lock_as_etcd;
use crate::writer::{ADD, ADD_LEARNER, CLUSTER, Dir, ME, PEER, REMOVE, Writer, database, learner, member};

#[expect(clippy::disallowed_methods, reason = "the program under test is what is started")]
fn tandem(words: &[&str], dir: &Path) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.arg("data-dir").args(words).arg(dir).output().unwrap()
}

/// Runs `tandem data-dir` with `words`, which must succeed with nothing on stderr. Returns its output.
fn printed(words: &[&str], dir: &Dir) -> String {
    let output = tandem(words, dir.path());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    String::from_utf8(output.stdout).unwrap().replace(&dir.path().display().to_string(), "DIR")
}

/// Runs `tandem data-dir` with `words`, which must fail. Returns its single sentence on stderr.
fn refusal(words: &[&str], dir: &Path) -> String {
    let output = tandem(words, dir);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr.replace(&dir.display().to_string(), "DIR")
}

fn shown_json(dir: &Dir) -> Value {
    serde_json::from_str(&printed(&["show", "--json"], dir)).unwrap()
}

fn lagging() -> Writer {
    let mut writer = Writer::two_voters();
    writer.state(1);
    writer.term = 2;
    writer.puts(3);
    writer
}

/// Sets the modification time of all WAL files, in seconds since 1970.
fn touch(dir: &Dir, seconds: u64) {
    for file in fs::read_dir(dir.path().join("member/wal")).unwrap() {
        let file = fs::File::options().write(true).open(file.unwrap().path()).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
}

#[test]
fn show_prints_every_field_for_people() {
    let dir = lagging().write();
    touch(&dir, 951_782_399);
    let text = printed(&["show"], &dir);
    let expected = "\
data dir      DIR
etcd          does not have it open
cluster       cdf81818e32e3b5b (14841639067169209179)
member        fedcba9876543210 (18364758544493064720), a voter
node          not known
last entry    index 5, term 2, last written 2000-02-28 23:59:59Z
commit index  1
revision      not known
voters        8000000000000001 (9223372036854775809)
              fedcba9876543210 (18364758544493064720), this member
learners      none
damage        none
";
    assert_eq!(text, expected);
}

#[test]
fn roles_damage_and_a_running_etcd_are_told() {
    let mut writer = Writer::new(ME);
    writer.change(ADD, PEER, &member("http://10.0.0.2:2380"));
    assert!(printed(&["show"], &writer.write()).contains(", not yet in its own log\n"));
    writer.change(ADD_LEARNER, ME, &learner("http://10.0.0.1:2380"));
    assert!(printed(&["show"], &writer.write()).contains(", a learner\n"));
    writer.change(REMOVE, ME, "");
    writer.tail().extend([1, 2, 3]);
    let dir = writer.write();
    let text = printed(&["show"], &dir);
    assert!(text.contains(", has left the cluster\n"), "{text}");
    assert!(text.contains("\ndamage        DIR/member/wal/0000000000000000-0000000000000000.wal at byte "), "{text}");
    let _lock = lock_as_etcd(&dir.wals()[0]);
    assert!(printed(&["show"], &dir).contains("\netcd          runs"));
}

#[test]
fn json_has_its_keys_and_exact_numbers() {
    let expected = json!({
        "format": 1, "cluster_id": CLUSTER, "member_id": ME, "node": null, "last_term": 2, "last_index": 5,
        "commit_index": 1, "revision": null, "voters": [PEER, ME], "learners": [], "has_left": false,
        "database_ahead": null, "damage": []
    });
    assert_eq!(shown_json(&lagging().write()), expected);
    let text = printed(&["show", "--json"], &lagging().write());
    assert!(text.contains("\"member_id\": 18364758544493064720,"), "{text}");
}

#[test]
fn nothing_there_is_a_failure_and_no_yes_to_a_script() {
    let dir = lagging().write();
    fs::remove_dir_all(dir.path().join("member")).unwrap();
    let why = refusal(&["show"], dir.path());
    assert_eq!(why, "tandem: DIR holds no data of a member: type etcd's --data-dir\n");
    let output = tandem(&["show", "--json"], dir.path());
    assert_eq!(output.status.code(), Some(1));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys: Vec<_> =
        shown.as_object().unwrap().iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key).collect();
    assert_eq!(keys.len(), 11, "{shown}");
    assert_eq!(shown["damage"], json!([]));
}

#[test]
fn what_cannot_be_used_or_read_is_a_failure() {
    let mut writer = lagging();
    writer.tail()[100] ^= 1;
    let dir = writer.write();
    let why = refusal(&["show"], dir.path());
    assert!(why.starts_with("tandem: etcd cannot start from DIR: ") && why.contains("checksum"), "{why}");
    let output = tandem(&["show", "--json"], dir.path());
    assert_eq!(output.status.code(), Some(1));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(shown["damage"][0].as_str().unwrap().contains("checksum") && shown["member_id"].is_null(), "{shown}");
    // For data that cannot be judged, it prints no object, because the data is neither blank nor broken.
    let mut writer = lagging();
    writer.record(9, b"");
    let output = tandem(&["show", "--json"], writer.write().path());
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
}

/// Asserts that `tandem data-dir` shows data that was moved aside, if it is called with the new path. It must not show the
/// present data instead.
#[test]
fn data_that_was_moved_aside_is_shown_and_listed_where_it_lies() {
    let dir = lagging().write();
    let history = dir.path().join("member-history-0001-20261123T081200Z");
    fs::rename(dir.path().join("member"), &history).unwrap();
    let show = |words: &[&str]| String::from_utf8(tandem(words, &history).stdout).unwrap();
    let shown: Value = serde_json::from_str(&show(&["show", "--json"])).unwrap();
    assert_eq!(shown["last_index"], json!(5));
    let text = show(&["show"]);
    assert!(text.contains("given up for another history") && text.contains("index 5, term 2"), "{text}");
    let listed: Value = serde_json::from_str(&printed(&["list", "--json"], &dir)).unwrap();
    let [entry] = listed["entries"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&entry["kind"], &entry["member_id"], &entry["last_term"]), (&json!("history"), &json!(ME), &json!(2)));
    assert_eq!(entry["moved"], json!("2026-11-23T08:12:00Z"));
    fs::rename(&history, dir.path().join("member")).unwrap();
    let listed: Value = serde_json::from_str(&printed(&["list", "--json"], &dir)).unwrap();
    assert_eq!(listed["entries"][0]["kind"], json!("data"));
}

#[test]
fn a_slip_of_the_pen_is_answered() {
    let dir = lagging().write();
    let missing = dir.path().join("missing");
    assert!(refusal(&["show"], &missing).contains("type etcd's --data-dir"));
    assert!(refusal(&["show"], &dir.wals()[0]).contains("is not a directory; type etcd's --data-dir"));
    let part = refusal(&["show"], &dir.path().join("member"));
    assert!(part.contains(&format!("type {} instead", dir.path().display())), "{part}");
    let output = tandem(&["shwo"], dir.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("'show'"));
}

#[test]
fn an_advance_tells_before_after_and_the_copy() {
    let dir = lagging().write();
    let text = printed(&["advance-commit"], &dir);
    let copy = text.strip_prefix("commit index before  1\ncommit index now     5\ncopy kept            DIR/").unwrap();
    assert!(dir.path().join(copy.trim_end()).exists(), "{copy}");
    let text = printed(&["advance-commit"], &dir);
    assert!(text.starts_with("commit index before  5\ncommit index now     5\nnothing had to be changed"), "{text}");
}

#[test]
fn a_refusal_names_the_command_that_resolves_it() {
    let dir = lagging().write();
    let lock = lock_as_etcd(&dir.wals()[0]);
    let why = refusal(&["advance-commit"], dir.path());
    assert!(
        why.contains("0000000000000000-0000000000000000.wal open") && why.contains("'pcs resource disable etcd'"),
        "{why}"
    );
    drop(lock);
    let mut departed = lagging();
    departed.change(REMOVE, ME, "");
    let why = refusal(&["advance-commit"], departed.write().path());
    assert!(
        why.contains("member fedcba9876543210, which has left") && why.contains("'pcs resource cleanup etcd'"),
        "{why}"
    );
    let mut learning = Writer::new(ME);
    learning.change(ADD_LEARNER, ME, &learner("http://10.0.0.1:2380"));
    let why = refusal(&["advance-commit"], learning.write().path());
    assert!(why.contains("is no voter") && why.contains("'pcs resource cleanup etcd'"), "{why}");
    let mut damaged = lagging();
    damaged.tail()[100] ^= 1;
    let why = refusal(&["advance-commit"], damaged.write().path());
    assert!(why.contains("damaged") && why.contains("'mv DIR/member-backup-... DIR/member'"), "{why}");
    fs::write(dir.snap().join("db"), database(Some(6), true)).unwrap();
    assert_eq!(shown_json(&dir)["database_ahead"], 6);
    let why = refusal(&["advance-commit"], dir.path());
    assert!(
        why.contains("ends at index 5 below a database that reaches index 6")
            && why.contains("start the peer")
            && why.contains("'etcdutl snapshot restore --skip-hash-check DIR/member/snap/db'"),
        "{why}"
    );
    fs::remove_dir_all(dir.path().join("member")).unwrap();
    assert!(refusal(&["advance-commit"], dir.path()).contains("'ls DIR'"));
}

/// Asserts that a closed pipe on stdout is no failure, as in `tandem data-dir show DIR | head -n 0`.
#[test]
fn a_reader_that_stops_early_is_no_fault() {
    let dir = Writer::two_voters().write();
    for words in [&["show"][..], &["show", "--json"], &["advance-commit"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        #[expect(clippy::disallowed_methods, reason = "the program under test is what is started")]
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tandem"));
        let output = command.arg("data-dir").args(words).arg(dir.path()).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{words:?}");
    }
}

#[test]
fn a_part_of_a_data_dir_is_told_from_a_blank_one() {
    let dir = Writer::two_voters().write();
    let whole = fs::canonicalize(dir.path()).unwrap();
    for part in ["member", "member/wal", "member/snap"] {
        let said = refusal(&["show"], &dir.path().join(part));
        assert!(said.contains(&format!("is a part of a data dir; type {} instead", whole.display())), "{said}");
    }
}

#[test]
fn what_is_not_mounted_is_not_said_to_be_changing() {
    let dir = tempfile::tempdir().unwrap();
    symlink("/nowhere/at/all", dir.path().join("member")).unwrap();
    let wanted = "tandem: listing DIR/member: it is a link where a directory belongs: put the directory itself there\n";
    assert_eq!(refusal(&["show"], dir.path()), wanted);
}

/// Asserts that a FIFO, a device or a directory in place of a file of etcd is refused at once. It could block a reader, or
/// has no end.
#[test]
fn what_is_no_file_is_said_to_be_none() {
    type Put = fn(&Path);
    let puts: [(&str, Put); 5] = [
        ("a FIFO", |path| nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap()),
        ("a socket", |path| drop(UnixListener::bind(path).unwrap())),
        ("a directory", |path| fs::create_dir(path).unwrap()),
        ("a link", |path| symlink("/dev/zero", path).unwrap()),
        ("a device", |path| {
            let zero = fs::metadata("/dev/zero").unwrap().rdev();
            nix::sys::stat::mknod(path, SFlag::S_IFCHR, Mode::S_IRUSR, zero).unwrap();
        }),
    ];
    for (what, put) in puts {
        for place in
            ["wal/0000000000000000-0000000000000000.wal", "snap/0000000000000001-0000000000000002.snap", "snap/db"]
        {
            let dir = lagging().write();
            let path = dir.path().join("member").join(place);
            let _ = fs::remove_file(&path);
            put(&path);
            for word in ["show", "advance-commit"] {
                let said = refusal_in_time(word, dir.path());
                let wanted = format!("member/{place}: it is {what} where a regular file belongs: move it away");
                assert!(said.contains(&wanted), "{word}: {said}");
            }
        }
    }
}

/// Returns the sentence of a refused command as [`refusal`] does, and fails if the command hangs.
fn refusal_in_time(word: &str, dir: &Path) -> String {
    let (said, hears) = std::sync::mpsc::channel();
    let (word, dir) = (word.to_owned(), dir.to_owned());
    std::thread::spawn(move || said.send(refusal(&[&word], &dir)));
    hears.recv_timeout(Duration::from_secs(20)).expect("an answer within 20 s")
}

/// Asserts that directories next to etcd's files are no damage. A data dir that is a file system of its own contains
/// `lost+found`.
#[test]
fn a_directory_beside_the_files_is_no_fault() {
    let dir = lagging().write();
    for place in ["member/wal/lost+found", "member/snap/lost+found", "member/lost+found"] {
        fs::create_dir(dir.path().join(place)).unwrap();
    }
    assert!(printed(&["show"], &dir).ends_with("damage        none\n"));
}

#[test]
fn an_empty_wal_file_is_said_to_be_empty() {
    let dir = Writer::two_voters().write();
    for file in fs::read_dir(dir.path().join("member/wal")).unwrap() {
        fs::write(file.unwrap().path(), b"").unwrap();
    }
    let said = refusal(&["show"], dir.path());
    assert!(said.contains("the WAL is empty or cut off at its very beginning"), "{said}");
}
