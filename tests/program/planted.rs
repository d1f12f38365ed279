//! Files that a compromised etcd can leave in its data dir under every name that the agent uses there. The agent does
//! not read, write or wait for them, and ends no process of the host. Scripts replace podman and Pacemaker's tools.
//! Needs root.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::stat::{Mode, SFlag, mknod};

use super::killed_agent::{STAGE, agent, set_the_stage, told};
use crate::namespaces::{self, program};

/// The names in the data dir that the container could plant: those of Tandem's own files, of their temporary files, and of
/// etcd's files.
const NAMES: [&str; 24] = [
    "tandem",
    "tandem.new",
    "config-previous.tar.gz.new",
    "config.yaml",
    "config.new",
    "pod.yaml",
    "pod.new",
    "config-previous.tar.gz",
    "config-previous.tar.new",
    "tandem-note.json",
    "tandem-note.new",
    "tandem-failed-starts.json",
    "tandem-failed-starts.new",
    "revision.json",
    "snapshot-20200101-000000.db",
    "member-backup-0001-20200101T000000Z",
    "member-discard-member-backup-0001-20200101T000000Z",
    "wal-tail-before-advance-0001-20200101T000000Z",
    "member/wal.tmp",
    "member/wal/0000000000000000-0000000000000000.wal",
    "member/wal/0000000000000001-0000000000000002.wal",
    "member/snap/0000000000000001-0000000000000002.snap",
    "member/snap/0000000000000002.snap.db",
    "member/snap/db",
];
/// The names in the agent's own directory in the data dir, which the container of an earlier version could write.
const OWN: [&str; 9] = [
    "tandem/config.yaml",
    "tandem/config.new",
    "tandem/pod.yaml",
    "tandem/config-previous.tar.gz",
    "tandem/config-previous.tar.new",
    "tandem/tandem-note.json",
    "tandem/tandem-note.new",
    "tandem/tandem-failed-starts.json",
    "tandem/tandem-failed-starts.new",
];
/// The actions that the test runs, in an order in which none starts etcd.
const ACTIONS: [&str; 10] =
    ["meta-data", "validate-all", "monitor", "notify", "promote", "demote", "reload-agent", "stop", "start", "stop"];
/// The time after which the test kills an action. A start fails by itself before that.
const LONGEST: Duration = Duration::from_secs(25);
/// The time within which every action but a start must end.
const LONGEST_OF_OTHERS: Duration = Duration::from_secs(12);
/// The limit of the agent's address space in KiB, into which a whole planted file would not fit.
const MEMORY: &str = "524288";

type Plant = fn(&Path, &Host);

const KINDS: [(&str, Plant); 7] = [
    ("a link", |at, host| symlink(&host.secret, at).unwrap()),
    ("a link to what another process has locked", |at, host| symlink(&host.locked, at).unwrap()),
    ("a hard link", |at, host| fs::hard_link(&host.secret, at).unwrap()),
    ("a FIFO", |at, _| nix::unistd::mkfifo(at, Mode::S_IRUSR | Mode::S_IWUSR).unwrap()),
    // Each open of this device creates a terminal.
    ("a device", |at, _| {
        mknod(at, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, nix::sys::stat::makedev(5, 2)).unwrap();
    }),
    ("a sparse terabyte", |at, _| fs::File::create(at).unwrap().set_len(1 << 40).unwrap()),
    ("a directory", |at, _| fs::create_dir(at).unwrap()),
];

/// The host's files and a process that the agent must not touch, even if a planted name leads to them.
struct Host {
    secret: PathBuf,
    locked: PathBuf,
    bystander: Child,
}

impl Host {
    fn new() -> Self {
        let (secret, locked) = (Path::new(STAGE).join("host/bmc-password"), Path::new(STAGE).join("host/crond.pid"));
        fs::create_dir_all(secret.parent().unwrap()).unwrap();
        fs::write(&secret, "hunter2\nforce-new-cluster: true\n").unwrap();
        fs::write(&locked, "4711").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).unwrap();
        let script = "exec 9<>\"$1\"; flock --exclusive 9; echo held; exec sleep 1000";
        let mut command = program("/bin/sh");
        command.args(["-c", script, "sh"]).arg(&locked).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut bystander = command.spawn().unwrap();
        std::io::Read::read_exact(&mut bystander.stdout.take().unwrap(), &mut [0; 5]).unwrap();
        Self { secret, locked, bystander }
    }

    /// Returns the content, mode, inode and owner of the host's files, which an attack would change.
    fn state(&self) -> Vec<(String, u32, u64, u32)> {
        let state = |path: &PathBuf| {
            let found = fs::metadata(path).unwrap();
            (fs::read_to_string(path).unwrap(), found.mode(), found.ino(), found.uid())
        };
        [&self.secret, &self.locked].map(state).to_vec()
    }
}

