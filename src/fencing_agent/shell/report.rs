//! The reports of the threads to the loop.

use std::time::Duration;

use crate::fencing_agent::config::Members;

/// A report of a thread to the loop.
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
    /// The multiplexer's connection was closed without `V`, or was lost. The machine resets.
    MuxClosed {
        why: String,
    },
    /// A signal asks for the end.
    Terminate,
    /// A report of the threads for the Kubernetes API.
    Kubernetes(Told),
}

/// A report of the threads for the Kubernetes API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The group's Nodes.
    Listed(Members),
    /// The API's present reasons to be disarmed.
    Maintenance(Vec<String>),
    /// A read that was requested at this time was answered.
    Answered(Duration),
    /// A read that was requested at this time was not answered.
    Failed(Duration),
    /// A warning for the log, about a new condition.
    Warning(String),
}
