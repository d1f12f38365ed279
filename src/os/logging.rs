//! Where the agents' words go: syslog for the journal, stderr for whoever runs them, and Pacemaker's log file where
//! it names one. Messages never hold a secret; that is the business of whoever makes them.

use std::io::Write;
use std::sync::Mutex;

use log::{Level, LevelFilter, Log, Metadata, Record};
use syslog::{Facility, Formatter3164};

use super::isolated::caught;

/// How an applet logs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name in front of each message, e.g. `podman-etcd(etcd)`.
    pub tag: String,
    /// Whether messages go to stderr, and from which level on. Pacemaker logs what an agent writes there.
    pub stderr: LevelFilter,
    /// Whether messages go to syslog, and from which level on.
    pub syslog: LevelFilter,
    /// A file that Pacemaker asks its agents to append to (`HA_LOGFILE`).
    pub file: Option<std::path::PathBuf>,
}

type Syslog = syslog::Logger<syslog::LoggerBackend, Formatter3164>;

struct Targets {
    settings: Settings,
    /// Absent where no syslog socket answers; stderr remains.
    syslog: Option<Mutex<Syslog>>,
}

/// Sets up logging for the life of this process, in an applet's own main. A second call changes nothing.
#[expect(clippy::disallowed_methods, reason = "this is the function that the rule points to")]
pub fn init(settings: Settings) {
    let formatter = Formatter3164 {
        facility: Facility::LOG_DAEMON,
        hostname: None,
        process: settings.tag.clone(),
        pid: std::process::id(),
    };
    let syslog = (settings.syslog > LevelFilter::Off).then(|| syslog::unix(formatter).ok()).flatten().map(Mutex::new);
    let highest = settings.stderr.max(settings.syslog);
    if log::set_boxed_logger(Box::new(Targets { settings, syslog })).is_ok() {
        log::set_max_level(highest);
    }
}

impl Log for Targets {
    /// Only our own words: libraries that log through the same facade are not what an operator asked for.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tandem")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // A panic in a message's own formatting must not end what logs it, and another line may meet the same one.
            let _ = caught(|| self.write(record));
        }
    }

    fn flush(&self) {}
}

impl Targets {
    fn write(&self, record: &Record<'_>) {
        let text = record.args().to_string();
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
        let _ = match level {
            Level::Error => syslog.err(line),
            Level::Warn => syslog.warning(line),
            Level::Info => syslog.info(line),
            Level::Debug | Level::Trace => syslog.debug(line),
        };
    }

    fn to_file(&self, level: Level, text: &str) {
        let Some(path) = &self.settings.file else { return };
        if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
            let _ = writeln!(file, "{}[{}]:    {}: {text}", self.settings.tag, std::process::id(), word(level));
        }
    }
}

/// The words that Pacemaker's own agents use, since people and tools search for them.
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
    fn the_first_call_stands() {
        let settings = |stderr| Settings { tag: "test".to_owned(), stderr, syslog: LevelFilter::Off, file: None };
        init(settings(LevelFilter::Off));
        init(settings(LevelFilter::Debug));
        assert_eq!(log::max_level(), LevelFilter::Off);
    }
}
