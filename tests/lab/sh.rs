//! Outside programs, and the error type of the whole lab.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// An error as a sentence for the operator. It has no variants, because no caller in the lab distinguishes errors.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;

/// The exit code and the outputs of a program that has ended.
#[derive(Debug)]
pub struct Output {
    pub ok: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Returns standard output and standard error as one text, for messages and for searches.
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

/// Removes the environment variables that cargo sets when it runs a package's test. ring's build script would take
/// them for a change. Then cargo would rebuild all dependencies, and rebuild them again at the user's next build.
pub fn without_package(command: &mut Command) -> &mut Command {
    let of_a_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_a_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs `program` with `args`, and returns its output. A non-zero exit code is an error that contains the output.
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

/// Makes a directory and its missing parents.
pub fn make_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()).into())
}

/// The factor by which all waits of this process are stretched. It is 1 for hosts of namespaces, and larger for
/// virtual machines.
static SLOWER: AtomicU32 = AtomicU32::new(1);

/// Sets the factor by which [`patience`] stretches waits, for the rest of this process.
pub fn wait_longer(times: u32) {
    SLOWER.store(times, Ordering::Relaxed);
}

/// Returns `limit` times the factor that [`wait_longer`] has set for slow hosts.
pub fn patience(limit: Duration) -> Duration {
    limit * SLOWER.load(Ordering::Relaxed)
}

/// Divides `limit` by the factor of [`patience`]. [`wait_for`] multiplies its limit by the same factor, so a wait with the result lasts
/// `limit` on any host.
pub fn unstretched(limit: Duration) -> Duration {
    limit / SLOWER.load(Ordering::Relaxed)
}

/// Calls `question` every `pause` until it returns a value. After `limit`, stretched by [`patience`], the wait fails.
/// Ctrl-C also ends it.
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

/// Waits until `question` returns true, and returns whether that happened within `limit`. It ignores Ctrl-C, so that
/// a teardown can use it.
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