/// Runs an action of `podman-etcd` with little memory, and with `more` parameters.
fn run(action: &str, timeout_s: u64, more: &[(&str, &str)]) {
    let mut command = agent(action, timeout_s);
    for (name, value) in more {
        command.env(format!("OCF_RESKEY_{name}"), value);
    }
    command.env("OCF_RESKEY_config_location", format!("{STAGE}/data"));
    command.env("OCF_RESKEY_backup_location", format!("{STAGE}/data"));
    let variables: Vec<_> =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    let log = fs::File::options().create(true).append(true).open(format!("{STAGE}/log")).unwrap();
    let began = Instant::now();
    let mut limited = program("/bin/sh");
    limited.env_clear().envs(variables).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let script = format!("ulimit -v {MEMORY}; exec timeout -s KILL {} {STAGE}/podman-etcd {action}", LONGEST.as_secs());
    let code = limited.args(["-c", &script]).status().unwrap().code();
    assert!(code.is_some_and(|code| code < 10), "{action}: {code:?}: {}", told());
    assert!(action == "start" || began.elapsed() < LONGEST_OF_OTHERS, "{action}: {:?}: {}", began.elapsed(), told());
}

fn refill(member: bool) {
    let data = Path::new(STAGE).join("data");
    let _ = fs::remove_dir_all(&data);
    fs::create_dir_all(&data).unwrap();
    if member {
        fs::create_dir_all(data.join("member/wal")).unwrap();
        fs::create_dir_all(data.join("member/snap")).unwrap();
    }
}

fn terminals() -> usize {
    fs::read_dir("/dev/pts").unwrap().count()
}

/// Runs starts that get as far as the container, and so write to every name of the agent in the data dir.
fn launches(host: &mut Host, data: &Path, check: &dyn Fn(&mut Host, &str)) {
    for first in [0, 3] {
        refill(false);
        let written = ["tandem", "tandem.new", "config.yaml", "config.new", "pod.yaml", "config-previous.tar.new"];
        for (number, name) in written.iter().enumerate() {
            let (_, plant) = KINDS[(number + first) % KINDS.len()];
            plant(&data.join(name), host);
        }
        run("start", 8, &[]);
        check(host, &format!("a launch, {first}"));
        assert!(fs::symlink_metadata(data.join("tandem")).unwrap().is_dir(), "{}", told());
        assert!(fs::read_to_string(data.join("tandem/config.yaml")).unwrap().starts_with("name:"), "{}", told());
        assert_eq!(fs::read_link(data.join("config.yaml")).unwrap(), Path::new("tandem/config.yaml"));
        run("stop", 15, &[]);
        check(host, &format!("the stop of it, {first}"));
    }
}

#[test]
fn no_action_touches_the_host_by_a_name_in_the_data_dir() {
    namespaces::run(module_path!(), "no_action_touches_the_host_by_a_name_in_the_data_dir", 400, || {
        for args in [&["link", "set", "lo", "up"][..], &["address", "add", "192.0.2.1/32", "dev", "lo"]] {
            assert!(program("/usr/sbin/ip").args(args).status().unwrap().success(), "{args:?}");
        }
        set_the_stage();
        let mut host = Host::new();
        let (before, terminals_before) = (host.state(), terminals());
        let data = Path::new(STAGE).join("data");
        let check = |host: &mut Host, what: &str| {
            assert_eq!(host.state(), before, "{what}: {}", told());
            assert!(host.bystander.try_wait().unwrap().is_none(), "{what}: the bystander was ended: {}", told());
            assert_eq!(terminals(), terminals_before, "{what}: a device was opened");
            let log = told();
            assert!(!log.contains("hunter2") && !log.contains("panicked"), "{what}: {log}");
        };
        for round in 0..KINDS.len() {
            refill(true);
            for (number, name) in NAMES.iter().enumerate() {
                let (_, plant) = KINDS[(number + round) % KINDS.len()];
                plant(&data.join(name), &host);
            }
            for action in ACTIONS {
                run(action, 15, &[]);
                check(&mut host, &format!("{action}, round {round}"));
            }
            for action in ["monitor", "stop"] {
                run(action, 15, &[("oom", "much")]);
                check(&mut host, &format!("{action} with a wrong parameter, round {round}"));
            }
            // The agent's own directory exists, and its contents are planted.
            let _ = fs::remove_file(data.join("tandem"));
            let _ = fs::remove_dir_all(data.join("tandem"));
            fs::create_dir(data.join("tandem")).unwrap();
            for (number, name) in OWN.iter().enumerate() {
                let (_, plant) = KINDS[(number + round) % KINDS.len()];
                plant(&data.join(name), &host);
            }
            for action in ACTIONS {
                run(action, 15, &[]);
                check(&mut host, &format!("{action}, own directory, round {round}"));
            }
            for name in ["config.yaml", "config-previous.tar.gz", "tandem-note.json", "tandem/config.yaml"] {
                let at = data.join(name);
                let own = fs::symlink_metadata(&at)
                    .is_ok_and(|found| found.is_file() && found.len() < 1 << 20 && found.nlink() == 1);
                let text = if own { fs::read(&at).unwrap() } else { Vec::new() };
                assert!(!text.windows(7).any(|part| part == b"hunter2"), "{name} holds a secret of the host");
            }
        }
        for place in ["member", "member/wal", "member/snap"] {
            for (kind, plant) in KINDS {
                refill(place != "member");
                let _ = fs::remove_dir(data.join(place));
                plant(&data.join(place), &host);
                for action in ["monitor", "stop"] {
                    run(action, 20, &[]);
                    check(&mut host, &format!("{action}, {kind} at {place}"));
                }
            }
        }
        launches(&mut host, &data, &check);
        host.bystander.kill().unwrap();
        host.bystander.wait().unwrap();
    });
}
