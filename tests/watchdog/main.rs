//! `watchdog-mux` with a FIFO in place of the device, from which the test reads each feed. A machine would reset if the
//! bytes stop without a `V`.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as a service manager would")]
#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

mod clients;
mod ends;
mod refusals;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::Pid;

/// The time within which an expected event must happen, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.arg("watchdog-mux").env_remove("JOURNAL_STREAM").env_remove("WATCHDOG_MODULE").stdin(Stdio::null());
    command
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Waits until `is_so` returns true. Fails with the message `what` after [`PATIENCE`].
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// A directory with a FIFO in place of the watchdog device, and with the files of `watchdog-mux`.
struct Place {
    dir: tempfile::TempDir,
    device: File,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("watchdog");
        nix::unistd::mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let device = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(fifo).unwrap();
        Self { dir, device }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("watchdog-mux.sock")
    }

    fn marker(&self) -> PathBuf {
        self.path("watchdog-mux.active")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Runs another command of `watchdog-mux` on this directory, such as `status`.
    fn asked(&self, words: &[&str]) -> Output {
        command().arg("--run-dir").arg(self.dir.path()).args(words).output().unwrap()
    }

    /// Starts `watchdog-mux` in this directory, and waits until it is ready.
    fn start(self, options: &[&str]) -> Mux {
        let ready = UnixDatagram::bind(self.path("notify")).unwrap();
        ready.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut run = command();
        run.arg("--run-dir").arg(self.dir.path()).arg("run").arg("--device").arg(self.path("watchdog")).args(options);
        run.env("NOTIFY_SOCKET", self.path("notify")).stderr(File::create(self.path("log")).unwrap());
        let child = run.spawn().unwrap();
        let mut said = [0; 64];
        let read = ready.recv(&mut said).unwrap_or_else(|error| panic!("not ready: {error}: {}", self.log()));
        assert_eq!(&said[..read], b"READY=1");
        fs::remove_file(self.path("notify")).unwrap();
        Mux { place: Some(self), child }
    }
}

/// A `watchdog-mux` that runs. It is killed when this is dropped.
struct Mux {
    place: Option<Place>,
    child: Child,
}

impl Mux {
    fn place(&self) -> &Place {
        self.place.as_ref().unwrap()
    }

    /// Returns the bytes that were written to the watchdog since the last call of this function.
    fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut chunk = [0; 256];
        let device = &mut self.place.as_mut().unwrap().device;
        while let Ok(count) = device.read(&mut chunk) {
            if count == 0 {
                break;
            }
            bytes.extend_from_slice(&chunk[..count]);
        }
        bytes
    }

    /// Waits until the watchdog is no longer fed. Fails if it is disarmed by a `V`.
    fn must_starve(&mut self) {
        eventually("it is fed on and on", || {
            let found = self.bytes();
            assert!(!found.contains(&b'V'), "disarmed");
            sleep(Duration::from_millis(2_500));
            self.bytes().is_empty()
        });
        sleep(seconds(2));
        assert_eq!(self.bytes(), b"", "fed again: {}", self.place().log());
    }

    /// Waits until the watchdog is fed twice. Fails if anything else is written to it.
    fn must_be_fed(&mut self) {
        self.bytes();
        let mut found = Vec::new();
        eventually("it is not fed", || {
            found.extend(self.bytes());
            found.len() >= 2
        });
        assert!(found.iter().all(|byte| *byte == 0), "{found:?}");
    }

    /// Asserts that the watchdog was fed once in each second since `began`, and that nothing else was written to it.
    fn must_have_been_fed_since(&mut self, began: Instant) {
        let bytes = self.bytes();
        let passed = usize::try_from(began.elapsed().as_secs()).unwrap();
        let expected = passed.saturating_sub(1)..=passed + 2;
        assert!(expected.contains(&bytes.len()) && bytes.iter().all(|byte| *byte == 0), "{passed} s: {bytes:?}");
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.place().socket()).unwrap()
    }

    /// Connects a client to `watchdog-mux`, and waits until the client is served.
    fn client(&self) -> UnixStream {
        let mut client = self.connect();
        client.write_all(b"\0").unwrap();
        eventually("no marker", || self.place().marker().is_dir());
        client
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    fn logs(&self, words: &str) {
        eventually(&format!("not logged: {words}"), || self.place().log().contains(words));
    }

    /// Waits until `watchdog-mux` ends, and returns its exit code; `None` if a signal killed it.
    fn code(&mut self) -> Option<i32> {
        let mut ended = None;
        eventually("it does not end", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code()
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until `watchdog-mux` ends, and asserts that it ends in good order: with code 0, with `V` as the last byte, and
    /// without leaving a file.
    fn must_end_disarmed(mut self) {
        assert_eq!(self.code(), Some(0), "{}", self.place().log());
        let bytes = self.bytes();
        let end = bytes.iter().position(|byte| *byte == b'V');
        assert!(end.is_some_and(|end| end + 1 == bytes.len()), "{bytes:?}");
        for left in ["watchdog-mux.sock", "watchdog-mux.active", "watchdog-mux.json"] {
            assert!(!self.place().path(left).exists(), "{left}");
        }
    }

    /// Kills `watchdog-mux`, and returns its directory.
    fn kill(mut self) -> Place {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.place.take().unwrap()
    }
}

impl Drop for Mux {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a client leave in good order, by a `V`.
fn leave(mut client: UnixStream) {
    client.write_all(b"V").unwrap();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the permission bits of a file.
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}
