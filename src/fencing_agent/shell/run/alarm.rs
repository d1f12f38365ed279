//! The timer of the loop. It stays set while a datagram is handled: one that is made anew for each costs more than the datagram, since the runtime
//! wakes itself for each timer that comes before the ones that it knows.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::os::clock;

/// Rings at a time since boot.
#[derive(Debug)]
pub(super) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    /// When it rings; `None` once it has.
    at: Option<Duration>,
}

impl Alarm {
    /// Needs a runtime.
    pub(super) fn new() -> Self {
        Self { sleep: Box::pin(tokio::time::sleep(Duration::ZERO)), at: None }
    }

    /// Has it ring at `at`.
    pub(super) fn set(&mut self, at: Duration) {
        if self.at == Some(at) {
            return;
        }
        let left = at.saturating_sub(Duration::from_nanos(clock::boot_nanoseconds()));
        self.sleep.as_mut().reset(Instant::now() + left);
        self.at = Some(at);
    }

    /// Waits until it rings. Where something else comes first, it stays set.
    pub(super) async fn rings(&mut self) {
        self.sleep.as_mut().await;
        self.at = None;
    }
}
