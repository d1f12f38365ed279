//! The only place that starts another program: by an absolute path, without a shell, with a small environment, captured output
//! and a time-out. After the time-out the child and all processes that it started are killed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use zeroize::Zeroizing;

use crate::adapters::pace::{Limit, Pace};
use crate::os::clock::{self, Deadline};

/// The directories in which programs are looked for. `PATH` is ignored, so that no other program can take a program's place.
const DIRECTORIES: &[&str] = &["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// The environment variables that a started program receives from this process. All others are removed.
const KEPT_VARIABLES: &[&str] =
    &["HOME", "TMPDIR", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "CIB_file", "LANG", "INVOCATION_ID"];
/// The number of bytes of a program's output that are kept. The rest is read and dropped.
const OUTPUT_LIMIT: usize = 8 * 1024 * 1024;
/// The number of bytes that are kept of an output that is a secret.
const SECRET_LIMIT: usize = 64 * 1024;
/// The time to wait for the end of a program's output after the program has ended.
const PIPE_PATIENCE: Duration = Duration::from_secs(2);

/// The exit code and the output of a program that has ended.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code of the program. If a signal ended it, 128 + the signal's number.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Returns the program's own error text: the last line of stderr that is not blank, or else of stdout.
    pub fn complaint(&self) -> &str {
        [&self.stderr, &self.stdout]
            .into_iter()
            .find_map(|text| text.lines().rev().map(str::trim).find(|line| !line.is_empty()))
            .unwrap_or("it said nothing")
    }
}

/// The reason why a program could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{program} is not installed (looked in {looked_in})")]
    NotInstalled { program: String, looked_in: String },
    #[error("{program} could not be started: {source}")]
    Spawn { program: String, source: std::io::Error },
    #[error("{program} gave no answer within {seconds:.1} s and was killed")]
    TimedOut { program: String, seconds: f64 },
}

impl Error {
    /// Returns whether the program exceeded its time limit.
    pub fn is_too_late(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}

/// The means to run other programs within one action or one command: where they are, their time limits, and their environment.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The directories in which a program is looked for, in this order.
    directories: Vec<PathBuf>,
    /// The time limits of programs, with the deadline of the action if there is one.
    pace: Arc<Pace>,
    /// True if programs write times in UTC, whatever this machine's time zone is.
    in_utc: bool,
    /// A further environment variable that started programs receive from this process; `None` if there is none.
    sees: Option<&'static str>,
}

impl Default for Programs {
    /// Returns a `Programs` without a deadline.
    fn default() -> Self {
        Self {
            directories: DIRECTORIES.iter().map(PathBuf::from).collect(),
            pace: Arc::default(),
            in_utc: false,
            sees: None,
        }
    }
}

impl Programs {
    /// Returns a `Programs` for an action that ends at `end`. No program outlasts the action.
    #[must_use]
    pub fn until(self, end: Deadline) -> Self {
        self.paced(Pace::until(end))
    }

    /// Returns this `Programs` with the time limits of `pace`, which follow from the measured speed of the machine.
    #[must_use]
    pub fn paced(self, pace: Pace) -> Self {
        Self { pace: Arc::new(pace), ..self }
    }

    /// Returns this `Programs` with UTC as the time zone of each program, because some print no time zone.
    #[must_use]
    pub fn in_utc(self) -> Self {
        Self { in_utc: true, ..self }
    }

    /// Returns this `Programs`, with each program also receiving the environment variable `name` of this process.
    #[must_use]
    pub fn letting_see(self, name: &'static str) -> Self {
        Self { sees: Some(name), ..self }
    }

    /// Returns the time limits of the programs.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Returns this `Programs` with `directory` searched first, so that a test can replace programs.
    #[must_use]
    pub fn with_fakes(mut self, directory: PathBuf) -> Self {
        self.directories.insert(0, directory);
        self
    }

    /// Runs `program` with `args`, and waits until it has ended. After `limit` the program and its children are killed.
    pub fn run<A: AsRef<OsStr>>(&self, program: &str, args: &[A], limit: impl Into<Limit>) -> Result<Output, Error> {
        self.run_with_input(program, args, &[], limit)
    }

