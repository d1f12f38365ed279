//! Exit codes and the exit reason of the OCF resource-agent API 1.1.

use std::io::Write;

/// The API's exit codes that this product answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    Success = 0,
    /// Failed for now; Pacemaker tries again.
    Generic = 1,
    /// The parameters do not fit this machine: Pacemaker does not try this node again until a cleanup.
    Args = 2,
    Unimplemented = 3,
    /// The parameters can fit no machine: Pacemaker tries no node again until a cleanup.
    Configured = 6,
    /// Surely stopped.
    NotRunning = 7,
    RunningPromoted = 8,
}

impl Code {
    /// The process' exit status.
    pub fn status(self) -> u8 {
        self as u8
    }
}

/// Longest exit reason: Pacemaker keeps it in the CIB and people read it in one line of `crm_mon`.
const REASON_LIMIT: usize = 400;

/// Prints the one line that Pacemaker takes as the reason of a failure; only the last one counts.
pub fn print_reason(reason: &str) {
    let prefix = std::env::var("OCF_EXIT_REASON_PREFIX").unwrap_or_else(|_| "ocf-exit-reason:".to_owned());
    let line: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON_LIMIT).collect();
    let _ = writeln!(std::io::stderr(), "{prefix}{line}");
}
