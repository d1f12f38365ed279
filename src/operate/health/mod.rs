//! What a [`Cluster`](crate::operate::cluster::Cluster) means: the verdict, and every problem with the command to type. Pure: facts in, words out.

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

/// How the cluster is, as one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Two voters, and nothing that needs a human.
    Redundant,
    /// Writes are taken; something is missing.
    Degraded,
    /// No writes.
    Down,
    #[default]
    Unknown,
}

/// How bad a problem is; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// etcd takes no writes, or the next failure would stop them for good.
    Critical,
    /// Redundancy is missing or at risk.
    Warning,
    /// Good to know; nothing needs a human.
    Notice,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Stable, for scripts: `fence-device-failed`.
    pub id: &'static str,
    pub severity: Severity,
    /// The node that it is about.
    pub node: Option<String>,
    /// One sentence, in the words of the recovery guide.
    pub text: String,
    /// What to type, where something can be typed.
    pub command: Option<String>,
}

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Health {
    pub verdict: Verdict,
    /// Since when two voters exist, or do not; `None` where nobody wrote it down.
    pub since: Option<u64>,
    /// Worst first.
    pub problems: Vec<Problem>,
}