    /// Runs a program as [`run`](Self::run) does, with `input` on its standard input.
    pub fn run_with_input<A: AsRef<OsStr>>(
        &self,
        program: &str,
        args: &[A],
        input: &[u8],
        limit: impl Into<Limit>,
    ) -> Result<Output, Error> {
        let child = self.spawn(program, args, Stdio::piped())?;
        self.finish(program, child, input, limit.into(), &PLAIN).map(Output::from)
    }

    /// Runs a program as [`run_with_input`](Self::run_with_input) does. Keeps the program's standard input open while `goes_on` returns
    /// true, and writes an empty line to it after each such call. The input is a pipe of which only this process has the other end. So the
    /// kernel closes it when this process ends for any reason.
    pub fn run_with_held_input<A: AsRef<OsStr>>(
        &self,
        program: &str,
        args: &[A],
        input: Zeroizing<Vec<u8>>,
        mut goes_on: impl FnMut() -> bool + Send + 'static,
        limit: impl Into<Limit>,
    ) -> Result<Output, Error> {
        let mut child = self.spawn(program, args, Stdio::piped())?;
        if let Some(mut stdin) = child.stdin.take() {
            // The thread ends at its next line after the program has ended.
            std::thread::spawn(move || {
                let mut is_read = stdin.write_all(&input).is_ok();
                while is_read && goes_on() {
                    is_read = stdin.write_all(b"\n").is_ok();
                }
            });
        }
        self.finish(program, child, &[], limit.into(), &PLAIN).map(Output::from)
    }

    /// Runs a program that prints a secret, as [`run`](Self::run) does. Returns the exit code and the output, which is
    /// overwritten when it is dropped.
    pub fn run_for_secret<A: AsRef<OsStr>>(
        &self,
        program: &str,
        args: &[A],
        timeout: Duration,
    ) -> Result<(i32, Zeroizing<Vec<u8>>), Error> {
        let child = self.spawn(program, args, Stdio::piped())?;
        self.finish(program, child, &[], timeout.into(), &SECRET).map(|said| (said.code, said.stdout))
    }

    /// Runs a program as [`run`](Self::run) does, with `file` as its standard input. Processes that the program leaves running do
    /// not inherit standard input, so they do not hold `file`.
    pub fn run_holding<A: AsRef<OsStr>>(
        &self,
        program: &str,
        args: &[A],
        file: File,
        limit: impl Into<Limit>,
    ) -> Result<Output, Error> {
        let child = self.spawn(program, args, file.into())?;
        self.finish(program, child, &[], limit.into(), &PLAIN).map(Output::from)
    }

