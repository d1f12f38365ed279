//! Tests of the thread with a FIFO as device, and with a socket as multiplexer.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

fn now() -> Duration {
    Duration::from_nanos(clock::boot_nanoseconds())
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn feeder(dir: &Path, device: &str) -> (Feeder, UnboundedReceiver<Report>) {
    feeder_with(dir, Watchdog { device: dir.join(device), timeout: Duration::from_secs(15), interval: millis(100) })
}

fn feeder_with(dir: &Path, watchdog: Watchdog) -> (Feeder, UnboundedReceiver<Report>) {
    let (reports, reported) = unbounded_channel();
    let feeder = Feeder::start(watchdog, Armed::in_dir(dir), Programs::default(), reports).unwrap();
    (feeder, reported)
}

fn fifo(dir: &Path) -> File {
    let path = dir.join("watchdog");
    nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).unwrap()
}

fn bytes(device: &mut File) -> Vec<u8> {
    let mut bytes = [0; 256];
    let count = device.read(&mut bytes).unwrap_or_default();
    bytes[..count].to_vec()
}

#[test]
fn it_feeds_while_the_deadline_lies_ahead_and_at_once_when_it_moves_ahead() {
    let dir = tempfile::tempdir().unwrap();
    let mut device = fifo(dir.path());
    let (feeder, mut reported) = feeder(dir.path(), "watchdog");
    feeder.feed_until(now() + Duration::from_secs(60));
    clock::sleep(millis(300));
    assert_eq!(bytes(&mut device), b"", "fed before it was armed");
    feeder.arm();
    assert!(matches!(reported.blocking_recv(), Some(Report::Opened { has_magic_close: true, .. })));
    assert_eq!(bytes(&mut device), [0], "fed before it is reported");
    assert_eq!(Armed::in_dir(dir.path()).read(), Some(true));
    clock::sleep(millis(550));
    assert!((3..=7).contains(&bytes(&mut device).len()));
    feeder.feed_until(now());
    clock::sleep(millis(150));
    bytes(&mut device);
    clock::sleep(millis(500));
    assert_eq!(bytes(&mut device), b"", "fed behind the deadline");
    feeder.feed_until(Duration::MAX);
    clock::sleep(millis(80));
    assert_eq!(bytes(&mut device), [0], "a new deadline waits for the interval");
    feeder.disarm();
    feeder.end();
    assert_eq!(bytes(&mut device).last(), Some(&b'V'));
    assert_eq!(Armed::in_dir(dir.path()).read(), None);
}

/// Asserts that a device that takes no byte is noticed. A full FIFO refuses bytes, as a driver may.
#[test]
fn a_device_that_refuses_bytes_is_late() {
    let dir = tempfile::tempdir().unwrap();
    let mut device = fifo(dir.path());
    let (feeder, mut reported) = feeder(dir.path(), "watchdog");
    let minute = Duration::from_secs(60);
    feeder.feed_until(Duration::MAX);
    assert_eq!(feeder.late(now() + minute), None, "not open");
    feeder.arm();
    reported.blocking_recv().unwrap();
    assert_eq!(feeder.late(now()), None, "just opened");
    let mut full = OpenOptions::new()
        .write(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(dir.path().join("watchdog"))
        .unwrap();
    for size in [4096, 1] {
        while full.write(&vec![0; size]).is_ok_and(|count| count > 0) {}
    }
    clock::sleep(millis(350));
    assert!(feeder.failures().0 > 0);
    assert_eq!(feeder.late(now()), None, "its time is not over");
    assert!(feeder.late(now() + LATE).is_some_and(|late| late > LATE));
    feeder.feed_until(Duration::ZERO);
    assert_eq!(feeder.late(now() + minute), None, "nothing is due");
    feeder.feed_until(Duration::MAX);
    assert_eq!(feeder.late(now() + millis(1_850)), None, "due again just now");
    while !bytes(&mut device).is_empty() {}
    clock::sleep(millis(250));
    assert!(!bytes(&mut device).is_empty());
    assert_eq!(feeder.late(now() + LATE / 2), None, "it takes bytes again");
}

/// Asserts that a device with a shorter time-out than two intervals is fed twice in its time-out. The time-out of a FIFO is the configured
/// one, and a check by whole seconds accepts this one.
#[test]
fn a_short_time_out_of_the_device_shortens_the_interval() {
    assert_eq!(interval(Duration::from_secs(5), Duration::from_secs(15)), Duration::from_secs(5));
    assert_eq!(interval(Duration::from_secs(5), Duration::from_secs(5)), millis(2_500));
    let dir = tempfile::tempdir().unwrap();
    let mut device = fifo(dir.path());
    let watchdog = Watchdog { device: dir.path().join("watchdog"), timeout: millis(200), interval: millis(900) };
    let (feeder, mut reported) = feeder_with(dir.path(), watchdog);
    feeder.feed_until(Duration::MAX);
    feeder.arm();
    reported.blocking_recv().unwrap();
    clock::sleep(millis(550));
    assert!(bytes(&mut device).len() >= 3);
}

#[test]
fn the_end_without_an_order_to_disarm_writes_no_v() {
    let dir = tempfile::tempdir().unwrap();
    let mut device = fifo(dir.path());
    let (feeder, mut reported) = feeder(dir.path(), "watchdog");
    feeder.feed_until(Duration::ZERO);
    feeder.arm();
    reported.blocking_recv().unwrap();
    feeder.end();
    assert_eq!(bytes(&mut device), b"");
    assert_eq!(Armed::in_dir(dir.path()).read(), Some(true), "it was left running");
}

#[test]
fn the_multiplexers_socket_is_closed_without_v_at_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("mux.sock")).unwrap();
    std::fs::write(dir.path().join("mux.json"), "{\"timeout\": 12}").unwrap();
    let (feeder, mut reported) = feeder(dir.path(), "mux.sock");
    feeder.feed_until(now() + millis(400));
    feeder.arm();
    let (mut client, _) = listener.accept().unwrap();
    let opened = reported.blocking_recv().unwrap();
    assert!(matches!(opened, Report::Opened { timeout, .. } if timeout.as_secs() == 12), "{opened:?}");
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    assert!(bytes.len() >= 2 && bytes.iter().all(|byte| *byte == 0), "{bytes:?}");
    assert!(matches!(reported.blocking_recv(), Some(Report::MuxClosed { .. })));
    // A clean leave sends `V`.
    feeder.feed_until(Duration::MAX);
    feeder.arm();
    let (mut client, _) = listener.accept().unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    feeder.disarm();
    feeder.end();
    bytes.clear();
    client.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.last(), Some(&b'V'));
}

#[test]
fn a_device_that_is_not_there_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (feeder, mut reported) = feeder(dir.path(), "none");
    feeder.arm();
    assert!(matches!(reported.blocking_recv(), Some(Report::NotOpened { why }) if why.contains("'modprobe softdog'")));
    assert!(!feeder.is_open());
}
