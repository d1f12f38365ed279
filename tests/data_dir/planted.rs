//! Files that a compromised etcd can leave in its data dir for the host's root user.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tandem::adapters::data_dir;

use crate::writer::{Dir, Writer};

/// Starts a process of the host, outside of any container, that has `file` open and locked.
#[expect(clippy::disallowed_methods, reason = "a process that holds a file is what must be left alone")]
fn bystander(file: &Path) -> Child {
    let script = "exec 9<>\"$1\"; flock --exclusive 9; echo held; exec sleep 60";
    let mut child = Command::new("sh").args(["-c", script, "sh"]).arg(file).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 5];
    child.stdout.take().unwrap().read_exact(&mut said).unwrap();
    child
}

fn lives(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Asserts that a process is left alone if it only has files open outside of the data dir. Links in the data dir that lead to these files
/// do not make the process etcd's.
#[test]
fn a_process_that_a_link_leads_to_is_left_alone() {
    let host = tempfile::tempdir().unwrap();
    let (lock, log) = (host.path().join("crond.pid"), host.path().join("corosync.log"));
    File::create(&lock).unwrap();
    File::create(&log).unwrap();
    let (mut locker, mut logger) = (bystander(&lock), bystander(&log));
    let dir = Writer::two_voters().write();
    fs::remove_file(dir.snap().join("db")).ok();
    fs::create_dir_all(dir.snap()).unwrap();
    symlink(&lock, dir.snap().join("db")).unwrap();
    symlink(&log, dir.wal().join("0000000000000009-0000000000000009.wal")).unwrap();
    assert!(!data_dir::is_open(dir.path()).unwrap());
    // This also holds if a file of etcd's own is locked.
    let etcd = bystander(&dir.wals()[0]);
    assert!(data_dir::is_open(dir.path()).unwrap());
    let pid = i32::try_from(etcd.id()).unwrap();
    assert_eq!(data_dir::end_holders(dir.path(), Duration::ZERO, &|_| true).unwrap(), 1);
    assert!(lives(&mut locker) && lives(&mut logger) && !Path::new(&format!("/proc/{pid}/fd/9")).exists());
    drop(etcd);
    // The directories themselves may be links.
    for part in [dir.wal(), dir.snap()] {
        fs::remove_dir_all(&part).unwrap();
        symlink(host.path(), &part).unwrap();
    }
    assert!(!data_dir::is_open(dir.path()).unwrap());
    assert_eq!(data_dir::end_holders(dir.path(), Duration::ZERO, &|_| true).unwrap(), 0);
    assert!(lives(&mut locker) && lives(&mut logger));
    end(locker);
    end(logger);
}

#[test]
fn a_process_that_is_in_no_container_is_left_alone() {
    let dir = Writer::two_voters().write();
    let mut backup = bystander(&dir.wals()[0]);
    assert_eq!(data_dir::end_holders(dir.path(), Duration::ZERO, &|_| false).unwrap(), 0);
    assert!(lives(&mut backup));
    end(backup);
}

/// Runs `tandem data-dir WORD DIR` with too little memory to read a whole file. Returns its output.
#[expect(clippy::disallowed_methods, reason = "the program under test is what is started")]
fn in_little_memory(word: &str, dir: &Dir) -> String {
    let began = Instant::now();
    let script = "ulimit -v 393216; exec timeout 20 \"$0\" data-dir \"$1\" \"$2\" 2>&1";
    let program = env!("CARGO_BIN_EXE_tandem");
    let output = Command::new("sh").args(["-c", script, program, word]).arg(dir.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{word}: {:?}: {said}", output.status);
    assert!(began.elapsed() < Duration::from_secs(20) && !said.contains("panic"), "{word}: {said}");
    said
}

/// Asserts that a file of a terabyte is refused or read with little memory and in time. A container can create such
/// sparse files at no cost.
#[test]
fn a_file_of_a_terabyte_costs_neither_memory_nor_time() {
    const TERABYTE: u64 = 1 << 40;
    let lagging = || {
        let mut writer = Writer::two_voters();
        writer.puts(8);
        writer.state(10);
        writer.snapshot_record(9, 1);
        let dir = writer.write();
        dir.add_snapshot(9, 1, &[crate::writer::ME], &[], "");
        dir
    };
    let grow = |path: &Path| {
        File::options().write(true).create(true).truncate(false).open(path).unwrap().set_len(TERABYTE).unwrap();
    };
    let dir = lagging();
    let snapshot = dir.snap().join(format!("{:016x}-{:016x}.snap", 1, 9));
    assert!(snapshot.exists());
    grow(&snapshot);
    assert!(in_little_memory("show", &dir).contains("it is larger than any snapshot of etcd"));
    let dir = lagging();
    grow(&dir.snap().join("db"));
    in_little_memory("show", &dir);
    for (word, wanted) in
        [("show", "the file is larger than any that etcd writes"), ("advance-commit", "larger than any")]
    {
        let dir = lagging();
        grow(&dir.wals()[0]);
        let said = in_little_memory(word, &dir);
        assert!(said.contains(wanted), "{said}");
    }
    // The file has room for this length, and the memory does not.
    let dir = lagging();
    let wal = dir.wals()[0].clone();
    let length = fs::metadata(&wal).unwrap().len();
    let mut bytes = fs::read(&wal).unwrap();
    bytes.extend((900_u64 << 20).to_le_bytes());
    fs::write(&wal, bytes).unwrap();
    File::options().write(true).open(&wal).unwrap().set_len(length + (950 << 20)).unwrap();
    assert!(in_little_memory("show", &dir).contains("a record is larger than any that etcd writes"));
}
