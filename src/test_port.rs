//! For tests that need a port at which nobody answers.

use std::net::TcpListener;

/// Listens at an address that no other test has: once it is dropped, its port is nobody's, and not the next test's.
pub(crate) fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.9:0").unwrap()
}
