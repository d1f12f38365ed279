//! The kernel's data in `/proc`: processes, their open files, locks, sockets and this boot. No other module reads there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::stat::{FileStat, major, minor};

use crate::os::clock;
use crate::os::file_kind::Kind;

/// The directory in which the kernel shows processes.
pub(crate) const ROOT: &str = "/proc";

/// The kernel's table of the mounts that this process sees.
pub(crate) const MOUNT_TABLE: &str = "/proc/self/mountinfo";

/// The code of a listening socket in the kernel's tables of TCP sockets.
const LISTEN: &str = "0A";

/// Facts about a process at the time when `/proc` was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// True if the process has ended and its parent has not yet read its exit status.
    pub(crate) has_ended: bool,
    /// The start of the process, in clock ticks since boot.
    pub(crate) started: u64,
    pub(crate) parent: i32,
}

/// Returns the state of the process `pid`; `None` if there is no such process.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a line of `/proc/PID/stat` such as `4711 (name) S 1 ...`. The name may contain any byte, and is cut after 15 bytes. After the last
/// parenthesis come the state and the parent. The number of threads comes 16 fields after the parent, and the start time 18 fields.
///
/// The state is that of the process's first thread, which ends at once when the process is killed. Another thread may continue to wait for
/// a disk. So the process counts as ended only when no other thread is left.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    Some(Stat { has_ended: matches!(state, "Z" | "X") && threads <= 1, started, parent })
}

/// The number of clock ticks per second (the kernel's `USER_HZ`), the unit of the start times in [`Stat`]. It is the same on every
/// supported architecture.
const TICKS_PER_S: u64 = 100;

/// Returns the age of the youngest of the host's processes with one of these names; `None` if there is none.
pub(crate) fn youngest(names: &[&str]) -> Option<Duration> {
    let began = Duration::from_millis(started_last(names)?.saturating_mul(1_000 / TICKS_PER_S));
    Some(Duration::from_nanos(clock::boot_nanoseconds()).saturating_sub(began))
}

/// Returns the start of the youngest of the host's processes with one of these names, in clock ticks since boot.
pub(crate) fn started_last(names: &[&str]) -> Option<u64> {
    let is_named = |pid: i32| {
        let name = fs::read_to_string(format!("{ROOT}/{pid}/comm")).unwrap_or_default();
        names.contains(&name.trim_end()) && is_of_the_host(pid)
    };
    let alive = pids().ok()?.into_iter().filter(|pid| is_named(*pid)).filter_map(stat).filter(|one| !one.has_ended);
    alive.map(|one| one.started).max()
}

/// Returns the numbers of this process and of its ancestors, up to process 1.
pub(crate) fn self_and_ancestors() -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut next = i32::try_from(std::process::id()).ok();
    while let Some(pid) = next.filter(|pid| *pid > 0 && found.insert(*pid)) {
        next = stat(pid).map(|stat| stat.parent);
    }
    found
}

