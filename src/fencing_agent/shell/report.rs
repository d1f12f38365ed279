//! The reports of the threads to the loop.

use std::time::Duration;

use crate::fencing_agent::config::Members;

/// A report from a thread to the main loop.
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
    /// The connection to `watchdog-mux` was closed without `V`, or was lost. The machine will reset.
    MuxClosed {
        why: String,
    },
    /// A signal requested the end of the agent.
    Terminate,
    /// A report from a thread that uses the Kubernetes API.
    Kubernetes(Told),
}

/// A report from a thread that uses the Kubernetes API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The members, from the list of the group's Nodes.
    Listed(Members),
    /// The present reasons for not using the watchdog, from this node's Node.
    Maintenance(Vec<String>),
    /// The API server answered a read that was requested at this time since boot.
    Answered(Duration),
    /// The API server did not answer a read that was requested at this time since boot.
    Failed(Duration),
    /// A warning for the log, about a condition that was not reported before.
    Warning(String),
}
