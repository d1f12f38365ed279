//! The thread that writes a daemon's log and syncs the journal. A disk or a journal that hangs delays no other thread.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use crate::adapters::command::Programs;

/// The greatest number of log lines that wait to be written. Further lines are dropped.
const MOST_LINES: usize = 1_024;
/// The time limit of each program that syncs the journal to disk.
const SYNC_TIME: Duration = Duration::from_secs(5);
/// The directory of the journal on disk.
const JOURNAL: &str = "/var/log/journal";
/// The socket of journald. If the socket is missing, log lines do not reach a journal, and nothing is synced.
const JOURNALD: &str = "/run/systemd/journal/socket";
/// The time to wait for the last log lines when the daemon ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Info,
    Warning,
    /// A warning after which the journal is synced to disk, because the machine may reset soon.
    Synced,
}

/// A log line, with its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) weight: Weight,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct Chronicle {
    lines: SyncSender<Line>,
    /// The receiver of a channel without messages. The channel is closed once the last line is written.
    done: Receiver<()>,
}

impl Chronicle {
    pub(crate) fn start(programs: Programs) -> std::io::Result<Self> {
        Self::start_with(Path::new(JOURNALD).exists().then_some(programs))
    }

    /// Starts the thread that writes the log. `programs` sync the journal; if `None`, nothing is synced.
    fn start_with(programs: Option<Programs>) -> std::io::Result<Self> {
        let (lines, waiting) = mpsc::sync_channel::<Line>(MOST_LINES);
        let (is_running, done) = mpsc::channel::<()>();
        std::thread::Builder::new().name("chronicle".to_owned()).spawn(move || {
            while let Ok(first) = waiting.recv() {
                // Many clients may fall silent at once, so one sync covers all waiting lines.
                let batch: Vec<Line> = std::iter::once(first).chain(waiting.try_iter()).collect();
                batch.iter().for_each(write);
                if let Some(programs) = &programs
                    && batch.iter().any(|line| line.weight == Weight::Synced)
                {
                    sync(programs);
                }
            }
            drop(is_running);
        })?;
        Ok(Self { lines, done })
    }

    /// Queues a log line without waiting. The line is dropped if the queue is full.
    pub(crate) fn log(&self, line: Line) {
        let _ = self.lines.try_send(line);
    }

    pub(crate) fn info(&self, text: String) {
        self.log(Line { weight: Weight::Info, text });
    }

    pub(crate) fn warn(&self, text: String) {
        self.log(Line { weight: Weight::Warning, text });
    }

    /// Waits up to two seconds until the last log lines are written.
    pub(crate) fn end(self) {
        drop(self.lines);
        let _ = self.done.recv_timeout(PATIENCE);
    }
}

fn write(line: &Line) {
    let text = &line.text;
    match line.weight {
        Weight::Info => log::info!("{text}"),
        Weight::Warning => log::warn!("{text}"),
        Weight::Synced => log::error!("{text}"),
    }
}

/// Syncs the journal to disk. The exit codes are ignored, because a journal in memory has nothing to sync.
///
/// `journalctl --sync` alone is not enough. Before systemd 256 (Debian 12 has 252), it returns once the lines are in the journal's memory
/// map. journald then syncs its file in a thread, and the next log line cancels this sync. So the file system is synced as well.
fn sync(programs: &Programs) {
    for (program, arguments) in [("journalctl", &["--sync"][..]), ("sync", &["--file-system", JOURNAL])] {
        if let Err(error) = programs.run(program, arguments, SYNC_TIME) {
            log::warn!("the journal is not synced: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;
    use crate::os::clock::Deadline;

    /// Asserts that logging does not wait for a slow journal, and that one sync serves the lines of a hundred clients.
    #[test]
    fn a_line_before_a_reset_is_synced_and_waits_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let asked = dir.path().join("asked");
        let script = format!("echo \"${{0##*/}} $*\" >> {}; sleep 0.5", asked.display());
        fake_program(dir.path(), "sync", &script);
        let chronicle = Chronicle::start_with(Some(fake_program(dir.path(), "journalctl", &script))).unwrap();
        let began = Deadline::after(Duration::from_secs(10));
        chronicle.info("an ordinary line".to_owned());
        for _ in 0..100 {
            chronicle.log(Line { weight: Weight::Synced, text: "client silent".to_owned() });
        }
        assert!(began.elapsed() < Duration::from_millis(400));
        let Chronicle { lines, done } = chronicle;
        drop(lines);
        assert_eq!(done.recv_timeout(began.left()), Err(mpsc::RecvTimeoutError::Disconnected));
        let asked = std::fs::read_to_string(&asked).unwrap();
        let asked: Vec<&str> = asked.lines().collect();
        assert!((1..=3).contains(&(asked.len() / 2)), "{asked:?}");
        let both = ["journalctl --sync", "sync --file-system /var/log/journal"];
        assert!(asked.chunks(2).all(|pair| pair == both), "{asked:?}");
    }
}