/// Returns the first 15 bytes of the name of a process; `None` if there is no such process.
pub(crate) fn name(pid: i32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// Returns the control groups of a process in the kernel's format. The text is empty if there is no such process.
pub(crate) fn cgroups(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default()
}

/// Returns a path in `/proc` that leads to the open `file`, even if the file was renamed.
pub(crate) fn open_file(file: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

pub(crate) fn pids() -> io::Result<Vec<i32>> {
    Ok(fs::read_dir(ROOT)?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Returns whether a process belongs to the host, and not to a container. A process in a container has another root directory than this
/// process and process 1. A systemd unit with its own mounts belongs to the host.
pub(crate) fn is_of_the_host(pid: i32) -> bool {
    let root = |pid: &str| fs::metadata(format!("/proc/{pid}/root")).ok().map(|root| (root.dev(), root.ino()));
    pid == 1 || root(&pid.to_string()).is_some_and(|its| [root("self"), root("1")].contains(&Some(its)))
}

/// Sets how likely the kernel is to kill the process `pid` when memory runs out. `score` is from -1000 (never) to 1000.
pub(crate) fn set_oom_score(pid: i32, score: i32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/oom_score_adj"), score.to_string())
}

/// Returns the id that the kernel gave this boot. Containers on one machine have the same id, because they share the kernel.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns whether a file system is mounted at `path`, as this process sees it. A symbolic link to a mount point counts as none.
pub(crate) fn is_mount_point(path: &Path) -> bool {
    let Some((parent, name)) = path.parent().zip(path.file_name()) else { return true };
    let Ok(parent) = fs::canonicalize(parent) else { return false };
    let place = parent.join(name);
    mounts().unwrap_or_default().iter().any(|mount| mount.point == place)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) point: PathBuf,
    /// The type of the file system, such as `xfs`.
    pub(crate) file_system: String,
    /// The device of the file system. For a file system without a device, another word such as `tmpfs`.
    pub(crate) source: String,
}

/// Returns the mounts that this process sees. Of two mounts at one point, the later one hides the earlier one.
pub(crate) fn mounts() -> io::Result<Vec<Mount>> {
    Ok(parse_mounts(&fs::read(MOUNT_TABLE)?))
}

/// Reads a table of mounts. Its lines are such as `24 29 0:22 / /mnt/a\040b rw shared:1 - tmpfs tmpfs rw`. The number of fields before the
/// hyphen varies.
pub(crate) fn parse_mounts(table: &[u8]) -> Vec<Mount> {
    let parse = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ');
        let point = PathBuf::from(unescaped(fields.nth(4)?));
        let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
        let mut text = || Some(unescaped(rest.next()?).to_string_lossy().into_owned());
        Some(Mount { point, file_system: text()?, source: text()? })
    };
    table.split(|byte| *byte == b'\n').filter_map(parse).collect()
}

/// Decodes a field of the kernel's table of mounts, where three octal digits replace a blank, a tab, a line break or a backslash.
pub(super) fn unescaped(text: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    OsString::from_vec(bytes)
}

/// The identity of a file: its device and its inode number. It is the same under every path and in every container.
pub(crate) type Inode = (u64, u64);

/// Returns the identity of the regular file at `path`; `None` for any other object.
pub(crate) fn inode(path: &Path) -> Option<Inode> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((metadata.dev(), metadata.ino()))
}

/// Returns the identity of a file from the kernel's data about it; `None` if the file is not a regular one.
pub(crate) fn inode_of(stat: &FileStat) -> Option<Inode> {
    (Kind::of(stat) == Kind::File).then_some((stat.st_dev, stat.st_ino))
}

/// Returns the numbers of the other processes that have one of `files` open.
pub(crate) fn holders(files: &BTreeSet<Inode>) -> io::Result<BTreeSet<i32>> {
    let myself = i32::try_from(std::process::id()).unwrap_or_default();
    Ok(pids()?.into_iter().filter(|pid| *pid != myself && has_open(*pid, files)).collect())
}

/// Returns whether the process `pid` has one of `files` open. Returns false if the process ends meanwhile.
pub(crate) fn has_open(pid: i32, files: &BTreeSet<Inode>) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries.flatten().filter_map(|entry| inode(&entry.path())).any(|inode| files.contains(&inode))
}

/// Returns the number and the name of each other process that has one of the character `devices` (major and minor number) open.
pub(crate) fn openers(devices: &BTreeSet<(u64, u64)>) -> Vec<(i32, String)> {
    let myself = i32::try_from(std::process::id()).unwrap_or_default();
    let is_one = |found: fs::Metadata| {
        let number = (major(found.rdev()), minor(found.rdev()));
        found.file_type().is_char_device() && devices.contains(&number)
    };
    let has_one = |pid: &i32| {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::metadata(entry.path()).ok()).any(is_one)
    };
    let others = pids().unwrap_or_default().into_iter().filter(|pid| *pid != myself).filter(has_one);
    others.map(|pid| (pid, name(pid).unwrap_or_else(|| "a process that has ended".to_owned()))).collect()
}

/// Returns the numbers of the processes that hold a lock on a file with the inode `number`, on any file system. Devices are not compared,
/// because on btrfs the kernel's table of locks has another device than the file.
pub(crate) fn lockers(number: u64) -> Vec<i32> {
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    table.lines().filter_map(|line| locker(line, number)).collect()
}

/// Returns the process number in a line of `/proc/locks`; `None` if the line is about another inode than `number`. Such a line is `1: FLOCK
/// ADVISORY WRITE 1234 fe:01:5678 0 EOF`. In the line of a waiting process, the second field is an arrow.
fn locker(line: &str, number: u64) -> Option<i32> {
    let mut fields = line.split_whitespace().skip(1).skip_while(|field| *field == "->").skip(3);
    let pid = fields.next()?.parse().ok()?;
    let of = fields.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
    (of == number).then_some(pid)
}

