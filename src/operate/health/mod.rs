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
pub use problems::{IDS, primary, two_histories};
pub use verdict::assess;
pub(crate) use view::names;

/// The state of the cluster in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Two voters, and nothing that needs a human.
    Redundant,
    /// Writes are accepted, but something is missing.
    Degraded,
    /// Writes are not accepted.
    Down,
    #[default]
    Unknown,
}

/// The rank of a problem, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// etcd accepts no writes, or the next failure would stop them for good.
    Critical,
    /// Redundancy is missing or at risk.
    Warning,
    /// Good to know; no operator is needed.
    Notice,
}

/// A deviation from the healthy state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Stable, for scripts: `fence-device-failed`.
    pub id: &'static str,
    pub severity: Severity,
    /// The node with the problem.
    pub node: Option<String>,
    /// One sentence, in the words of the recovery guide.
    pub text: String,
    /// The command to type, if there is one.
    pub command: Option<String>,
}

/// The result of the assessment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Health {
    pub verdict: Verdict,
    /// The time since which two voters exist, or do not; `None` if it was not recorded.
    pub since: Option<u64>,
    /// Worst first.
    pub problems: Vec<Problem>,
}