    /// Returns the full path of `program`; `None` if it is not installed.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        self.directories.iter().map(|directory| directory.join(program)).find(|path| path.is_file())
    }

    /// Replaces this process by `program`, which takes over this process' streams, terminal, signals and exit code. `variables`
    /// are added to the environment. Returns only if the program cannot be started.
    pub fn become_it<A: AsRef<OsStr>>(&self, program: &str, args: &[A], variables: &[(&str, String)]) -> Error {
        let variables = variables.iter().map(|(name, value)| (name, value));
        match self.command(program, args) {
            Ok(mut command) => Error::Spawn { program: program.to_owned(), source: command.envs(variables).exec() },
            Err(error) => error,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the function that the rule points to")]
    fn command<A: AsRef<OsStr>>(&self, program: &str, args: &[A]) -> Result<Command, Error> {
        let path = self.find(program).ok_or_else(|| self.is_missing(program))?;
        let kept = KEPT_VARIABLES.iter().copied().chain(self.sees);
        let kept = kept.filter_map(|name| std::env::var_os(name).map(|value| (name, value)));
        let mut command = Command::new(path);
        command.args(args).env_clear().env("PATH", DIRECTORIES.join(":")).envs(kept);
        command.envs(self.in_utc.then_some(("TZ", "UTC")));
        Ok(command)
    }

    fn spawn<A: AsRef<OsStr>>(&self, program: &str, args: &[A], stdin: Stdio) -> Result<Child, Error> {
        self.command(program, args)?
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The child has its own process group, so that a time-out also ends its children.
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Spawn { program: program.to_owned(), source })
    }

    fn is_missing(&self, program: &str) -> Error {
        let directories: Vec<_> = self.directories.iter().map(|directory| directory.display().to_string()).collect();
        Error::NotInstalled { program: program.to_owned(), looked_in: directories.join(", ") }
    }

    fn finish(&self, program: &str, mut child: Child, input: &[u8], limit: Limit, room: &Room) -> Result<Said, Error> {
        let stdout = drain(child.stdout.take(), room);
        let stderr = drain(child.stderr.take(), room);
        if let Some(mut stdin) = child.stdin.take() {
            // A program may ignore its input without being wrong. Its exit code shows the result.
            let _ = stdin.write_all(input);
        }
        let code = self.pace.within(limit, |timeout| wait(program, &mut child, timeout), Error::is_too_late)?;
        let patience = Deadline::after(PIPE_PATIENCE);
        Ok(Said { code, stdout: collect(stdout, patience), stderr: collect(stderr, patience) })
    }
}

/// The sizes in bytes of a buffer for a program's output.
struct Room {
    /// The initial size of the buffer in bytes. A buffer for a secret must not grow, because growing leaves copies in memory.
    at_once: usize,
    /// The greatest size of the buffer in bytes. The rest of the output is read and dropped.
    at_most: usize,
}

const PLAIN: Room = Room { at_once: 0, at_most: OUTPUT_LIMIT };
const SECRET: Room = Room { at_once: SECRET_LIMIT, at_most: SECRET_LIMIT };

/// The exit code and the output of a program that has ended, as bytes.
struct Said {
    code: i32,
    stdout: Zeroizing<Vec<u8>>,
    stderr: Zeroizing<Vec<u8>>,
}

impl From<Said> for Output {
    fn from(said: Said) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: said.code, stdout: text(&said.stdout), stderr: text(&said.stderr) }
    }
}

/// A thread that reads a program's output from a pipe, and the bytes that it has read so far.
struct Reader {
    thread: JoinHandle<()>,
    kept: Arc<Mutex<Zeroizing<Vec<u8>>>>,
}

