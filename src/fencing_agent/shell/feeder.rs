//! The thread that opens the device and feeds it. It waits for no datagram, no client and no log.
//!
//! It obeys one atomic deadline that the core moves. After the deadline it does not feed. If the deadline moves into the future
//! again, it feeds at once. A step of the wall clock has no effect, because the time is the kernel's since boot.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::place::Armed;
use super::report::Report;
use crate::adapters::command::Programs;
use crate::adapters::watchdog::refusal::Words;
use crate::adapters::watchdog::{self, Device, Wanted};
use crate::base::json;
use crate::fencing_agent::config::Watchdog;
use crate::os::clock;

/// Longest time to wait for the end of the feeding thread. `wdctl`, which the thread runs, may take 10 s.
const PATIENCE: Duration = Duration::from_secs(12);
/// Time limit of a write to `watchdog-mux`.
const MUX_TIME: Duration = Duration::from_secs(2);
/// Time for which the feeding thread sleeps while no watchdog is open.
const IDLE: Duration = Duration::from_secs(60);
/// The longest time beyond an interval for which the watchdog may take no byte and still counts as fed.
const LATE: Duration = Duration::from_secs(2);
/// Time-out of the device behind `watchdog-mux`, if the state file of `watchdog-mux` contains none.
const MUX_TIMEOUT: Duration = Duration::from_secs(10);

enum Order {
    Arm,
    Disarm,
    /// An order to feed immediately, because the deadline has moved from the past into the future.
    Feed,
    /// An order to end the feeding thread, after all earlier orders. An open watchdog is closed without `V`, so that it stays armed. After
    /// that the thread sends on the channel.
    End(Sender<()>),
}

#[derive(Debug, Default)]
struct Shared {
    /// The time until which the watchdog is fed, in nanoseconds since boot.
    until: AtomicU64,
    /// The interval at which the watchdog is fed, in nanoseconds.
    interval: AtomicU64,
    is_open: AtomicBool,
    /// The time at which the watchdog last took a byte, in nanoseconds since boot. Until the first byte it is the time of the opening.
    /// After the deadline has moved from the past into the future, it is the time of that.
    fed_at: AtomicU64,
    failures: AtomicU64,
    last_error: AtomicI32,
}

/// The handle with which the main loop controls the feeding thread.
#[derive(Debug)]
pub(crate) struct Feeder {
    shared: Arc<Shared>,
    orders: Sender<Order>,
}

impl Feeder {
    /// Starts the feeding thread. The watchdog is opened only by [`Feeder::arm`].
    pub(crate) fn start(
        watchdog: Watchdog,
        armed: Armed,
        programs: Programs,
        reports: UnboundedSender<Report>,
    ) -> io::Result<Self> {
        let shared =
            Arc::new(Shared { interval: AtomicU64::new(clock::nanoseconds(watchdog.interval)), ..Shared::default() });
        let (orders, waiting) = mpsc::channel();
        let thread = Thread { shared: Arc::clone(&shared), watchdog, armed, programs, reports, open: None, next: 0 };
        std::thread::Builder::new().name("feeder".to_owned()).spawn(move || thread.run(&waiting))?;
        Ok(Self { shared, orders })
    }

    /// Sets the time until which the watchdog is fed, as a duration since boot.
    pub(crate) fn feed_until(&self, until: Duration) {
        let until = clock::nanoseconds(until);
        let before = self.shared.until.swap(until, Ordering::SeqCst);
        let now = clock::boot_nanoseconds();
        if before <= now && now < until {
            self.shared.fed_at.fetch_max(now, Ordering::SeqCst);
            let _ = self.orders.send(Order::Feed);
        }
    }

    pub(crate) fn arm(&self) {
        let _ = self.orders.send(Order::Arm);
    }

    pub(crate) fn disarm(&self) {
        let _ = self.orders.send(Order::Disarm);
    }

