//! When the machine itself stood still: its disk, or its processors for this process. Two labs share a machine, and the
//! machine is often one of many on another. A second in which nobody got a sync through is nobody's pause but its own.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::sh::Result;

/// Between two syncs: few beside what etcd syncs.
const EVERY: Duration = Duration::from_millis(25);
/// What a sync of one page may take on a machine that is merely busy.
const BUSY: Duration = Duration::from_millis(100);

/// From when to when, as of a beginning.
pub type Span = (Duration, Duration);

/// Syncs a page again and again, on the disk on which the hosts' etcds sync theirs, and remembers when that took too long.
pub struct Stalls {
    seen: Arc<Mutex<Vec<Span>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Stalls {
    /// Times count from `began`.
    pub fn watch(path: PathBuf, began: Instant) -> Result<Self> {
        let mut file = File::create(&path)?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (to, until) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::SeqCst) {
                // Its sleep belongs to it: a process that is not woken stands still as well as one that waits for a disk.
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

    /// Those so far.
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

/// How much of `span` lies in stalls.
pub fn within(span: Span, stalls: &[Span]) -> Duration {
    stalls.iter().map(|stall| span.1.min(stall.1).saturating_sub(span.0.max(stall.0))).sum()
}
