//! The set-up of the process of a daemon that feeds a watchdog.

use std::os::fd::AsFd;

use log::LevelFilter;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::logging;

/// Blocks SIGTERM, SIGINT and SIGHUP, and returns a descriptor from which the caller reads them. Must be called before a thread starts.
#[expect(clippy::disallowed_methods, reason = "a daemon's own main calls it")]
pub(crate) fn take_signals() -> nix::Result<SignalFd> {
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect();
    signals.thread_block()?;
    SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// Reads the pending signals. Returns whether one asks the daemon to end. SIGHUP does not.
pub(crate) fn is_asked_to_end(signals: &SignalFd) -> bool {
    let mut is_asked = false;
    while let Ok(Some(signal)) = signals.read_signal() {
        let number = i32::try_from(signal.ssi_signo).unwrap_or_default();
        is_asked |= [Signal::SIGTERM as i32, Signal::SIGINT as i32].contains(&number);
    }
    is_asked
}

/// Waits, in a thread that does nothing else, until a signal asks the daemon to end.
pub(crate) fn wait_for_end(signals: &SignalFd) -> nix::Result<()> {
    loop {
        match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
            Ok(_) if is_asked_to_end(signals) => return Ok(()),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Locks the process in memory. Reading a page from disk could take longer than the watchdog's time-out.
pub(crate) fn lock_memory() {
    if let Err(errno) = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE) {
        log::warn!("memory is not locked: {errno}");
    }
}

/// Makes a panic of any thread end the process at once. The kernel then closes the watchdog device without `V`, and the machine resets.
pub(crate) fn abort_at_a_panic() {
    std::panic::set_hook(Box::new(|panic| {
        log::error!("a bug ends this program, and the machine resets: {panic}");
        std::process::abort();
    }));
}

/// Configures the log of the program `tag`, which goes to syslog (the journal). If `has_journal` is false, the log also goes to stderr.
pub(crate) fn start_logging(tag: &str, has_journal: bool) {
    logging::init(logging::Settings {
        tag: tag.to_owned(),
        stderr: if has_journal { LevelFilter::Off } else { LevelFilter::Info },
        syslog: LevelFilter::Info,
        file: None,
    });
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// The environment variable that makes the test panic. The test sets it in a second process of the same test program.
    const PANICS: &str = "TANDEM_WATCHDOG_PANICS";

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test is started again, to see how it ends")]
    fn a_panic_of_any_thread_aborts() {
        if std::env::var_os(PANICS).is_some() {
            abort_at_a_panic();
            let _ = std::thread::spawn(|| panic!("a thread that nothing waits for")).join();
            return;
        }
        let name = "os::daemon::tests::a_panic_of_any_thread_aborts";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = again.args(["--exact", name, "--nocapture"]).env(PANICS, "1").output().unwrap();
        assert_eq!(ended.status.signal(), Some(Signal::SIGABRT as i32), "{ended:?}");
    }
}