fn drain(pipe: Option<impl Read + Send + 'static>, room: &Room) -> Option<Reader> {
    pipe.map(|mut pipe| {
        let kept = Arc::new(Mutex::new(Zeroizing::new(Vec::with_capacity(room.at_once))));
        let keep = Arc::clone(&kept);
        let mut room = room.at_most;
        let thread = std::thread::spawn(move || {
            let mut chunk = Zeroizing::new([0; 16 * 1024]);
            loop {
                match pipe.read(&mut *chunk) {
                    Ok(0) => return,
                    Ok(count) => {
                        let count = count.min(room);
                        room -= count;
                        let fresh = chunk.get(..count).unwrap_or_default();
                        keep.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(fresh);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Reader { thread, kept }
    })
}

/// Returns the output that was read. Waits for the end of the pipe until `patience` at most. A process that the program left running
/// (conmon, an ssh agent) may hold the pipe open forever. The program's own output is in the pipe already, because the program has ended.
fn collect(reader: Option<Reader>, patience: Deadline) -> Zeroizing<Vec<u8>> {
    let Some(reader) = reader else { return Zeroizing::default() };
    while !reader.thread.is_finished() && !patience.has_passed() {
        clock::sleep(Duration::from_millis(5));
    }
    std::mem::take(&mut *reader.kept.lock().unwrap_or_else(PoisonError::into_inner))
}

fn wait(program: &str, child: &mut Child, timeout: Duration) -> Result<i32, Error> {
    let deadline = Deadline::after(timeout);
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(exit_code(status)),
            Ok(None) if deadline.has_passed() => {
                kill_group(child);
                return Err(Error::TimedOut { program: program.to_owned(), seconds: timeout.as_secs_f64() });
            }
            Ok(None) => {
                deadline.sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Err(source) => return Err(Error::Spawn { program: program.to_owned(), source }),
        }
    }
}

fn kill_group(child: &mut Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
    let _ = child.wait();
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

#[cfg(test)]
#[path = "../../tests/support/executable.rs"]
mod executable;

/// Writes a shell script in place of `program`, for failures that the real program cannot be made to have.
#[cfg(test)]
pub(crate) fn fake_program(directory: &std::path::Path, program: &str, script: &str) -> Programs {
    executable::script(&directory.join(program), script);
    Programs::default().with_fakes(directory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(script: &str) -> Output {
        let dir = tempfile::tempdir().unwrap();
        let programs = fake_program(dir.path(), "teller", script);
        programs.run("teller", &[] as &[&str], Duration::from_secs(30)).unwrap()
    }

    #[test]
    fn what_a_program_said_is_known_whoever_holds_its_pipes() {
        let began = Deadline::after(Duration::from_secs(60));
        let said = output("sleep 20 & echo out; echo err >&2; exit 3");
        assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (3, "out\n", "err\n"));
        assert!(began.elapsed() < Duration::from_secs(4), "one patience for both: {:?}", began.elapsed());
    }

    #[test]
    fn times_are_in_utc_where_that_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let programs = fake_program(dir.path(), "teller", "echo \"${TZ-unset}\"");
        let said =
            |programs: &Programs| programs.run("teller", &[] as &[&str], Duration::from_secs(30)).unwrap().stdout;
        assert_eq!((said(&programs), said(&programs.clone().in_utc())), ("unset\n".to_owned(), "UTC\n".to_owned()));
    }

    #[test]
    fn an_input_that_is_held_ends_with_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let programs = fake_program(dir.path(), "teller", "cat; echo end");
        let mut lines = 2;
        let goes_on = move || {
            lines -= 1;
            lines >= 0
        };
        let input = Zeroizing::new(b"content\n".to_vec());
        let said = programs.run_with_held_input("teller", &[] as &[&str], input, goes_on, Duration::from_secs(30));
        assert_eq!(said.unwrap().stdout, "content\n\n\nend\n");
    }

    #[test]
    fn a_variable_is_seen_where_that_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let programs = fake_program(dir.path(), "teller", "echo \"${CARGO_PKG_NAME-unset}\"");
        let said =
            |programs: &Programs| programs.run("teller", &[] as &[&str], Duration::from_secs(30)).unwrap().stdout;
        assert_eq!(said(&programs), "unset\n");
        assert_eq!(said(&programs.clone().letting_see("CARGO_PKG_NAME")), "tandem\n");
    }

    #[test]
    fn what_is_too_much_is_read_and_dropped() {
        let said = output("head --bytes 9000000 /dev/zero; echo end >&2");
        assert_eq!((said.code, said.stdout.len(), said.stderr.as_str()), (0, OUTPUT_LIMIT, "end\n"));
    }

    #[test]
    fn no_program_outlasts_its_own_action_and_no_other_one_ends_it() {
        let began = Deadline::after(Duration::from_secs(60));
        let in_action = |seconds| Programs::default().until(Deadline::after(Duration::from_secs_f32(seconds)));
        let sleeps = |programs: &Programs, seconds: &str| programs.run("sleep", &[seconds], Duration::from_secs(30));
        let ended = std::thread::scope(|scope| {
            let short = scope.spawn(|| sleeps(&in_action(0.2), "30"));
            let long = scope.spawn(|| sleeps(&in_action(20.0), "1"));
            [short.join().unwrap().is_ok(), long.join().unwrap().is_ok()]
        });
        assert_eq!(ended, [false, true]);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_where_it_was_looked_for() {
        let error = Programs::default().run("no-such-program", &[] as &[&str], Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.to_string(), "no-such-program is not installed (looked in /usr/sbin, /usr/bin, /sbin, /bin)");
    }
}