/// Returns the TCP ports on which a socket of this machine listens. A connection in TIME-WAIT does not count.
pub(crate) fn listening_ports() -> BTreeSet<u16> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .flat_map(|table| listening(&fs::read_to_string(table).unwrap_or_default()))
        .collect()
}

/// Reads a table of TCP sockets. Its lines are such as `0: 00000000:094B 00000000:0000 0A ...`: number, local address and port, remote
/// address and port, state.
fn listening(table: &str) -> Vec<u16> {
    let port = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next()?;
        let state = fields.nth(1)?;
        let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        (state == LISTEN).then_some(port)
    };
    table.lines().filter_map(port).collect()
}

/// Returns whether a socket listens at `path`, the path with which the server has bound the socket. Makes no test connection, because the
/// server could count it as a client.
pub(crate) fn listens_at(path: &Path) -> bool {
    let table = fs::read("/proc/net/unix").unwrap_or_default();
    table.split(|byte| *byte == b'\n').any(|line| is_listener_at(line, path))
}

/// Returns whether a line of `/proc/net/unix` is that of a socket that listens at `path`. Such a line is `0000000000000000: 00000002
/// 00000000 00010000 0001 01 12345 /run/a.sock`. The fourth field is 10000 for a listener.
fn is_listener_at(line: &[u8], path: &Path) -> bool {
    let Some(before) = line.strip_suffix(path.as_os_str().as_bytes()) else { return false };
    let fields: Vec<&[u8]> = before.split(|byte| *byte == b' ').filter(|field| !field.is_empty()).collect();
    before.ends_with(b" ") && fields.len() == 7 && fields.get(3) == Some(&&b"00010000"[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a line as in `/proc/PID/stat`, with a name, a state and a start time. An ended process has one thread.
    fn line(name: &[u8], state: &str, started: &str) -> Vec<u8> {
        let threads = if matches!(state, "Z" | "X") { 1 } else { 9 };
        let rest =
            format!(") {state} 1 4711 4711 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 {started} 11481088 1000");
        [b"4711 (", name, rest.as_bytes()].concat()
    }

    #[test]
    fn a_name_may_have_blanks_and_parentheses() {
        for name in ["etcd", "my etcd", "(sd-pam)", "a) Z 1 2 (b", ") S 1", "kworker/0:1-events", "", "é)(", "a\nb"] {
            let stat = parse_stat(&line(name.as_bytes(), "S", "263940"));
            assert_eq!(stat, Some(Stat { has_ended: false, started: 263_940, parent: 1 }), "{name}");
        }
        assert!(parse_stat(&line(b"fifteen bytes \xc3", "S", "1")).is_some(), "half a character at its end");
    }

    #[test]
    fn one_that_only_waits_for_its_parent_has_ended() {
        for (state, has_ended) in [("R", false), ("S", false), ("D", false), ("T", false), ("Z", true), ("X", true)] {
            assert_eq!(parse_stat(&line(b"etcd", state, "1")).map(|stat| stat.has_ended), Some(has_ended), "{state}");
        }
    }

    /// Asserts that a killed process has not ended while one of its threads waits for a disk that does not answer.
    #[test]
    fn one_with_a_thread_left_has_not_ended() {
        let line = String::from_utf8(line(b"etcd", "Z", "7")).unwrap().replace(" 20 0 1 0 7 ", " 20 0 2 0 7 ");
        assert_eq!(parse_stat(line.as_bytes()), Some(Stat { has_ended: false, started: 7, parent: 1 }));
    }

    #[test]
    fn the_age_of_a_program_is_that_of_its_youngest_process() {
        let me = fs::read_to_string("/proc/self/comm").unwrap();
        let age = youngest(&["no-such-program", me.trim_end()]).unwrap();
        assert!(age < Duration::from_secs(3_600), "{age:?}");
        assert_eq!(youngest(&["no-such-program"]), None);
    }

    #[test]
    fn half_a_line_is_no_process() {
        for text in ["", "4711", "4711 (etcd", "4711 (etcd)", "4711 (etcd) S 1"] {
            assert_eq!(parse_stat(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_stat(&line(b"etcd", "S", "soon")), None);
        let whole = line(b"etcd", "S", "7");
        let rest = " 11481088 1000".len();
        assert!(parse_stat(&whole[..whole.len() - rest]).is_some());
        assert_eq!(parse_stat(&whole[..whole.len() - rest - 2]), None, "no start time");
    }

    #[test]
    fn the_kernel_tells_of_this_process_and_of_no_other_with_a_wrong_number() {
        let myself = i32::try_from(std::process::id()).unwrap();
        let me = stat(myself).unwrap();
        assert!(!me.has_ended && me.started > 0);
        assert!(stat(1).unwrap().started <= me.started);
        assert!(!cgroups(myself).is_empty());
        assert_eq!((stat(-1), cgroups(-1)), (None, String::new()));
        assert!(boot_id().len() == 36 && boot_id().split('-').count() == 5, "{}", boot_id());
    }

    #[test]
    fn a_file_of_the_same_number_on_another_file_system_is_another_file() {
        let myself = i32::try_from(std::process::id()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let file = fs::File::create(&path).unwrap();
        let database = inode(&path).unwrap();
        assert!(has_open(myself, &BTreeSet::from([database])));
        let (device, number) = database;
        assert!(!has_open(myself, &BTreeSet::from([(device + 1, number)])), "nobody has it open");
        drop(file);
        assert!(!has_open(myself, &BTreeSet::from([database])));
        assert!(!has_open(-1, &BTreeSet::from([database])));
        assert_eq!(inode(dir.path()), None, "a directory");
    }

    #[test]
    fn a_line_of_the_lock_table_names_its_holder() {
        assert_eq!(locker("1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF", 5678), Some(1234));
        assert_eq!(locker("1: -> FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF", 5678), Some(1234));
        assert_eq!(locker("1: FLOCK  ADVISORY  WRITE 1234 fe:01:56789 0 EOF", 5678), None);
        assert_eq!(locker("2: OFDLCK ADVISORY  WRITE -1 fe:01:5678 0 EOF", 5678), Some(-1));
    }

    #[test]
    fn a_table_of_mounts_has_fields_that_vary() {
        let table = b"21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
            24 21 8:17 / /mnt/a\\040b\\134c rw shared:1 master:2 - xfs /dev/mapper/data\\040disk rw\n\
            25 21 0:22 / /half rw shared:1\n";
        let mount = |point: &str, file_system: &str, source: &str| Mount {
            point: point.into(),
            file_system: file_system.to_owned(),
            source: source.to_owned(),
        };
        let expected = [mount("/", "ext4", "/dev/sda1"), mount("/mnt/a b\\c", "xfs", "/dev/mapper/data disk")];
        assert_eq!(parse_mounts(table), expected);
        assert!(mounts().unwrap().iter().any(|mount| mount.point == Path::new(ROOT) && mount.file_system == "proc"));
    }

    #[test]
    fn a_socket_is_listened_at_by_its_own_path() {
        let line = b"ffff8880: 00000002 00000000 00010000 0001 01 4711 /run/a b.sock";
        assert!(is_listener_at(line, Path::new("/run/a b.sock")));
        assert!(!is_listener_at(line, Path::new("b.sock")) && !is_listener_at(line, Path::new("/run/a")));
        let connected = b"ffff8880: 00000003 00000000 00000000 0001 03 4711 /run/a.sock";
        assert!(!is_listener_at(connected, Path::new("/run/a.sock")));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(listens_at(&path));
        drop(listener);
        assert!(!listens_at(&path) && path.exists());
    }

    #[test]
    fn a_process_has_a_name_and_this_one_is_no_other() {
        let myself = i32::try_from(std::process::id()).unwrap();
        assert!(name(myself).is_some_and(|name| !name.is_empty() && !name.ends_with('\n')));
        assert_eq!(name(-1), None);
        let _random = fs::File::open("/dev/urandom").unwrap();
        assert!(openers(&BTreeSet::from([(1, 9)])).iter().all(|(pid, _)| *pid != myself));
    }

    #[test]
    fn only_listeners_count() {
        let table = "  sl  local_address rem_address   st tx_queue\n   \
            0: 00000000:094B 00000000:0000 0A 00000000:00000000\n   \
            1: 0100007F:094C 0100007F:C350 06 00000000:00000000\n   \
            2: 00000000000000000000000000000000:26FA 00000000000000000000000000000000:0000 0A 0\n";
        assert_eq!(listening(table), [2379, 9978]);
    }

    #[test]
    fn a_port_in_time_wait_is_free() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening_ports().contains(&port));
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        // The side that closes first stays in TIME-WAIT.
        drop((server, listener));
        drop(client);
        // A child process of another test may have the listener open between its fork and its exec.
        let mut looks = 0..100;
        assert!(looks.any(|_| {
            crate::os::clock::sleep(std::time::Duration::from_millis(10));
            !listening_ports().contains(&port)
        }));
    }
}
