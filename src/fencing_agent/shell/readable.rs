//! A file descriptor that wakes the loop where it can be read, and for nothing else.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};

use nix::sys::timerfd::TimerFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What owns its descriptor, and gives away no other one for as long as it lives.
pub(super) trait Owner: AsRawFd {}

/// The kernel's timer as the runtime takes it.
#[derive(Debug)]
pub(super) struct Timer(pub(super) TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Owner for UdpSocket {}
impl Owner for Timer {}

/// Registers a descriptor with the runtime that this runs in.
#[expect(deprecated, reason = "its successor is unsafe because a type may give away another descriptor; no Owner does")]
pub(super) fn readable<T: Owner>(of: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(of, Interest::READABLE)
}
