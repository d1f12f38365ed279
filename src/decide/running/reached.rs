//! How far etcd has reached, published for good: a node that is alone finds by it that its disk was put back.

use crate::base::Fact;
use crate::decide::evidence::{DataDir, Etcd, Evidence, LogPosition, Reached};
use crate::decide::plan::Effect;
use crate::decide::standing::{Standing, classify};

/// Number of log entries after which the leader publishes its position again. It is large because each change of the CIB is
/// written to disk.
const LAG: u64 = 10_000;

/// Publishes the leader's log position if it differs enough from the published one. It does if the number of voters, the cluster
/// or the number of forced new clusters has changed, or if many entries were written since.
pub(super) fn as_seen(evidence: &Evidence, etcd: &Etcd) -> Option<Effect> {
    if !etcd.leads() || etcd.has_more_than_two_voters() {
        return None;
    }
    let seen = position_of(evidence, etcd, etcd.is_redundant())?;
    let differs = |said: &Reached| {
        let is_another = (said.cluster_id, said.forks) != (seen.cluster_id, seen.forks);
        let has_moved = seen.position.index >= said.position.index.saturating_add(LAG);
        let is_no_less = seen.position.index >= said.position.index;
        is_another || has_moved || (said.is_redundant != seen.is_redundant && is_no_less)
    };
    is_news(evidence, |said| said.is_none_or(differs)).then_some(Effect::SetReached(seen))
}

/// Publishes the leader's position before a learner becomes a voter, marked as a position of two voters. At the first writes that
/// both voters acknowledge, no published record lists the new voter yet.
pub(super) fn before_a_promotion(evidence: &Evidence, leader: &Etcd) -> Option<Effect> {
    let seen = position_of(evidence, leader, true)?;
    let differs = |said: &Reached| {
        // The last one may be of the time before the peer left.
        let is_another = (said.cluster_id, said.forks, said.is_redundant) != (seen.cluster_id, seen.forks, true);
        seen.position.index > said.position.index || is_another && seen.position.index == said.position.index
    };
    let has_one_voter = leader.voters().count() == 1;
    (has_one_voter && is_news(evidence, |said| said.is_none_or(differs))).then_some(Effect::SetReached(seen))
}

fn position_of(evidence: &Evidence, etcd: &Etcd, is_redundant: bool) -> Option<Reached> {
    let forks = evidence.own_lineage()?.forks;
    Some(Reached { cluster_id: etcd.cluster_id, forks, position: etcd.position(), is_redundant })
}

/// Publishes, after a sole voter has stopped, the position at which its log ends. Its next start counts the whole log as
/// committed.
pub(super) fn at_the_end(evidence: &Evidence) -> Option<Effect> {
    let disk = evidence.disk.known().filter(|disk| classify(disk) == Standing::SoleVoter)?;
    let DataDir::Present(history) = disk else { return None };
    let seen = Reached {
        cluster_id: history.cluster_id,
        forks: evidence.own_lineage()?.forks,
        position: LogPosition { term: history.last_term, index: history.last_index },
        is_redundant: false,
    };
    // What has not served yet publishes nothing: it may have been put back, or restored.
    let is_of_it = |said: &Reached| (said.cluster_id, said.forks) == (seen.cluster_id, seen.forks);
    let is_further = |said: &Reached| is_of_it(said) && said.position.index < seen.position.index;
    is_news(evidence, |said| said.is_some_and(is_further)).then_some(Effect::SetReached(seen))
}

/// Returns whether a position should be published. `compare` decides that from the published position. Returns false if the agent did
/// not read the published position.
fn is_news(evidence: &Evidence, compare: impl FnOnce(Option<&Reached>) -> bool) -> bool {
    evidence.cib.known().is_some_and(|cib| match &cib.reached {
        Fact::NotAsked => false,
        Fact::Known(said) => compare(Some(said)),
        Fact::Absent | Fact::Unknown(_) => compare(None),
    })
}
