//! Shell scripts that a test installs in place of a program.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::Path;
use std::process::Command;

/// Writes an executable script of `/bin/sh`.
///
/// A separate shell writes it. Otherwise a child that another test forks at this moment would inherit a file that is
/// open for writing. The kernel would then refuse to execute it ("Text file busy").
pub(crate) fn script(path: &Path, body: &str) {
    script_of("/bin/sh", path, body);
}

/// Writes an executable script of `interpreter`, as [`script`] does.
#[allow(clippy::disallowed_methods, reason = "a test's own shell ends at once")]
pub(crate) fn script_of(interpreter: &str, path: &Path, body: &str) {
    let write = "printf '#!%s\\n%s\\n' \"$1\" \"$2\" > \"$3\" && chmod 755 \"$3\"";
    let written = Command::new("sh").args(["-c", write, "write", interpreter, body]).arg(path).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
}
