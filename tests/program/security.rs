//! The promises of SECURITY.md about the program itself: no shell, a small environment for its children, no core dump.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as a user would")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tandem::adapters::command::Programs;

use crate::tree::{root, rust_files};

/// Returns the path and the text of every source file of the program.
fn sources() -> Vec<(PathBuf, String)> {
    let files = rust_files(&root().join("src"));
    assert!(files.len() > 50);
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

/// Returns the text of a source file without its tests, because the programs that tests start do not count.
fn product<'a>(path: &Path, text: &'a str) -> &'a str {
    if path.ends_with("tests.rs") { "" } else { text.split("#[cfg(test)]").next().unwrap() }
}

#[test]
fn no_shell_is_started_anywhere() {
    let shells = ["\"sh\"", "\"bash\"", "\"dash\"", "/bin/sh", "/bin/bash", "\"-c\"", "libc::system", "libc::exec"];
    for (path, text) in sources() {
        let text = product(&path, &text);
        for shell in shells {
            assert!(
                !text.contains(shell),
                "{} has {shell}: programs are run directly, by src/adapters/command.rs",
                path.display()
            );
        }
    }
}

#[test]
fn one_place_starts_programs() {
    let starts =
        |text: &str| text.matches("Command::new(path)").count() + text.matches("process::Command::new").count();
    for (path, text) in sources() {
        let text = product(&path, &text);
        let expected = usize::from(path.ends_with("src/adapters/command.rs"));
        assert_eq!(starts(text), expected, "{} starts programs by itself", path.display());
        // The lint finds every other spelling. Only that place may silence it, and those that its other rules name.
        let silenced = text.matches("disallowed_methods").count();
        let others = ["src/os/clock.rs", "src/os/logging.rs", "src/fence/process.rs", "src/os/daemon.rs"];
        let may = silenced <= expected || others.iter().any(|other| path.ends_with(other));
        assert!(may, "{} silences the lint that watches over this", path.display());
    }
}

#[test]
fn a_child_gets_a_small_environment() {
    // This test's own environment contains much more: variables of cargo and of the user, perhaps credentials.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO_")));
    let output = Programs::default().run::<&str>("env", &[], Duration::from_secs(10)).unwrap();
    let allowed = ["PATH", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "CIB_file", "LANG"];
    for line in output.stdout.lines() {
        let name = line.split('=').next().unwrap();
        assert!(allowed.contains(&name), "a child gets {name}");
    }
    assert!(output.stdout.contains("PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"), "{}", output.stdout);
}

/// Asserts that the user that the agent runs as cannot dump the agent's memory, which contains passwords. The kernel
/// assigns `/proc/PID` of a dumpable process to its user, and of a non-dumpable one to root. If the test is root, the
/// program runs as another user, so that the two differ.
#[test]
fn a_crash_leaves_no_memory_behind() {
    const NOBODY: u32 = 65_534;
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = dir.path().join("fence_redfish_rs");
    // Another process writes the file. A file that this process writes would be open in any program that another test
    // starts at that moment.
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_tandem")).arg(&binary).status().unwrap().success());
    let mut command = Command::new(&binary);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    if fs::metadata(dir.path()).unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut agent = command.spawn().unwrap();
    // It waits for the rest of its input, with a password in its memory.
    agent.stdin.as_mut().unwrap().write_all(b"password=hunter2\n").unwrap();
    let proc = PathBuf::from(format!("/proc/{}/mem", agent.id()));
    let limit = Instant::now() + Duration::from_secs(5);
    let mut owner = fs::metadata(&proc).unwrap().uid();
    while owner != 0 && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(20));
        owner = fs::metadata(&proc).unwrap().uid();
    }
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(owner, 0, "the agent's memory can be dumped by its user");
}
