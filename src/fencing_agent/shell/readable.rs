//! A file descriptor that wakes the loop only when it can be read.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};

use nix::sys::timerfd::TimerFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// An owner of a descriptor, which keeps the same one as long as it lives.
pub(super) trait Owner: AsRawFd {}

/// The kernel's timer, in the form that the runtime accepts.
#[derive(Debug)]
pub(super) struct Timer(pub(super) TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Owner for UdpSocket {}
impl Owner for Timer {}

/// Registers a descriptor with the present runtime.
#[expect(deprecated, reason = "its successor is unsafe because a type may give away another descriptor; no Owner does")]
pub(super) fn readable<T: Owner>(of: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(of, Interest::READABLE)
}
