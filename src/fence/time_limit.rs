//! What holds whatever else goes wrong: an action ends, and the password that is in memory reaches no core file.

use std::io::Write as _;
use std::time::Duration;

use nix::sys::signal::SigSet;

use crate::clock;

/// Beyond the action's own time: for its last request and for deleting a session. Still before the fencer's patience ends.
const GRACE: Duration = Duration::from_secs(4);

/// Ends the process if it is still there some seconds after `total`.
///
/// Every wait for the BMC has a limit of its own. This one is for what has none: a file on a dead file server, a named
/// pipe that nobody writes to, a syslog daemon that takes no more lines.
#[expect(clippy::exit, reason = "the other threads hang in something that cannot be interrupted")]
pub fn end_after(total: Duration) {
    std::thread::spawn(move || {
        // A signal is for whoever deletes the session before it ends us.
        let _ = SigSet::all().thread_block();
        clock::sleep(total + GRACE);
        // Not through the log, which may be what hangs.
        let _ = writeln!(
            std::io::stderr(),
            "fence_redfish_rs: ERROR: Failed: Timed out after {} s in something on this machine, not in the BMC: a file, \
             a pipe or syslog",
            (total + GRACE).as_secs()
        );
        std::process::exit(i32::from(super::FAILED));
    });
}
