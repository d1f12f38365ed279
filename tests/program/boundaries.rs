//! Texts of other programs are printed without control characters, and no log's reader can block an action.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as Pacemaker and a user would")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Texts with escapes, line breaks, C1 controls, and characters that change the direction of a text.
const HOSTILE: &[&str] = &[
    "\u{1b}]0;owned\u{7}",
    "\u{1b}[2J\u{1b}[1;1H",
    "a\rb",
    "a\nforged: line",
    "\u{9b}31m",
    "\u{202e}evil\u{2066}",
    "\u{2028}x",
    "\u{0}\u{8}\u{c}",
];

fn tandem(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tandem")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Returns a command that runs `podman-etcd` without parameters. The agent refuses that with a line in its log.
fn agent(dir: &Path, action: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.args(["podman-etcd", action]).env_clear().env("HA_RSCTMP", dir).stdin(Stdio::null());
    command
}

#[track_caller]
fn is_clean(output: &Output, what: &str) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let unfit = text
            .chars()
            .find(|letter| letter.is_control() && *letter != '\n' || "\u{202e}\u{2066}\u{2028}".contains(*letter));
        assert_eq!(unfit, None, "{what}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("forged")), "{what}: {text:?}");
    }
}

#[test]
fn no_subcommand_prints_what_controls_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let decision = include_str!("../data/fixtures/decisions/one.jsonl").lines().next().unwrap();
    for hostile in HOSTILE {
        let event = serde_json::json!({
            "number": 1, "time": "2200-01-01T00:00:00Z", "type": "Normal", "reason": "Test",
            "node": format!("n{hostile}"), "message": hostile, "cause": hostile,
        });
        fs::write(at("events.jsonl"), format!("{event}\n")).unwrap();
        let named = serde_json::to_string(&format!("node1{hostile}")).unwrap();
        fs::write(at("decisions"), format!("{}\n", decision.replace("\"node1\"", &named))).unwrap();
        fs::write(at("torn"), format!("{{\"version\": {named}}}\n")).unwrap();
        fs::write(at("setup.toml"), format!("{hostile} = {named}\n")).unwrap();
        let (events, decisions) = (dir.path().to_str().unwrap(), at("decisions"));
        let (torn, setup) = (at("torn"), at("setup.toml"));
        for arguments in [
            &["events", "--directory", events][..],
            &["events", "--directory", events, "--json"],
            &["replay", &decisions],
            &["replay", &decisions, "--verbose"],
            &["replay", &torn],
            &["setup", "-f", &setup, "--dry-run"],
            &["setup", "join", &setup],
            &["certs", "join", &setup],
            &["certs", "show", "--dir", &setup],
            &["data-dir", "show", &setup],
        ] {
            is_clean(&tandem(arguments), &format!("{arguments:?} {hostile:?}"));
        }
    }
    assert!(String::from_utf8(tandem(&["events", "--directory", &at("")]).stdout).unwrap().contains("Test"));
}

#[test]
fn no_log_file_keeps_an_action_from_its_end_or_leads_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("target"), "").unwrap();
    symlink(at("target"), at("link")).unwrap();
    nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    for name in ["file", "link", "fifo", "socket", "", "none/file", "/dev/full"] {
        let began = Instant::now();
        let output = agent(dir.path(), "start").env("HA_LOGFILE", at(name)).output().unwrap();
        assert!(output.status.code().is_some_and(|code| code > 1), "{name}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("ocf-exit-reason:"), "{name}: {output:?}");
        assert!(began.elapsed() < Duration::from_secs(10), "{name}");
    }
    assert_eq!(fs::read_to_string(at("target")).unwrap(), "");
    assert!(fs::read_to_string(at("file")).unwrap().contains("ERROR: "));
}

/// Asserts that other users cannot write the files that the program makes, whatever its caller's umask is. The supervisor of
/// a container may have another umask.
#[test]
fn no_other_user_writes_what_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$TANDEM\" podman-etcd start"]).env_clear();
    shell.env("TANDEM", env!("CARGO_BIN_EXE_tandem")).env("HA_RSCTMP", at("run")).env("HA_LOGFILE", at("log"));
    assert!(!shell.status().unwrap().success());
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$TANDEM\" tandem-alert"]).env_clear();
    shell.env("TANDEM", env!("CARGO_BIN_EXE_tandem")).env("events_directory", at("events"));
    for (name, value) in [("kind", "node"), ("node", "node1"), ("desc", "lost"), ("timestamp_epoch", "1795442801")] {
        shell.env(format!("CRM_alert_{name}"), value);
    }
    assert!(shell.status().unwrap().success());
    let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        [mode("log"), mode("events"), mode("events/events.jsonl"), mode("events/events.lock")],
        [0o640, 0o750, 0o640, 0o600]
    );
}

/// Asserts that an action that hangs ends itself before Pacemaker would. In this test the agent blocks on a full pipe without
/// a reader.
#[test]
fn an_action_that_hangs_ends_itself_before_pacemaker_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let (_reader, writer) = nix::unistd::pipe().unwrap();
    let mut full = File::from(writer.try_clone().unwrap());
    fcntl(&full, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    while full.write(b"x").is_ok() {}
    fcntl(&full, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    let began = Instant::now();
    let mut command = agent(dir.path(), "start");
    command.env("OCF_RESKEY_CRM_meta_timeout", "4000").stderr(Stdio::from(writer)).stdout(Stdio::null());
    let status = command.status().unwrap();
    assert_eq!(status.code(), Some(1));
    let took = began.elapsed();
    assert!((Duration::from_secs(3)..Duration::from_secs(10)).contains(&took), "{took:?}");
}
