//! Runs outside programs, and the error type that the whole lab uses.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A sentence for a person: the lab has no caller that would tell errors apart.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;

/// What a program left behind.
#[derive(Debug)]
pub struct Output {
    pub ok: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Everything that it said, for messages and for searching.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs `command` to its end and answers what it said, whatever its exit code.
pub fn output(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot run {program}: {error}"))?;
    Ok(Output {
        ok: done.status.success(),
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
    })
}

/// Runs `command` and answers its output; a non-zero exit code is an error that carries what it said.
pub fn must(command: &mut Command) -> Result<String> {
    let done = output(command)?;
    if done.ok {
        return Ok(done.stdout);
    }
    Err(format!("{} failed: {}", describe(command), done.text().trim()).into())
}

/// As a user would start it, who builds something: without what cargo tells a test of its package. To ring's build script that is a
/// change, so all dependencies would be built once more, and again by whoever builds next.
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

/// Writes a whole file, with a sentence where that fails.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, content).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// Makes a directory and all above it.
pub fn make_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()).into())
}

/// How many times longer than on a host of namespaces everything is waited for.
static SLOWER: AtomicU32 = AtomicU32::new(1);

/// Says so, for all that this process does from now on.
pub fn wait_longer(times: u32) {
    SLOWER.store(times, Ordering::Relaxed);
}

/// A limit, as long as this lab's hosts need it.
pub fn patience(limit: Duration) -> Duration {
    limit * SLOWER.load(Ordering::Relaxed)
}

/// What must not be stretched, before it is.
pub fn unstretched(limit: Duration) -> Duration {
    limit / SLOWER.load(Ordering::Relaxed)
}

/// Asks `question` every `pause` until it answers something, at most `limit`. Ctrl-C ends the wait.
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

/// As [`wait_for`], deaf to Ctrl-C: for tearing down. Answers whether it came true.
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
