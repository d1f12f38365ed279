//! A test that runs in namespaces of its own: this program is started again inside them, for that one test, and everything
//! in them ends with their first process. Needs root.

use std::process::Stdio;
use std::sync::Mutex;

use crate::program;

/// What tells a test that it runs inside the namespaces already.
const INSIDE: &str = "TANDEM_INSIDE";

/// Two at once would only slow each other down.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs `inner` in fresh mount, network, PID and IPC namespaces, for `seconds` at most; `name` is that of the test that asks.
pub(crate) fn run(name: &str, seconds: u32, inner: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return inner();
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    assert!(nix::unistd::Uid::effective().is_root(), "this test needs root");
    let seconds = seconds.to_string();
    let output = program("/usr/bin/timeout")
        .args(["-k", "5", &seconds, "unshare", "--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child"])
        .arg("--mount-proc")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
