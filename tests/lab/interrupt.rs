//! Ctrl-C, SIGTERM and a closed terminal: the lab stops its work, and still tears down.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};

use crate::sh::Result;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes SIGINT, SIGTERM and SIGHUP set a flag instead of ending the lab. It must run before any thread starts,
/// because threads inherit the signal mask. Programs that the lab starts get an empty mask from the standard library.
#[expect(clippy::disallowed_methods, reason = "the lab is a program of its own, and this is for its whole life")]
pub fn install() -> Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGHUP);
    signals.thread_block()?;
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            INTERRUPTED.store(true, Ordering::SeqCst);
            // `eprintln` would panic without a terminal.
            let _ = writeln!(std::io::stderr(), "\ninterrupted: ending what runs, then tearing down");
        }
    });
    Ok(())
}

/// Returns an error once the operator has pressed Ctrl-C.
pub fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err("interrupted".into()) } else { Ok(()) }
}

/// Returns whether the operator has pressed Ctrl-C.
pub fn seen() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}
