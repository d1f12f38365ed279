//! A killed agent leaves its podman behind. The test uses the real program, with scripts in place of podman and
//! Pacemaker's tools, in mount, network and PID namespaces of its own.
//!
//! Needs root. Each test starts this program again in its own namespaces. All processes end with the namespaces' first
//! one.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::executable;
use crate::namespaces::{self, program};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tandem::os::clock::Deadline;

/// Runs `inner` inside fresh namespaces in which the host has the address 192.0.2.1.
pub(super) fn in_namespaces(module: &str, name: &str, inner: fn()) {
    namespaces::run(module, name, 120, || {
        for args in [&["link", "set", "lo", "up"][..], &["address", "add", "192.0.2.1/32", "dev", "lo"]] {
            assert!(program("/usr/sbin/ip").args(args).status().unwrap().success(), "{args:?}");
        }
        inner();
    });
}

/// The directory in which the fake programs keep their state. Its file system is visible only to this test.
pub(super) const STAGE: &str = "/run/stage";

/// The time that the fake podman takes to start the container, in seconds. It is long enough for the test to kill the agent meanwhile.
const LAUNCH_TAKES: u64 = 4;

/// The script of a fake `podman` with one container. In place of etcd it runs `sleep`.
pub(super) const PODMAN: &str = r#"cd /run/stage
echo "$*" >> asked
lives() { [ -s pid ] && kill -0 "$(cat pid)" 2> /dev/null && ! grep -q '^State:.Z' "/proc/$(cat pid)/status"; }
case "$1 $2" in
    "container inspect")
        [ -e pid ] || { echo "Error: no such container etcd" >&2; exit 125; }
        if lives; then state='"Running":true,"Status":"running","Pid":'$(cat pid)
        else state='"Running":false,"Status":"exited","Pid":0'; fi
        echo "{\"id\":\"c1\",\"state\":{$state,\"ExitCode\":0},\"labels\":{}}" ;;
    "image inspect") echo image1 ;;
    "run --rm") echo "etcd Version: 3.5.16" ;;
    "run --detach")
        env > environment
        sleep LAUNCH_TAKES
        setsid chroot /usr /bin/sleep 1000 < /dev/null > /dev/null 2>&1 &
        echo $! > pid
        echo launched >> asked ;;
    "stop "*) lives && kill -9 "$(cat pid)" ;;
esac
exit 0
"#;

const ATTRD_UPDATER: &str = r#"cd /run/stage
while [ $# -gt 0 ]; do
    case $1 in --name) name=$2 ;; --update) value=$2 ;; esac
    shift
done
[ -z "$value" ] || printf '%s' "$value" | sed 's/&/\&amp;/g; s/"/\&quot;/g' > "attribute-$name"
"#;

/// The script of a fake `cibadmin` that prints a CIB with one node and its attributes.
const CIBADMIN: &str = r#"cd /run/stage
echo '<cib><configuration><crm_config/><nodes><node id="1" uname="node1"/></nodes></configuration><status>'
echo '<node_state id="1" uname="node1" in_ccm="true" crmd="online" join="member" expected="member">'
echo '<transient_attributes id="1"><instance_attributes id="status-1">'
for file in attribute-*; do
    [ ! -e "$file" ] || echo "<nvpair id=\"$file\" name=\"${file#attribute-}\" value=\"$(cat "$file")\"/>"
done
echo '</instance_attributes></transient_attributes></node_state></status></cib>'
"#;

pub(super) fn script(name: &str, text: &str) {
    // This directory is the first in the agent's search path.
    let path = Path::new("/usr/sbin").join(name);
    let _ = std::fs::remove_file(&path);
    executable::script(&path, text);
}

