//! Tests whether a container is alive by the process table: every status of podman, every process that it may name, and every
//! failing command. They need root.

use std::path::PathBuf;
use std::process::{Child, Command};

use super::*;
use crate::adapters::command::fake_program;
use crate::os::proc;

const STATUSES: [&str; 7] = ["created", "initialized", "running", "paused", "stopping", "exited", "stopped"];
const COMMANDS: [&str; 4] = ["container", "stop", "kill", "rm"];

/// A process that sleeps until its test ends. It may have a control group of its own.
struct Sleeper {
    child: Child,
    group: Option<PathBuf>,
}

impl Sleeper {
    #[expect(clippy::disallowed_methods, reason = "a process to look at")]
    fn start(words: &[&str]) -> Self {
        let child = Command::new(words[0]).args(&words[1..]).spawn().unwrap();
        // The pause lets the last program start, which has its own root directory.
        crate::os::clock::sleep(Duration::from_millis(300));
        Self { child, group: None }
    }

    /// Starts a process that belongs to the host and to no container.
    fn stranger() -> Self {
        Self::start(&["sleep", "100"])
    }

    /// Starts a process with its own root directory, outside of podman's control groups.
    fn apart() -> Self {
        Self::start(&["chroot", "/usr", "/bin/sleep", "100"])
    }

    /// Starts a process in the control group of the container `id`.
    fn of_container(id: &str) -> Self {
        let mounts = proc::mounts().unwrap();
        let mount = mounts.into_iter().find(|mount| mount.file_system == "cgroup2").expect("a cgroup2 hierarchy");
        let mut sleeper = Self::apart();
        let group = mount.point.join(format!("libpod-{id}"));
        std::fs::create_dir(&group).unwrap();
        std::fs::write(group.join("cgroup.procs"), sleeper.pid().to_string()).unwrap();
        sleeper.group = Some(group);
        sleeper
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.group.as_ref().map(std::fs::remove_dir);
    }
}

fn id_of_test(name: &str) -> String {
    format!("{name}{:x}", std::process::id())
}

fn inspected(id: &str, status: &str, pid: i32, has_cgroup: bool) -> Inspected {
    let cgroup = if has_cgroup { format!("/libpod_parent/libpod-{id}") } else { String::new() };
    let running = status == "running";
    let state =
        format!(r#"{{"Running":{running},"Status":"{status}","ExitCode":0,"Pid":{pid},"CgroupPath":"{cgroup}"}}"#);
    serde_json::from_str(&format!(r#"{{"id":"{id}","state":{state}}}"#)).unwrap()
}

#[test]
fn a_container_lives_while_a_process_of_its_own_does_whatever_podman_says() {
    let id = id_of_test("a");
    let mut dead = Sleeper::stranger();
    dead.child.kill().unwrap();
    dead.child.wait().unwrap();
    let (stranger, apart, own) = (Sleeper::stranger(), Sleeper::apart(), Sleeper::of_container(&id));
    for status in STATUSES {
        for has_cgroup in [true, false] {
            let alive = |id: &str, pid| inspected(id, status, pid, has_cgroup).alive();
            for (pid, whose) in
                [(0, "none"), (dead.pid(), "a dead one"), (stranger.pid(), "a stranger"), (1, "the first")]
            {
                assert_eq!(alive("b0", pid), None, "{status}, {whose}");
            }
            assert_eq!(alive("b0", own.pid()), None, "{status}: another container's");
            // podman may have forgotten the process number, or name another one.
            for pid in [own.pid(), 0, dead.pid(), stranger.pid()] {
                assert_eq!(alive(&id, pid), Some(own.pid()), "{status}, its own");
            }
            let expected = (!has_cgroup).then_some(apart.pid());
            assert_eq!(alive("b0", apart.pid()), expected, "{status}: without control groups podman has the word");
            let is_stuck = ["running", "paused", "stopping"].contains(&status);
            assert_eq!(inspected("b0", status, stranger.pid(), has_cgroup).is_stuck(), is_stuck, "{status}");
            assert!(!inspected(&id, status, own.pid(), has_cgroup).is_stuck(), "{status}");
        }
    }
}

/// Asserts that a stop ends the container's process and no other one, even if one of podman's commands fails, or all of them.
#[test]
fn a_stop_ends_the_containers_own_process_and_no_stranger() {
    let failing = COMMANDS.iter().map(|one| vec![*one]).chain([COMMANDS[1..].to_vec()]);
    for (number, fails) in failing.enumerate() {
        let id = id_of_test(&format!("c{number}"));
        let dir = tempfile::tempdir().unwrap();
        let (mut stranger, mut own) = (Sleeper::stranger(), Sleeper::of_container(&id));
        let cases = fails.join("|");
        let script = format!(
            "echo \"$*\" >> {asked}\ncase $1 in {cases}) echo 'Error: container state improper' >&2; exit 125 ;;\n\
             container) echo '{{\"id\":\"{id}\",\"state\":{{\"Running\":false,\"Status\":\"stopping\",\"ExitCode\":0,\"Pid\":{pid}}}}}' ;;\n\
             stop|kill) kill -9 {own} ;; esac",
            asked = dir.path().join("asked").display(),
            pid = stranger.pid(),
            own = own.pid(),
        );
        let programs = fake_program(dir.path(), "podman", &script);
        stop_surely(&programs, &ContainerLock::at(dir.path().join("turn")), "etcd", Duration::ZERO);
        assert!(stranger.lives(), "{fails:?}");
        // A signal takes a moment.
        let patience = Deadline::after(Duration::from_secs(5));
        while own.lives() {
            assert!(!patience.has_passed(), "{fails:?}");
            patience.sleep(Duration::from_millis(20));
        }
        let asked = std::fs::read_to_string(dir.path().join("asked")).unwrap();
        let is_last = asked.lines().any(|line| line == "rm --force etcd");
        assert_eq!(is_last, fails.len() > 1, "{fails:?}: {asked}");
    }
}

/// Asserts that a stop removes a dead container that podman reports as "stopping". The next start then creates the container anew, and
/// later stops succeed without a wait.
#[test]
fn the_last_way_out_of_a_stop_makes_podman_forget_the_container() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    let script = format!(
        "case $1 in rm) touch {gone} ;; stop|kill) exit 125 ;;\n\
         *) echo '{{\"id\":\"d0\",\"state\":{{\"Running\":false,\"Status\":\"stopping\",\"ExitCode\":0,\"Pid\":0}}}}' ;; esac",
        gone = gone.display()
    );
    let programs = fake_program(dir.path(), "podman", &script);
    assert!(inspect(&programs, "etcd").unwrap().unwrap().is_stuck());
    stop_surely(&programs, &ContainerLock::at(dir.path().join("turn")), "etcd", Duration::ZERO);
    assert!(gone.exists());
}
