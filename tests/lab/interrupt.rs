//! Ctrl-C, SIGTERM and a closed terminal: the lab stops what it does and still tears down.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};

use crate::sh::Result;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Turns these signals into a flag from now on. To be called before any thread is started, since the signal mask is
/// inherited; programs that the lab starts get an empty mask from the standard library.
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
            // Not eprintln: it panics where the terminal is gone.
            let _ = writeln!(std::io::stderr(), "\ninterrupted: ending what runs, then tearing down");
        }
    });
    Ok(())
}

/// An error once somebody pressed Ctrl-C.
pub fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err("interrupted".into()) } else { Ok(()) }
}

/// Whether somebody pressed Ctrl-C.
pub fn seen() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}