pub(super) fn set_the_stage() {
    let output = program("/bin/sh")
        .args([
            "-c",
            "set -e
             mount -t tmpfs tmpfs /run
             mkdir -p /run/stage /run/sbin/upper /run/sbin/work /run/var
             mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/run/sbin/upper,workdir=/run/sbin/work /usr/sbin
             mkdir -p /var/lib/tandem
             mount --bind /run/var /var/lib/tandem
             echo '-----BEGIN CERTIFICATE-----' > /run/stage/some.pem",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    script("podman", &PODMAN.replace("LAUNCH_TAKES", &LAUNCH_TAKES.to_string()));
    script("attrd_updater", ATTRD_UPDATER);
    script("cibadmin", CIBADMIN);
    script("crm_attribute", "");
    std::fs::copy(env!("CARGO_BIN_EXE_tandem"), "/run/stage/podman-etcd").unwrap();
}

/// Returns the command that runs an action of `podman-etcd` as Pacemaker does, in a process group of its own.
pub(super) fn agent(action: &str, timeout_s: u64) -> Command {
    let log = std::fs::File::options().create(true).append(true).open(format!("{STAGE}/log")).unwrap();
    let mut command = program(format!("{STAGE}/podman-etcd"));
    command.arg(action).env_clear().process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    for (name, value) in [
        ("node_ip_map", "node1:192.0.2.1".to_owned()),
        ("image", "etcd:test".to_owned()),
        ("data_dir", format!("{STAGE}/data")),
        ("config_location", format!("{STAGE}/config")),
        ("trusted_ca_file", format!("{STAGE}/some.pem")),
        ("cert_file", format!("{STAGE}/some.pem")),
        ("key_file", format!("{STAGE}/some.pem")),
        ("drop_in_dependency", "true".to_owned()),
        ("CRM_meta_on_node", "node1".to_owned()),
        ("CRM_meta_timeout", (timeout_s * 1000).to_string()),
    ] {
        command.env(format!("OCF_RESKEY_{name}"), value);
    }
    command.env("HA_RSCTMP", format!("{STAGE}/tmp")).env("INVOCATION_ID", "pacemaker-1");
    command
}

fn asked() -> Vec<String> {
    let text = std::fs::read_to_string(format!("{STAGE}/asked")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub(super) fn position_of(line: &str, from: usize) -> Option<usize> {
    asked().iter().skip(from).position(|asked| asked.starts_with(line)).map(|position| position + from)
}

pub(super) fn told() -> String {
    format!("{}\n{}", asked().join("\n"), std::fs::read_to_string(format!("{STAGE}/log")).unwrap_or_default())
}

/// Waits until the fake podman gets a call that begins with `line`.
pub(super) fn await_asked(line: &str) {
    let patience = Deadline::after(Duration::from_secs(20));
    while position_of(line, 0).is_none() {
        assert!(!patience.has_passed(), "{line}: {}", told());
        patience.sleep(Duration::from_millis(20));
    }
}

pub(super) fn etcd_lives() -> bool {
    let pid = std::fs::read_to_string(format!("{STAGE}/pid")).ok().and_then(|text| text.trim().parse().ok());
    let Some(pid) = pid else { return false };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    kill(Pid::from_raw(pid), None).is_ok() && !status.contains("State:\tZ")
}

/// Kills the agent's process group. Pacemaker does that to an action that exceeds its time-out, and to a monitor that it
/// cancels for a stop.
pub(super) fn kill_group(mut agent: Child) {
    killpg(Pid::from_raw(i32::try_from(agent.id()).unwrap()), Signal::SIGKILL).unwrap();
    agent.wait().unwrap();
}

/// Starts `podman-etcd start`, and kills it while the fake podman starts the container.
fn start_and_kill() {
    let start = agent("start", 600).spawn().unwrap();
    await_asked("run --detach");
    kill_group(start);
    assert!(position_of("launched", 0).is_none(), "{}", told());
}

#[test]
fn a_stop_is_answered_only_once_what_a_killed_agent_launches_is_over_and_undone() {
    in_namespaces(
        module_path!(),
        "a_stop_is_answered_only_once_what_a_killed_agent_launches_is_over_and_undone",
        || {
            set_the_stage();
            start_and_kill();
            let code = agent("stop", 90).status().unwrap().code();
            let launched_before = position_of("launched", 0).is_some();
            assert_eq!(code, Some(0), "{}", told());
            assert!(!etcd_lives(), "{}", told());
            // Any launch that was running when the stop returned would be complete now.
            tandem::os::clock::sleep(Duration::from_secs(LAUNCH_TAKES + 1));
            assert!(!etcd_lives(), "an etcd was started after the stop: {}", told());
            assert!(launched_before, "{}", told());
        },
    );
}

#[test]
fn a_start_launches_nothing_beside_what_a_killed_agent_launches() {
    in_namespaces(module_path!(), "a_start_launches_nothing_beside_what_a_killed_agent_launches", || {
        set_the_stage();
        start_and_kill();
        let again = agent("start", 600).spawn().unwrap();
        await_asked("launched");
        let launched = position_of("launched", 0).unwrap();
        tandem::os::clock::sleep(Duration::from_secs(1));
        let runs = asked().iter().take(launched).filter(|line| line.starts_with("run --detach")).count();
        assert_eq!(runs, 1, "{}", told());
        kill_group(again);
        let environment = std::fs::read_to_string(format!("{STAGE}/environment")).unwrap();
        // Without it podman puts conmon into a scope of its own, and etcd's log is not in pacemaker.service's.
        assert!(environment.lines().any(|line| line == "INVOCATION_ID=pacemaker-1"), "{environment}");
    });
}

#[test]
fn a_probe_does_not_say_that_nothing_runs_while_something_is_launched() {
    in_namespaces(module_path!(), "a_probe_does_not_say_that_nothing_runs_while_something_is_launched", || {
        set_the_stage();
        start_and_kill();
        let began = Instant::now();
        let code = agent("monitor", 25).status().unwrap().code();
        assert_eq!(code, Some(0), "{}", told());
        assert!(began.elapsed() < Duration::from_secs(LAUNCH_TAKES + 3));
    });
}

/// Asserts that the agent renews its systemd drop-ins after the container was restarted without Pacemaker. OpenShift's
/// watcher of certificates uses `podman restart`, after which systemd forgets the drop-ins with the old scopes.
#[test]
fn the_drop_ins_follow_a_container_that_is_restarted_behind_pacemaker() {
    in_namespaces(module_path!(), "the_drop_ins_follow_a_container_that_is_restarted_behind_pacemaker", || {
        const DROP_IN: &str = "/run/systemd/transient/libpod-c1.scope.d/dep.conf";
        set_the_stage();
        let launch = || {
            let etcd = program("/usr/sbin/chroot").args(["/usr", "/bin/sleep", "1000"]).spawn().unwrap();
            std::fs::write(format!("{STAGE}/pid"), etcd.id().to_string()).unwrap();
            etcd
        };
        let looked_at = || {
            let _ = std::fs::remove_file(DROP_IN);
            assert_eq!(agent("monitor", 25).status().unwrap().code(), Some(0), "{}", told());
            Path::new(DROP_IN).is_file()
        };
        let mut first = launch();
        assert!(looked_at(), "{}", told());
        assert!(!looked_at(), "once for each process");
        first.kill().unwrap();
        first.wait().unwrap();
        let mut second = launch();
        assert!(looked_at(), "{}", told());
        second.kill().unwrap();
        second.wait().unwrap();
    });
}
