//! A disk without space. Output for operators (log, decisions, events) changes no action's result, and no program
//! panics or hangs. Needs root.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::killed_agent::{STAGE, agent, etcd_lives, set_the_stage, told};
use crate::namespaces::{self, program};

/// The time within which an action must end on a full disk.
const LONGEST: Duration = Duration::from_secs(20);

/// Mounts a full file system at `place`.
fn fill(place: &str) {
    fs::create_dir_all(place).unwrap();
    let script = "mount -t tmpfs -o size=64k,nr_inodes=64 tmpfs \"$1\" && cat /dev/zero > \"$1/full\" 2> /dev/null; \
                  : > \"$1/log\" || exit 1; echo x > \"$1/some\" 2> /dev/null && exit 1; exit 0";
    let filled = program("/bin/sh").args(["-c", script, "sh", place]).status().unwrap();
    assert!(filled.success(), "{place}");
}

/// Runs an action of `podman-etcd` with its log in the file `log`. Returns the exit code.
fn code(action: &str, log: &str) -> i32 {
    let began = Instant::now();
    let mut command = agent(action, 8);
    command.env("HA_LOGFILE", log).env("HA_DEBUGLOG", log);
    let code = command.status().unwrap().code();
    assert!(began.elapsed() < LONGEST, "{action}: {}", told());
    assert!(!told().contains("panicked"), "{action}: {}", told());
    code.unwrap()
}

fn codes(log: &str) -> Vec<(&'static str, i32)> {
    let actions = ["validate-all", "monitor", "start", "monitor", "notify", "stop", "monitor"];
    actions.into_iter().map(|action| (action, code(action, log))).collect()
}

#[test]
fn a_full_disk_changes_no_answer() {
    namespaces::run(module_path!(), "a_full_disk_changes_no_answer", 200, || {
        for args in [&["link", "set", "lo", "up"][..], &["address", "add", "192.0.2.1/32", "dev", "lo"]] {
            assert!(program("/usr/sbin/ip").args(args).status().unwrap().success(), "{args:?}");
        }
        set_the_stage();
        let again = || {
            for name in ["data", "config", "tmp"] {
                let _ = fs::remove_dir_all(format!("{STAGE}/{name}"));
            }
            for name in ["pid", "asked"] {
                let _ = fs::remove_file(format!("{STAGE}/{name}"));
            }
        };
        let with_room = codes(&format!("{STAGE}/pacemaker.log"));
        again();
        for place in ["/var/lib/tandem", "/var/lib/pacemaker", &format!("{STAGE}/logs")] {
            fill(place);
        }
        assert_eq!(codes(&format!("{STAGE}/logs/log")), with_room, "{}", told());
        assert_eq!(fs::metadata(format!("{STAGE}/logs/log")).unwrap().len(), 0, "it is full");
        again();
        // If the memory of the boot cannot be written, the stop ends etcd and fails: the node may hold a claim, which a
        // reboot ends.
        fill(&format!("{STAGE}/tmp"));
        assert_eq!((code("start", "/dev/null"), code("stop", "/dev/null")), (1, 1), "{}", told());
        assert!(!etcd_lives(), "{}", told());
        again();
        // The same holds for the durable note and the configuration.
        assert!(program("/bin/umount").arg(format!("{STAGE}/tmp")).status().unwrap().success());
        fill(&format!("{STAGE}/data"));
        assert_eq!((code("start", "/dev/null"), code("stop", "/dev/null")), (1, 0), "{}", told());
        // The fence agent's trace and notes are on the full disk.
        let fence = |trace: &str| {
            let mut command = program(env!("CARGO_BIN_EXE_tandem"));
            command.args(["fence_redfish_rs", "--action=status", "--ip=192.0.2.9", "--username=u", "--password=p"]);
            command.args([
                "--plug=1",
                "--verbose",
                "--login-timeout=2",
                "--power-timeout=2",
                &format!("--debug-file={trace}"),
            ]);
            let output = command.stdin(Stdio::null()).output().unwrap();
            assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
            output.status.code()
        };
        assert_eq!(fence(&format!("{STAGE}/logs/trace")), fence(&format!("{STAGE}/trace")));
    });
}