    /// Waits for the pending orders, and ends the feeding thread.
    pub(crate) fn end(self) {
        let (answer, answered) = mpsc::channel();
        if self.orders.send(Order::End(answer)).is_ok() {
            let _ = answered.recv_timeout(PATIENCE);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.shared.is_open.load(Ordering::SeqCst)
    }

    /// Returns the time since the open watchdog last took a byte, if that is too long; `None` if the deadline has passed. `now` is the time
    /// since boot.
    pub(crate) fn late(&self, now: Duration) -> Option<Duration> {
        let of = |time: &AtomicU64| Duration::from_nanos(time.load(Ordering::SeqCst));
        let late = now.saturating_sub(of(&self.shared.fed_at));
        let is_due = self.is_open() && now < of(&self.shared.until);
        (is_due && late > of(&self.shared.interval) + LATE).then_some(late)
    }

    /// Returns the number of failed attempts to feed or disarm, and the last error.
    pub(crate) fn failures(&self) -> (u64, io::Error) {
        let error = io::Error::from_raw_os_error(self.shared.last_error.load(Ordering::SeqCst));
        (self.shared.failures.load(Ordering::SeqCst), error)
    }
}

/// The open watchdog: a device, or a connection to `watchdog-mux`.
#[derive(Debug)]
enum Backend {
    Device(Device),
    Mux(UnixStream),
}

impl Backend {
    fn feed(&mut self) -> io::Result<()> {
        match self {
            Self::Device(device) => device.feed(),
            Self::Mux(stream) => stream.write_all(&[0]),
        }
    }

    fn disarm(self) -> io::Result<()> {
        match self {
            Self::Device(device) => device.disarm(),
            Self::Mux(mut stream) => stream.write_all(b"V"),
        }
    }
}

struct Thread {
    shared: Arc<Shared>,
    watchdog: Watchdog,
    armed: Armed,
    programs: Programs,
    reports: UnboundedSender<Report>,
    open: Option<Backend>,
    /// The time at which the watchdog is to be fed next, in nanoseconds since boot.
    next: u64,
}

impl Thread {
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let wait = self.turn();
            match orders.recv_timeout(wait) {
                Ok(Order::Arm) => self.arm(),
                Ok(Order::Disarm) => self.disarm(),
                Ok(Order::Feed) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Order::End(answer)) => {
                    drop(self);
                    let _ = answer.send(());
                    return;
                }
                // The process is ending, so the device is closed without `V`.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Feeds the watchdog if it is time. Returns the time to wait until the next call.
    fn turn(&mut self) -> Duration {
        let interval = self.shared.interval.load(Ordering::SeqCst);
        let now = clock::boot_nanoseconds();
        let until = self.shared.until.load(Ordering::SeqCst);
        let Some(backend) = &mut self.open else { return IDLE };
        let is_mux = matches!(backend, Backend::Mux(_));
        if now >= until {
            if is_mux {
                self.close_mux("the deadline has passed".to_owned());
                return IDLE;
            }
            return Duration::from_nanos(interval);
        }
        if now >= self.next {
            match backend.feed() {
                Ok(()) => self.shared.fed_at.store(now, Ordering::SeqCst),
                Err(error) if is_mux => {
                    self.close_mux(error.to_string());
                    return IDLE;
                }
                Err(error) => {
                    self.shared.last_error.store(error.raw_os_error().unwrap_or_default(), Ordering::SeqCst);
                    self.shared.failures.fetch_add(1, Ordering::SeqCst);
                }
            }
            self.next = now.saturating_add(interval);
        }
        // The multiplexer's connection is closed at the deadline, while a device is just not fed.
        let wake = if is_mux { self.next.min(until) } else { self.next };
        Duration::from_nanos(wake.saturating_sub(now)).max(Duration::from_millis(1))
    }

