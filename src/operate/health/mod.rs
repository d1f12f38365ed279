//! The assessment of a [`Cluster`](crate::operate::cluster::Cluster): the verdict, and every problem with its command. Pure: facts in,
//! words out.

mod bmc;
pub mod conditions;
pub mod fencing;
mod may_stop;
pub mod pacemaker_cluster;
mod passwords;
mod problems;
#[cfg(test)]
pub(crate) mod samples;
mod verdict;
pub(crate) mod view;
pub(crate) mod words;

use serde::Serialize;

pub use bmc::checked;
pub use may_stop::{change_under_way, outlook, third_voter, voters_published, without_change};
pub(in crate::operate) use passwords::secret_differs;
pub(in crate::operate) use problems::NEARLY_FULL;
pub use problems::{IDS, IDS_OF_THE_CHECK, primary, two_histories};
pub use verdict::assess;
pub(crate) use view::names;

/// The health of the cluster in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Two members vote, and the operator need not do anything.
    Redundant,
    /// etcd accepts writes, but a voter is missing or a problem needs the operator.
    Degraded,
    /// etcd does not accept writes.
    Down,
    #[default]
    Unknown,
}

/// The severity of a problem, with the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// etcd accepts no writes, or the next failure would stop them for good.
    Critical,
    /// Redundancy is missing or at risk.
    Warning,
    /// The operator need not do anything.
    Notice,
}

/// A problem of the cluster, as `tandem status` and `tandem fencing check` report it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The problem's name, which stays the same for scripts: `fence-device-failed`.
    pub id: &'static str,
    pub severity: Severity,
    /// The node with the problem; `None` for a problem of the whole cluster.
    pub node: Option<String>,
    /// The fence device with the problem; `None` for a problem that no device has.
    pub device: Option<String>,
    /// A sentence about the problem, in the words of the recovery guide.
    pub text: String,
    /// The command to type; `None` if there is none.
    pub command: Option<String>,
}

impl Problem {
    /// Returns a problem without a device and without a command.
    fn new(id: &'static str, severity: Severity, node: Option<&str>, text: String) -> Self {
        Self { id, severity, node: node.map(str::to_owned), device: None, text, command: None }
    }

    fn of_device(self, id: &str) -> Self {
        Self { device: Some(id.to_owned()), ..self }
    }

    /// Returns the problem that nothing is known about the cluster. `why` is the reason.
    pub fn nothing_known(why: String) -> Self {
        Self::new("status-unknown", Severity::Critical, None, why)
    }
}

/// The health of the cluster: the verdict and its reasons.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Health {
    pub verdict: Verdict,
    /// The time since which the cluster has had two voters, or since which it has had fewer than two. In seconds since 1970; `None` if it
    /// is unknown.
    pub since: Option<u64>,
    /// All problems, with the worst first.
    pub problems: Vec<Problem>,
}
