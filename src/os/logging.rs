//! The log of the agents: syslog for the journal, stderr for the caller, and Pacemaker's log file where it names one. The code
//! that creates a message leaves secrets out. Each message is one clean line, and none of the three can delay the program for
//! long.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use log::{Level, LevelFilter, Log, Metadata, Record};
use syslog::{Facility, Formatter3164, LoggerBackend};

use super::appended;
use super::isolated::caught;
use crate::base::printable;

/// The time that a log line waits for a syslog daemon that accepts no more lines. Once a line was lost, later lines do not wait.
const PATIENCE: Duration = Duration::from_millis(500);
/// The mode of the log file. Pacemaker's group reads the file.
const FILE_MODE: u32 = 0o640;

/// The settings of a program's log.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name in front of each line, such as `podman-etcd(etcd)`.
    pub tag: String,
    /// The least severe level that is logged to stderr. Pacemaker copies an agent's stderr to its own log.
    pub stderr: LevelFilter,
    /// The least severe level that is logged to syslog and to the file.
    pub syslog: LevelFilter,
    /// The file to which Pacemaker asks its agents to append (`HA_LOGFILE`); `None` if there is none.
    pub file: Option<std::path::PathBuf>,
}

/// A connection to this machine's syslog, which may be the journal.
pub(crate) type Syslog = syslog::Logger<LoggerBackend, Formatter3164>;

struct Targets {
    settings: Settings,
    /// The connection to syslog; `None` if no syslog socket answers. The log then goes only to stderr and to the file.
    syslog: Option<Mutex<Syslog>>,
    /// The log file; `None` if none is configured, or if it cannot be opened.
    file: Option<Mutex<File>>,
}

/// Configures the log of this process. Only a program's own main function calls it. A second call changes nothing.
#[expect(clippy::disallowed_methods, reason = "this is the function that the rule points to")]
pub fn init(settings: Settings) {
    let is_wanted = settings.syslog > LevelFilter::Off;
    let syslog = is_wanted.then(|| syslog_as(&settings.tag).ok()).flatten().map(Mutex::new);
    let opened = settings.file.as_ref().filter(|_| is_wanted).map(|path| appended::open(path, FILE_MODE));
    let (file, failure) = match opened {
        Some(Ok(opened)) => (Some(Mutex::new(opened.file)), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let highest = settings.stderr.max(settings.syslog);
    let path = settings.file.clone().unwrap_or_default();
    if log::set_boxed_logger(Box::new(Targets { settings, syslog, file })).is_ok() {
        log::set_max_level(highest);
        if let Some(error) = failure {
            log::debug!("the log file {} cannot be opened: {error}", path.display());
        }
    }
}

/// Connects to syslog, for log lines of the program `tag`.
pub(crate) fn syslog_as(tag: &str) -> Result<Syslog, syslog::Error> {
    let (process, pid) = (tag.to_owned(), std::process::id());
    let logger = syslog::unix(Formatter3164 { facility: Facility::LOG_DAEMON, hostname: None, process, pid })?;
    // A daemon that hangs fills its socket's queue. Without a time-out the next line would wait until the daemon continues.
    let _ = match &logger.backend {
        LoggerBackend::Unix(socket) => socket.set_write_timeout(Some(PATIENCE)),
        LoggerBackend::UnixStream(stream) => stream.get_ref().set_write_timeout(Some(PATIENCE)),
        LoggerBackend::Udp(..) | LoggerBackend::Tcp(_) => Ok(()),
    };
    Ok(logger)
}

impl Log for Targets {
    /// Accepts only log lines of this program. Lines of libraries are of no interest to the operator.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tandem")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // A panic in a message's own formatting must not end its caller, and a line about it might panic, too.
            let _ = caught(|| self.write(record));
        }
    }

    fn flush(&self) {}
}

impl Targets {
    fn write(&self, record: &Record<'_>) {
        let text = record.args().to_string();
        let text = printable::one_line(&text);
        if record.level() <= self.settings.stderr {
            let _ = writeln!(std::io::stderr(), "{}: {}: {text}", self.settings.tag, word(record.level()));
        }
        if record.level() <= self.settings.syslog {
            self.to_syslog(record.level(), &text);
            self.to_file(record.level(), &text);
        }
    }

    fn to_syslog(&self, level: Level, text: &str) {
        let Some(syslog) = &self.syslog else { return };
        let Ok(mut syslog) = syslog.lock() else { return };
        let line = format!("{}: {text}", word(level));
        let written = match level {
            Level::Error => syslog.err(line),
            Level::Warn => syslog.warning(line),
            Level::Info => syslog.info(line),
            Level::Debug | Level::Trace => syslog.debug(line),
        };
        if written.is_err() {
            let _ = match &syslog.backend {
                LoggerBackend::Unix(socket) => socket.set_nonblocking(true),
                LoggerBackend::UnixStream(stream) => stream.get_ref().set_nonblocking(true),
                LoggerBackend::Udp(..) | LoggerBackend::Tcp(_) => Ok(()),
            };
        }
    }

    fn to_file(&self, level: Level, text: &str) {
        let Some(Ok(mut file)) = self.file.as_ref().map(Mutex::lock) else { return };
        let line = format!("{}[{}]:    {}: {text}\n", self.settings.tag, std::process::id(), word(level));
        let _ = file.write_all(line.as_bytes());
    }
}

/// Returns the word for a level in the log. Pacemaker's own agents log the same words, and people and tools search for them.
fn word(level: Level) -> &'static str {
    match level {
        Level::Error => "ERROR",
        Level::Warn => "WARNING",
        Level::Info => "INFO",
        Level::Debug | Level::Trace => "DEBUG",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_initialization_of_logging_changes_nothing() {
        let settings = |stderr| Settings { tag: "test".to_owned(), stderr, syslog: LevelFilter::Off, file: None };
        init(settings(LevelFilter::Off));
        init(settings(LevelFilter::Debug));
        assert_eq!(log::max_level(), LevelFilter::Off);
    }
}