    fn arm(&mut self) {
        if self.open.is_some() {
            return;
        }
        let opened = if is_socket(&self.watchdog.device) { self.connect() } else { self.open() };
        let report = match opened {
            Ok((backend, report)) => {
                self.open = Some(backend);
                self.next = 0;
                self.shared.fed_at.store(clock::boot_nanoseconds(), Ordering::SeqCst);
                self.shared.is_open.store(true, Ordering::SeqCst);
                report
            }
            Err(why) => Report::NotOpened { why },
        };
        // The device is fed before the main loop learns of it.
        self.turn();
        let _ = self.reports.send(report);
    }

    fn open(&mut self) -> Result<(Backend, Report), String> {
        let examined = watchdog::examine(wanted(&self.watchdog)).map_err(|why| why.to_string())?;
        // For a device that another agent has left running, that agent's note shows whether it can be stopped.
        let known = self.armed.read();
        let (device, about) = examined.open(&self.programs).map_err(|why| why.to_string())?;
        let has_magic_close = about.has_magic_close.or(known).unwrap_or(false);
        self.armed.note(has_magic_close);
        let interval = clock::nanoseconds(interval(self.watchdog.interval, about.timeout));
        self.shared.interval.store(interval, Ordering::SeqCst);
        let report = Report::Opened {
            identity: about.identity,
            timeout: about.timeout,
            has_magic_close,
            warnings: about.warnings,
        };
        Ok((Backend::Device(device), report))
    }

    fn connect(&mut self) -> Result<(Backend, Report), String> {
        let path = &self.watchdog.device;
        let connect = || -> io::Result<UnixStream> {
            let stream = UnixStream::connect(path)?;
            stream.set_write_timeout(Some(MUX_TIME))?;
            Ok(stream)
        };
        let stream = connect().map_err(|error| format!("{}: {error}", path.display()))?;
        let timeout = mux_timeout(&path.with_extension("json")).unwrap_or(MUX_TIMEOUT);
        let identity = "watchdog-mux".to_owned();
        let report = Report::Opened { identity, timeout, has_magic_close: true, warnings: Vec::new() };
        Ok((Backend::Mux(stream), report))
    }

    /// Closes the connection to `watchdog-mux` without `V`. After that `watchdog-mux` never feeds its device again.
    fn close_mux(&mut self, why: String) {
        self.open = None;
        self.shared.is_open.store(false, Ordering::SeqCst);
        let _ = self.reports.send(Report::MuxClosed { why });
    }

    fn disarm(&mut self) {
        let Some(backend) = self.open.take() else { return };
        self.shared.is_open.store(false, Ordering::SeqCst);
        match backend.disarm() {
            Ok(()) => self.armed.forget(),
            Err(error) => {
                self.shared.last_error.store(error.raw_os_error().unwrap_or_default(), Ordering::SeqCst);
                self.shared.failures.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// Returns the interval at which a device with the time-out `timeout` is fed: `wanted`, but at most half of the time-out. A device that was
/// left running, or has no magic close, may have a shorter time-out than the configured one.
fn interval(wanted: Duration, timeout: Duration) -> Duration {
    wanted.min(timeout / 2)
}

/// Returns the watchdog device and its settings, in the form that [`watchdog::examine`] needs.
pub(crate) fn wanted(watchdog: &Watchdog) -> Wanted {
    Wanted {
        path: watchdog.device.clone(),
        timeout: watchdog.timeout,
        interval: watchdog.interval,
        sysfs: PathBuf::from(watchdog::SYSFS),
        words: Words::Keys,
    }
}

/// Returns whether `path` is the socket of `watchdog-mux`, judged by its ending. The socket need not exist.
pub(crate) fn is_socket(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sock")
}

/// Returns the time-out of the device behind `watchdog-mux`, from its state file `state`; `None` if the file is missing or has none.
pub(crate) fn mux_timeout(state: &std::path::Path) -> Option<Duration> {
    let text = crate::os::regular_file::text_of_at_most(state, 256 * 1024).ok()?;
    let state: serde_json::Value = json::from_text(&text).ok()?;
    state.get("timeout")?.as_u64().map(Duration::from_secs)
}

#[cfg(test)]
mod tests;
