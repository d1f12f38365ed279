//! Exit codes and the exit reason of the OCF resource-agent API 1.1.

use std::io::Write;

use crate::base::printable;

/// The exit codes of the OCF resource-agent API that this program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    Success = 0,
    /// A temporary failure, after which Pacemaker tries again.
    Generic = 1,
    /// The parameters do not fit this machine. Pacemaker does not try the resource on this node again until a cleanup.
    Args = 2,
    Unimplemented = 3,
    /// The parameters fit no machine. Pacemaker does not try the resource on any node again until a cleanup.
    Configured = 6,
    /// The resource is certainly stopped.
    NotRunning = 7,
    RunningPromoted = 8,
}

impl Code {
    /// Returns the exit code as a number for the process.
    pub fn status(self) -> u8 {
        self as u8
    }
}

/// The result of an action: its exit code and, after a failure, the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub code: Code,
    pub reason: Option<String>,
}

impl Answered {
    /// Creates the result of an action that failed for `reason`, which Pacemaker shows.
    pub fn failed(code: Code, reason: impl Into<String>) -> Self {
        Self { code, reason: Some(reason.into()) }
    }
}

impl From<Code> for Answered {
    fn from(code: Code) -> Self {
        Self { code, reason: None }
    }
}

/// The number of bytes of an exit reason that Pacemaker keeps. It cuts off the rest.
pub const REASON_LIMIT: usize = 127;

/// Prints `reason` to standard error, in the form that Pacemaker takes as the exit reason. If there are several such lines, only
/// the last counts.
pub fn print_reason(reason: &str) {
    let prefix = std::env::var("OCF_EXIT_REASON_PREFIX").unwrap_or_else(|_| "ocf-exit-reason:".to_owned());
    let _ = writeln!(std::io::stderr(), "{prefix}{}", as_kept(reason));
}

/// Returns `reason` in one line, of a length that Pacemaker keeps. A longer reason is cut and gets an ellipsis.
pub fn as_kept(reason: &str) -> String {
    let line = printable::one_line(reason);
    if line.len() <= REASON_LIMIT {
        return line.into_owned();
    }
    let ellipsis = "...";
    let end = (0..=REASON_LIMIT - ellipsis.len()).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{ellipsis}", &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_visibly_and_between_characters() {
        assert_eq!(as_kept("a\nb"), "a b");
        let cut = as_kept(&"é".repeat(100));
        assert!(cut.len() <= REASON_LIMIT && cut.ends_with("é..."));
    }
}
