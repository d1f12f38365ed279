//! The timer of the loop, which is the kernel's own. A timer of the runtime costs more than a datagram. The runtime wakes itself
//! when such a timer is set earlier, and again as the timer moves down its timer wheel.

use std::io;
use std::time::Duration;

use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use crate::fencing_agent::shell::readable::{Timer, readable};

/// A timer for one time since boot.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<Timer>,
    /// The time for which the timer is set; `None` after it has expired.
    at: Option<Duration>,
}

impl Alarm {
    /// Creates a timer that is not set. Must be called inside a tokio runtime.
    pub(crate) fn new() -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        Ok(Self { timer: readable(Timer(timer))?, at: None })
    }

    pub(super) fn set(&mut self, at: Duration) {
        if self.at == Some(at) {
            return;
        }
        // A zero would stop the timer.
        let once = Expiration::OneShot(at.max(Duration::from_nanos(1)).into());
        let set = self.timer.get_ref().0.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
        // The kernel refuses no time since boot. If it did, the loop would set the timer again with the next datagram.
        self.at = set.ok().map(|()| at);
    }

    /// Waits until the timer expires. If the wait is cancelled, the timer stays set.
    pub(super) async fn rings(&mut self) {
        while let Ok(mut ready) = self.timer.readable().await {
            // A timer that was set again after it was ready has not expired.
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
        // The timer expires unheard, and is set again.
        alarm.set(now());
        clock::sleep(SHORT);
        alarm.set(now() + LONG);
        assert!(!rings_within(&mut alarm, SHORT).await);
        alarm.set(now());
        assert!(rings_within(&mut alarm, LONG).await);
    }
}
