//! The timer of the loop: the kernel's own. A timer of the runtime costs more than a datagram does: the runtime wakes itself where it is set
//! earlier, and again on the way down its wheel of timers.

use std::io;
use std::time::Duration;

use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use crate::fencing_agent::shell::readable::{Timer, readable};

/// Rings at a time since boot.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<Timer>,
    /// When it rings; `None` once it has.
    at: Option<Duration>,
}

impl Alarm {
    /// Makes an alarm that is not set. Needs a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        Ok(Self { timer: readable(Timer(timer))?, at: None })
    }

    /// Has it ring at `at`.
    pub(super) fn set(&mut self, at: Duration) {
        if self.at == Some(at) {
            return;
        }
        // Zero would stop the timer.
        let once = Expiration::OneShot(at.max(Duration::from_nanos(1)).into());
        let set = self.timer.get_ref().0.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
        // The kernel refuses no time since boot. If it did, the loop would set it again with the next datagram.
        self.at = set.ok().map(|()| at);
    }

    /// Waits until it rings. Where something else comes first, it stays set.
    pub(super) async fn rings(&mut self) {
        while let Ok(mut ready) = self.timer.readable().await {
            // A timer that was set anew since it was ready has not expired.
            let has_expired = self.timer.get_ref().0.wait().is_ok();
            ready.clear_ready();
            if has_expired {
                break;
            }
        }
        self.at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::clock;

    fn now() -> Duration {
        Duration::from_nanos(clock::boot_nanoseconds())
    }

    async fn rings_within(alarm: &mut Alarm, time: Duration) -> bool {
        tokio::time::timeout(time, alarm.rings()).await.is_ok()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn it_rings_at_the_time_that_was_set_last_and_once() {
        const SHORT: Duration = Duration::from_millis(50);
        const LONG: Duration = Duration::from_secs(20);
        let mut alarm = Alarm::new().unwrap();
        assert!(!rings_within(&mut alarm, SHORT).await, "it is not set");
        let at = now() + SHORT;
        alarm.set(at);
        assert!(rings_within(&mut alarm, LONG).await && now() >= at);
        assert!(!rings_within(&mut alarm, SHORT).await, "it has rung");
        alarm.set(Duration::ZERO);
        assert!(rings_within(&mut alarm, LONG).await, "a time that has passed rings at once");
        // It expires unheard, and is set anew.
        alarm.set(now());
        clock::sleep(SHORT);
        alarm.set(now() + LONG);
        assert!(!rings_within(&mut alarm, SHORT).await);
        alarm.set(now());
        assert!(rings_within(&mut alarm, LONG).await);
    }
}
