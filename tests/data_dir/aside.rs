//! Tests of moving a member's data aside.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tandem::adapters::data_dir::{self, DataDir, Error};

use crate::layout::lock_as_etcd;
use crate::read;
use crate::writer::{Dir, Writer};

/// Creates the folder `member` anew, with a file that contains `mark`.
fn refill(dir: &Dir, mark: usize) {
    fs::create_dir_all(dir.path().join("member")).unwrap();
    fs::write(dir.path().join("member/mark"), mark.to_string()).unwrap();
}

fn aside(dir: &Dir) -> Option<PathBuf> {
    data_dir::move_aside(dir.path()).unwrap()
}

fn prune(dir: &Dir, keep: usize) {
    data_dir::prune_backups(dir.path(), keep).unwrap();
}

#[test]
fn the_data_is_elsewhere_and_whole() {
    let dir = Writer::two_voters().write();
    let before = read(&dir);
    let backup = aside(&dir).unwrap();
    assert_eq!(backup.parent(), Some(dir.path()));
    assert!(backup.file_name().unwrap().to_str().unwrap().starts_with("member-backup-0001-"), "{}", backup.display());
    assert_eq!(read(&dir), DataDir::Blank);
    fs::rename(&backup, dir.path().join("member")).unwrap();
    assert_eq!(read(&dir), before);
}

#[test]
fn nothing_there_is_nothing_moved() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(data_dir::move_aside(dir.path()).unwrap(), None);
    assert_eq!(data_dir::move_aside(&dir.path().join("missing")).unwrap(), None);
}

#[test]
fn the_oldest_go_and_the_newest_stays() {
    let dir = Writer::two_voters().write();
    let backups: Vec<_> = (0..12)
        .map(|mark| {
            refill(&dir, mark);
            aside(&dir).unwrap()
        })
        .collect();
    assert!(backups.iter().all(|path| path.exists()), "backing up deletes nothing");
    prune(&dir, 3);
    let kept: Vec<_> = backups.iter().map(|path| path.exists()).collect();
    assert_eq!(kept, [[false; 9].as_slice(), &[true; 3]].concat());
    assert_eq!(fs::read_to_string(backups[11].join("mark")).unwrap(), "11");
    prune(&dir, 0);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn order_does_not_come_from_the_clock() {
    let dir = Writer::two_voters().write();
    let from_the_future = dir.path().join("member-backup-0001-29991231T235959Z");
    fs::create_dir(&from_the_future).unwrap();
    let foreign = dir.path().join("member-backup-by-hand");
    fs::create_dir(&foreign).unwrap();
    let first = aside(&dir).unwrap();
    refill(&dir, 1);
    let second = aside(&dir).unwrap();
    prune(&dir, 2);
    assert!(first.exists() && second.exists() && foreign.exists() && !from_the_future.exists());
}

#[test]
fn what_was_half_deleted_goes() {
    let dir = Writer::two_voters().write();
    let half = dir.path().join("member-discard-member-backup-0001-20250101T000000Z");
    fs::create_dir(&half).unwrap();
    prune(&dir, 2);
    assert!(!half.exists());
}

#[test]
fn an_open_data_dir_is_refused() {
    let dir = Writer::two_voters().write();
    let _lock = lock_as_etcd(&dir.wals()[0]);
    let error = data_dir::move_aside(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Open { .. }), "{error}");
    assert!(dir.wal().exists());
}

#[test]
fn the_room_is_told_and_made() {
    let dir = Writer::two_voters().write();
    let first = aside(&dir).unwrap();
    refill(&dir, 1);
    let second = aside(&dir).unwrap();
    let foreign = dir.path().join("member-backup-by-hand");
    fs::create_dir(&foreign).unwrap();
    let room = data_dir::room(dir.path()).unwrap();
    assert!(room.free_bytes > 0);
    let names: Vec<_> = room.backups.iter().map(|backup| dir.path().join(&backup.name)).collect();
    assert_eq!(names, [first.clone(), second.clone()]);
    assert!(room.backups.iter().all(|backup| backup.bytes > 0));
    let doomed = [room.backups[0].name.clone(), "member-backup-by-hand".to_owned(), "member".to_owned()];
    data_dir::drop_backups(dir.path(), &doomed).unwrap();
    assert!(!first.exists() && second.exists() && foreign.exists());
}

/// Asserts that a process is found and ended if it has the data open. A hanging podman may leave such a process.
#[test]
#[expect(clippy::disallowed_methods, reason = "a process that holds a file is what is to be found")]
fn who_has_the_data_open_is_found_and_ended() {
    let dir = Writer::two_voters().write();
    let wal = dir.wals()[0].clone();
    assert_eq!(data_dir::end_holders(dir.path(), Duration::ZERO, &|_| true).unwrap(), 0, "no process");
    let script = "exec 9<>\"$1\"; flock --exclusive 9; echo held; exec sleep 60";
    let mut holder = Command::new("sh").args(["-c", script, "sh"]).arg(&wal).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 5];
    holder.stdout.take().unwrap().read_exact(&mut said).unwrap();
    assert!(data_dir::is_open(dir.path()).unwrap());
    assert_eq!(data_dir::end_holders(dir.path(), Duration::from_secs(5), &|_| true).unwrap(), 1);
    assert!(!data_dir::is_open(dir.path()).unwrap());
    assert_eq!(holder.wait().unwrap().signal(), Some(15));
}
