//! For tests that need a port at which nobody answers.

use std::net::TcpListener;

/// Listens at an address that no other test has: once it is dropped, its port is nobody's, and not the next test's.
pub(crate) fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.9:0").unwrap()
}

/// Asks until the answer is `wanted`. A child that another test has forked holds a listener which was dropped, too, until it runs its
/// own program a moment later.
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
