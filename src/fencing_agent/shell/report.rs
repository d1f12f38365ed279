//! What the threads report to the loop.

use std::time::Duration;

use crate::fencing_agent::config::Members;

/// What a thread reports to the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Opened {
        identity: String,
        timeout: Duration,
        has_magic_close: bool,
        warnings: Vec<String>,
    },
    NotOpened {
        why: String,
    },
    /// The multiplexer's connection was closed without `V`, or was lost: that machine resets.
    MuxClosed {
        why: String,
    },
    /// A signal asks for the end.
    Terminate,
    /// Of the threads that ask the Kubernetes API.
    Kubernetes(Told),
}

/// What the threads that ask the Kubernetes API report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The group's Nodes.
    Listed(Members),
    /// All reasons of the API to be disarmed, as they are now.
    Maintenance(Vec<String>),
    /// A read that was asked for at this time was answered.
    Answered(Duration),
    /// It was not.
    Failed(Duration),
    /// Words for the log: something came to be so, and was not before.
    Warning(String),
}
