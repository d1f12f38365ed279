//! Runs of the built agent as its callers start it, each within a time limit.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::Server;

/// The time limit of one call of the fence agent. A call that takes longer is killed, and its test fails.
const BOUND: Duration = Duration::from_secs(75);

/// The result of a call of the fence agent.
#[derive(Clone, Debug)]
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
    /// The largest memory use of the agent that was observed, in KiB.
    pub peak: u64,
}

impl Output {
    /// Returns the single sentence on stderr with which the agent failed.
    pub fn sentence(&self) -> &str {
        let line = self.stderr.strip_suffix('\n').unwrap_or(&self.stderr);
        assert!(!line.contains('\n'), "more than one line on stderr: {}", self.stderr);
        line.strip_prefix("fence_redfish_rs: ERROR: Failed: ").unwrap_or_else(|| panic!("no failure: {self:?}"))
    }

    /// Asserts that the agent succeeded with exactly this output, and nothing on stderr.
    #[track_caller]
    pub fn succeeds(&self, stdout: &str) -> &Self {
        assert_eq!((self.code, self.stdout.trim_end(), self.stderr.as_str()), (0, stdout, ""), "{self:?}");
        self
    }

    /// Asserts that the agent failed with one sentence that contains all of `words`, and nothing on stdout.
    #[track_caller]
    pub fn fails(&self, words: &[&str]) -> &Self {
        assert_eq!((self.code, self.stdout.as_str()), (1, ""), "{self:?}");
        for word in words {
            assert!(self.sentence().contains(word), "no '{word}' in: {}", self.stderr);
        }
        self
    }

    #[track_caller]
    pub fn within(&self, least: f64, most: f64) -> &Self {
        let took = self.took.as_secs_f64();
        assert!((least..=most).contains(&took), "took {took:.2} s, not {least} to {most}: {self:?}");
        self
    }
}

/// A call of the fence agent, with its options and its environment.
#[derive(Clone, Debug, Default)]
pub struct Call {
    options: Vec<(String, Vec<u8>)>,
    environment: Vec<(String, String)>,
}

impl Call {
    /// Returns a call against `server` with all required options. The agent trusts the authority of the server's
    /// certificate.
    pub fn new(server: &Server, action: &str) -> Self {
        let ca_file = server.authority.file();
        Self::bare(action)
            .set("ip", server.address)
            .set("ipport", &server.port.to_string())
            .set("username", "admin")
            .set("password", "s3cret-pass")
            .set("ssl_ca_file", ca_file.to_str().unwrap())
    }

    pub fn bare(action: &str) -> Self {
        Self::default().set("action", action)
    }

    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.options.retain(|(known, _)| known != name);
        self.options.push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    pub fn bytes(mut self, name: &str, value: &[u8]) -> Self {
        self.options.retain(|(known, _)| known != name);
        self.options.push((name.to_owned(), value.to_vec()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.options.retain(|(known, _)| known != name);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds the environment variable with which Pacemaker's fencer starts the agent.
    pub fn under_fencer(self) -> Self {
        self.env("PCMK_service", "pacemaker-fenced")
    }

    /// Runs the agent to its end, with the options on standard input.
    pub fn run(&self) -> Output {
        self.with_input(&self.input())
    }

    /// Returns the options as the lines that the agent reads from standard input.
    pub fn input(&self) -> Vec<u8> {
        let line = |(name, value): &(String, Vec<u8>)| [name.as_bytes(), b"=", value, b"\n"].concat();
        self.options.iter().flat_map(line).collect()
    }

    /// Runs the agent to its end, with `input` on standard input instead of the options.
    pub fn with_input(&self, input: &[u8]) -> Output {
        let mut child = spawn(&[] as &[&str], &self.environment);
        child.stdin.take().unwrap().write_all(input).unwrap_or_default();
        finish(child)
    }

    /// Runs the agent to its end, with the options on the command line.
    pub fn run_as_arguments(&self) -> Output {
        use std::os::unix::ffi::OsStrExt as _;
        let mut arguments: Vec<std::ffi::OsString> = Vec::new();
        for (name, value) in &self.options {
            arguments.push(format!("--{}", name.replace('_', "-")).into());
            arguments.push(OsStr::from_bytes(value).to_owned());
        }
        self.with_arguments(&arguments)
    }

    pub fn with_arguments(&self, arguments: &[impl AsRef<OsStr>]) -> Output {
        let mut child = spawn(arguments, &self.environment);
        drop(child.stdin.take());
        finish(child)
    }

    /// Starts the agent with the options on standard input, and does not wait for its end.
    pub fn start(&self) -> Child {
        let mut child = spawn(&[] as &[&str], &self.environment);
        child.stdin.take().unwrap().write_all(&self.input()).unwrap();
        child
    }
}

/// Returns the path of a link to the built binary. The link has the name of the fence agent.
pub fn program() -> PathBuf {
    static LINK: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, link) = LINK.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("fence_redfish_rs");
        symlink(env!("CARGO_BIN_EXE_tandem"), &link).unwrap();
        (directory, link)
    });
    link.clone()
}

#[expect(clippy::disallowed_methods, reason = "a test starts the program under test itself")]
pub fn command() -> Command {
    Command::new(program())
}

fn spawn(arguments: &[impl AsRef<OsStr>], environment: &[(String, String)]) -> Child {
    command()
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until a started agent ends, and kills it after [`BOUND`].
pub fn finish(mut child: Child) -> Output {
    let began = Instant::now();
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let own_directory = format!("/proc/{}", child.id());
    let mut peak = 0;
    let status = loop {
        peak = peak.max(high_water(&own_directory));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > BOUND {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the agent did not end within {BOUND:?}");
        }
        tandem::os::clock::sleep(Duration::from_millis(2));
    };
    let took = began.elapsed();
    Output {
        code: status.code().unwrap_or(-1),
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
        took,
        peak,
    }
}

/// Returns the largest memory use of a child in KiB, from its directory in `/proc`. A child that still runs this
/// process's program counts as 0, because the kernel lets the parent continue shortly before `exec` has
/// replaced the child's memory and program.
fn high_water(directory: &str) -> u64 {
    let program_of = |directory: &str| std::fs::read_link(format!("{directory}/exe")).ok();
    if program_of(directory) == program_of("/proc/self") {
        return 0;
    }
    let status = std::fs::read_to_string(format!("{directory}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        pipe.map(|mut pipe| pipe.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    })
}
