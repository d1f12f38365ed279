//! Outside programs, and the error type of the whole lab.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// An error as a sentence for the operator, because no caller in the lab distinguishes errors.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;

/// The result of a program.
#[derive(Debug)]
pub struct Output {
    pub ok: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Returns both outputs, for messages and for searches.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs `command` to its end, and returns its output, whatever its exit code.
pub fn output(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot run {program}: {error}"))?;
    Ok(Output {
        ok: done.status.success(),
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
    })
}

/// Runs `command`, and returns its output. A non-zero exit code is an error that contains the output.
pub fn must(command: &mut Command) -> Result<String> {
    let done = output(command)?;
    if done.ok {
        return Ok(done.stdout);
    }
    Err(format!("{} failed: {}", describe(command), done.text().trim()).into())
}

/// Removes the variables that cargo sets for a test of a package. ring's build script treats them as a change, so that
/// all dependencies would be rebuilt, and rebuilt again by the next build of the user.
pub fn without_package(command: &mut Command) -> &mut Command {
    let of_a_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_a_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs `program args` as [`must`] does.
pub fn run<A: AsRef<OsStr>>(program: &str, args: &[A]) -> Result<String> {
    must(Command::new(program).args(args))
}

/// Runs `command` with `input` on its standard input.
pub fn feed(command: &mut Command, input: &str) -> Result<String> {
    let what = describe(command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run {what}: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let done = child.wait_with_output()?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(format!("{what} failed: {}", String::from_utf8_lossy(&done.stderr).trim()).into())
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Writes a whole file. The error names the path.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, content).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// Makes a directory and all above it.
pub fn make_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()).into())
}

/// The factor by which all waits are longer than on a host of namespaces.
static SLOWER: AtomicU32 = AtomicU32::new(1);

/// Sets the factor for the rest of this process.
pub fn wait_longer(times: u32) {
    SLOWER.store(times, Ordering::Relaxed);
}

/// Returns a limit, stretched for this lab's hosts.
pub fn patience(limit: Duration) -> Duration {
    limit * SLOWER.load(Ordering::Relaxed)
}

/// Divides a limit by the factor, for limits that must not be stretched.
pub fn unstretched(limit: Duration) -> Duration {
    limit / SLOWER.load(Ordering::Relaxed)
}

/// Calls `question` every `pause` until it returns an answer, at most `limit`. Ctrl-C ends the wait.
pub fn wait_for<T>(what: &str, limit: Duration, pause: Duration, mut question: impl FnMut() -> Option<T>) -> Result<T> {
    let began = Instant::now();
    let limit = patience(limit);
    loop {
        if let Some(answer) = question() {
            return Ok(answer);
        }
        crate::interrupt::check()?;
        if began.elapsed() >= limit {
            return Err(format!("waited {} s in vain for {what}", limit.as_secs()).into());
        }
        thread::sleep(pause);
    }
}

/// Waits as [`wait_for`] does, but ignores Ctrl-C, for a teardown. Returns whether the condition became true.
pub fn wait_for_quietly(limit: Duration, pause: Duration, mut question: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !question() {
        if began.elapsed() >= limit {
            return false;
        }
        thread::sleep(pause);
    }
    true
}
