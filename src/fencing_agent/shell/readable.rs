//! A file descriptor that wakes the loop only when it can be read.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};

use nix::sys::timerfd::TimerFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A type that owns a file descriptor, and keeps the same one for its whole life.
pub(super) trait Owner: AsRawFd {}

/// A Linux timer (`timerfd`) that implements [`Owner`].
#[derive(Debug)]
pub(super) struct Timer(pub(super) TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Owner for UdpSocket {}
impl Owner for Timer {}

/// Registers a file descriptor with the present tokio runtime, only for reading.
#[expect(deprecated, reason = "its successor is unsafe because a type may give away another descriptor; no Owner does")]
pub(super) fn readable<T: Owner>(of: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(of, Interest::READABLE)
}
