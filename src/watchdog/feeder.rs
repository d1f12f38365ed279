//! The thread that feeds the device each second, and does nothing else. It waits for no client, no log and no disk.
//!
//! It shares only a few atomics with the rest of the process. It feeds until a deadline that the main loop moves. After the
//! deadline it never feeds again, so that a multiplexer that hangs keeps no machine alive for dead clients.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use crate::adapters::watchdog::Device;
use crate::os::clock;

/// The interval at which the device is fed.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);
/// The longest time for which the main loop waits for the feeding thread to disarm the device.
const PATIENCE: Duration = Duration::from_secs(5);
/// The value of a deadline that never comes.
const NEVER: u64 = u64::MAX;

/// The data that the feeding thread shares with the main loop. Times are nanoseconds since the machine started.
#[derive(Debug)]
struct Shared {
    until: AtomicU64,
    has_ended: AtomicBool,
    fed_at: AtomicU64,
    failures: AtomicU64,
    last_error: AtomicI32,
}

/// The main loop's handle of the feeding thread.
#[derive(Debug)]
pub(super) struct Feeder {
    shared: Arc<Shared>,
    /// The channel by which the main loop asks the thread to disarm the device. It carries the sender for the result.
    end: Sender<Sender<io::Result<()>>>,
}

impl Feeder {
    /// Starts the thread that feeds `device` at once, and then each second.
    pub(super) fn start(device: Device) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            until: AtomicU64::new(NEVER),
            has_ended: AtomicBool::new(false),
            // This is the time of the opening until the first byte, because an opened device has just begun to count.
            fed_at: AtomicU64::new(clock::boot_nanoseconds()),
            failures: AtomicU64::new(0),
            last_error: AtomicI32::new(0),
        });
        let (end, ended) = mpsc::channel();
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new().name("feeder".to_owned()).spawn(move || feed(device, &of_thread, &ended))?;
        Ok(Self { shared, end })
    }

    /// Sets the deadline until which the device is fed; `None` removes the deadline. Has no effect after the feeding has ended.
    pub(super) fn feed_until(&self, until: Option<Duration>) {
        let nanoseconds = until.map_or(NEVER, clock::nanoseconds);
        self.shared.until.store(nanoseconds, Ordering::SeqCst);
    }

    /// Ends the feeding of the device permanently.
    pub(super) fn stop(&self) {
        self.shared.has_ended.store(true, Ordering::SeqCst);
    }

    /// Returns whether the feeding has ended, by [`Feeder::stop`] or by its deadline.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.has_ended.load(Ordering::SeqCst)
    }

    /// Returns the time at which the device was last fed, counted from the start of the machine.
    pub(super) fn fed_at(&self) -> Duration {
        Duration::from_nanos(self.shared.fed_at.load(Ordering::SeqCst))
    }

    /// Returns the number of failed attempts to feed the device, and the last error.
    pub(super) fn failures(&self) -> (u64, io::Error) {
        let error = io::Error::from_raw_os_error(self.shared.last_error.load(Ordering::SeqCst));
        (self.shared.failures.load(Ordering::SeqCst), error)
    }

    /// Writes `V`, closes the device and ends the thread. If the feeding has ended before, closes the device without `V` and fails.
    pub(super) fn disarm(self) -> io::Result<()> {
        let (answer, answered) = mpsc::channel();
        let is_gone = |_| io::Error::other("the feeding thread has ended");
        self.end.send(answer).map_err(|_| io::Error::other("the feeding thread has ended"))?;
        answered.recv_timeout(PATIENCE).map_err(is_gone)?
    }
}

impl Shared {
    /// Returns whether the device may be fed at the time `now`. It may only before the deadline. Once the deadline has passed, the device
    /// is never fed again.
    fn is_fed(&self, now: u64) -> bool {
        if now >= self.until.load(Ordering::SeqCst) {
            self.has_ended.store(true, Ordering::SeqCst);
        }
        !self.has_ended.load(Ordering::SeqCst)
    }
}

fn feed(mut device: Device, shared: &Shared, end: &Receiver<Sender<io::Result<()>>>) {
    loop {
        let now = clock::boot_nanoseconds();
        if shared.is_fed(now) {
            match device.feed() {
                Ok(()) => shared.fed_at.store(now, Ordering::SeqCst),
                Err(error) => {
                    shared.last_error.store(error.raw_os_error().unwrap_or_default(), Ordering::SeqCst);
                    shared.failures.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        match end.recv_timeout(INTERVAL) {
            Ok(answer) => {
                let has_ended = shared.has_ended.load(Ordering::SeqCst);
                let done = if has_ended { Err(io::Error::other("feeding has ended")) } else { device.disarm() };
                let _ = answer.send(done);
                return;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The process is ending, so the device is closed without `V`.
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(until: u64) -> Shared {
        Shared {
            until: AtomicU64::new(until),
            has_ended: AtomicBool::new(false),
            fed_at: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            last_error: AtomicI32::new(0),
        }
    }

    #[test]
    fn behind_the_deadline_it_never_feeds_again() {
        let shared = shared(100);
        assert!(shared.is_fed(99));
        assert!(!shared.is_fed(100));
        shared.until.store(NEVER, Ordering::SeqCst);
        assert!(!shared.is_fed(101), "a deadline that moves too late moves nothing");
    }

    #[test]
    fn without_a_deadline_it_feeds() {
        assert!(shared(NEVER).is_fed(u64::MAX - 1));
    }
}
