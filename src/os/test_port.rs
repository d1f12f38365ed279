//! Ports without a server, for tests.

use std::net::TcpListener;

/// Returns a listener at an address that no other test uses. After it is dropped, its port is free, and no other test takes it.
pub(crate) fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.9:0").unwrap()
}

/// Calls `ask` until it returns `wanted`. Earlier results may differ, because another test's child process may keep a dropped listener open
/// between its fork and its exec.
pub(crate) fn settles<T: PartialEq + std::fmt::Debug>(wanted: &T, ask: impl Fn() -> T) {
    let end = crate::os::clock::Deadline::after(std::time::Duration::from_secs(10));
    loop {
        let answer = ask();
        if answer == *wanted {
            return;
        }
        assert!(!end.has_passed(), "{answer:?} is not {wanted:?}");
        end.sleep(std::time::Duration::from_millis(20));
    }
}
