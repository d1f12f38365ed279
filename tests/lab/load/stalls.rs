//! Stalls of the machine itself: of its disk, or of its processors for this process. Two labs share a machine, and the
//! machine often is one of many on another. A second in which no process could sync is the machine's pause, not etcd's.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::sh::Result;

/// The pause between two syncs. It is long, so that these syncs are few, compared with the syncs of etcd.
const EVERY: Duration = Duration::from_millis(25);
/// The longest time that a sync of one page may take on a machine that is busy but does not stall.
const BUSY: Duration = Duration::from_millis(100);

/// The beginning and the end of a stall, counted from the beginning of the run.
pub type Span = (Duration, Duration);

/// A thread that detects stalls of the machine. It repeatedly writes and syncs 4096 bytes on the disk of the hosts'
/// etcds, and records when that took too long.
pub struct Stalls {
    seen: Arc<Mutex<Vec<Span>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Stalls {
    /// Starts the thread, which writes to `path`. The times of the stalls count from `began`.
    pub fn watch(path: PathBuf, began: Instant) -> Result<Self> {
        let mut file = File::create(&path)?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (to, until) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::SeqCst) {
                // The sleep is included, because a process that is not woken stalls just as one that waits for a disk.
                let from = began.elapsed();
                std::thread::sleep(EVERY);
                if file.rewind().and_then(|()| file.write_all(&[0; 4096])).and_then(|()| file.sync_data()).is_err() {
                    return;
                }
                let to_when = began.elapsed();
                if to_when.saturating_sub(from) > EVERY + BUSY {
                    to.lock().unwrap_or_else(PoisonError::into_inner).push((from, to_when));
                }
            }
        });
        Ok(Self { seen, stop, thread: Some(thread), path })
    }

    /// Returns the stalls of the machine so far.
    pub fn seen(&self) -> Vec<Span> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns for how much of `span` the machine stalled.
pub fn within(span: Span, stalls: &[Span]) -> Duration {
    stalls.iter().map(|stall| span.1.min(stall.1).saturating_sub(span.0.max(stall.0))).sum()
}
