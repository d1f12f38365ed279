//! The wait for two voters, as `tandem status` sees them.

use std::time::Duration;

use crate::operate::cluster::{self, Cluster};
use crate::operate::health::{self, Verdict};
use crate::os::clock::Deadline;

/// Longest time from the creation of etcd's resource in a new cluster until both members vote.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// Longest wait for two voters in a dry run of `tandem setup`. It is long enough for one late answer of the cluster,
/// so that a late answer does not count as a problem.
pub(super) const A_LOOK: Duration = Duration::from_secs(15);
const OFTEN: Duration = Duration::from_secs(1);

/// Waits until two members vote. Returns the problems as an error if `patience` is over.
pub(super) fn wait(patience: Duration) -> Result<(), Vec<String>> {
    let end = Deadline::after(patience);
    loop {
        let wrong = match cluster::ask(None) {
            Ok(cluster) => problems(cluster),
            Err(failure) => vec![failure.0],
        };
        if wrong.is_empty() || end.has_passed() {
            return if wrong.is_empty() { Ok(()) } else { Err(wrong) };
        }
        end.sleep(OFTEN);
    }
}

/// Returns the problems that keep the cluster from being redundant, each with its command.
fn problems(mut cluster: Cluster) -> Vec<String> {
    // A collector that has not run yet is no reason to wait.
    cluster::take_own(&mut cluster);
    let health = health::assess(&cluster);
    if health.verdict == Verdict::Redundant {
        return Vec::new();
    }
    let found: Vec<String> = health
        .problems
        .into_iter()
        .map(|problem| match problem.command {
            Some(command) => format!("{}: {command}", problem.text),
            None => problem.text,
        })
        .collect();
    if found.is_empty() { vec!["there are no two voters yet: see 'tandem status'".to_owned()] } else { found }
}
