//! A test in namespaces of its own. This program is started again inside them for that one test, and all of its
//! processes end with their first one. Needs root.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// The environment variable that is set if a test program runs inside the namespaces.
const INSIDE: &str = "TANDEM_INSIDE";

/// The lock that lets one test at a time run in namespaces. Two at once would only slow each other down.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[expect(clippy::disallowed_methods, reason = "the tests start the binary and its surroundings as a user would")]
pub(crate) fn program(path: impl AsRef<Path>) -> Command {
    Command::new(path.as_ref())
}

/// Runs `inner` in fresh mount, network, PID and IPC namespaces, for `seconds` at most. `name` is the name of the calling
/// test, and `module` the path of its module.
pub(crate) fn run(module: &str, name: &str, seconds: u32, inner: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return inner();
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    assert!(nix::unistd::Uid::effective().is_root(), "this test needs root");
    let seconds = seconds.to_string();
    // The first part of the path is this program's own name.
    let name = module.split_once("::").map_or_else(|| name.to_owned(), |(_, module)| format!("{module}::{name}"));
    let output = program("/usr/bin/timeout")
        .args(["-k", "5", &seconds, "unshare", "--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child"])
        .arg("--mount-proc")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture", "--include-ignored", "--test-threads=1"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    // The output contains a measurement's figures, which cargo shows on request.
    print!("{text}");
}
