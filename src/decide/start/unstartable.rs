//! Data that reads as whole and that etcd does not start from, such as a database with damaged pages. Only etcd finds that
//! out, so its plain starts are counted. After as many as are tried quickly this node publishes that its data is broken,
//! where another node holds all that it could add. Then the peer continues with that, and this node joins it anew.
//!
//! This node publishes so of its own data only, and takes it back as soon as one of the conditions ends. Data that may be
//! the only copy is never given up: a sole voter's, a claiming voter's, that of a node which ran standalone, or was chosen.

use super::cold_start::{self, Chosen, Cluster, ColdStart};
use crate::decide::evidence::{Cib, DataDir, Evidence, FailedStarts, History, PublishedState};
use crate::decide::plan::{Effect, RunMode};
use crate::decide::reason::Rule;
use crate::decide::recovery::proof;
use crate::decide::standing::{Standing, classify};
use crate::decide::timing::QUICK_FAILURES;

/// Returns the effect that counts the plain start that has just failed; `None` if it is already counted.
pub(super) fn counted(evidence: &Evidence, mode: &RunMode) -> Option<Effect> {
    let container = evidence.container.known().filter(|_| *mode == RunMode::Normally)?;
    let last_at = container.broke_down_at.clone()?;
    let before = evidence.local.failed_starts.clone().unwrap_or_default();
    let failed =
        FailedStarts { count: before.count + 1, last_at, last_words: container.exit.clone().unwrap_or_default() };
    (failed.last_at != before.last_at).then_some(Effect::NoteFailedStart(failed))
}

/// Returns the effect that deletes the count of failed starts, because etcd serves from the present data.
pub(in crate::decide) fn forgotten(evidence: &Evidence) -> Option<Effect> {
    evidence.local.failed_starts.as_ref().map(|_| Effect::ForgetFailedStarts)
}

/// Returns the content of the data dir for a start; `None` if it is unknown. Data that was put back to an earlier state is
/// returned as damaged. So is data from which etcd does not start, if the peer holds all of it.
pub(super) fn usable_disk(evidence: &Evidence) -> Option<DataDir> {
    let disk = evidence.disk.known()?;
    if is_of_before_it_ran_alone(evidence, disk) {
        let why =
            "it is of a learner or of a member that left, and this node ran standalone since: its disk was put back";
        return Some(DataDir::Broken { why: why.to_owned() });
    }
    let failed = evidence.local.failed_starts.as_ref().filter(|failed| failed.count >= QUICK_FAILURES);
    let given_up = failed.filter(|_| is_given_up(evidence, disk).unwrap_or(false));
    Some(given_up.map_or_else(|| disk.clone(), broken))
}

/// Returns whether the data is not a voter's although the durable note records that this node ran standalone. Only a voter runs
/// standalone, so the disk was put back to an earlier state.
fn is_of_before_it_ran_alone(evidence: &Evidence, disk: &DataDir) -> bool {
    let is_no_voters = matches!(disk, DataDir::Present(history) if !history.is_voter());
    is_no_voters && evidence.last_note().is_some_and(|note| note.alone_since.is_some())
}

fn broken(failed: &FailedStarts) -> DataDir {
    let FailedStarts { count, last_words, .. } = failed;
    DataDir::Broken { why: format!("it reads as whole, and etcd failed to start from it {count} times: {last_words}") }
}

/// Returns whether data from which etcd does not start may be given up, because the peer holds all of it; `None` if a fact is
/// unknown.
fn is_given_up(evidence: &Evidence, disk: &DataDir) -> Option<bool> {
    let DataDir::Present(history) = disk else { return None };
    let cib = evidence.cib.known()?;
    let claims = evidence.boot_state().is_some_and(|memory| memory.voter.is_some());
    let is_chosen = Chosen::seen_in(evidence, cib) == Chosen::Me
        || proof::told_to(evidence)
        || evidence.confirmation_for(history).is_some();
    let may = !claims && !is_chosen;
    Some(may && (learns_from_who_serves(evidence, history) || beside_the_other_voter(evidence, cib, disk)?))
}

/// Returns whether this node is a learner of a sole voter that serves. All data of such a learner comes from the sole voter.
fn learns_from_who_serves(evidence: &Evidence, history: &History) -> bool {
    let Some(etcd) = evidence.peer_etcd.known() else { return false };
    let is_listed = etcd.members.iter().any(|member| member.id == history.member_id && member.is_learner);
    let is_learner = !history.has_left && history.learners.contains(&history.member_id);
    is_learner
        && is_listed
        && etcd.cluster_id == history.cluster_id
        && etcd.is_voter_with_leader()
        && etcd.has_one_voter()
}

/// Returns whether this node and the peer have the data of the only two voters of a cluster, and neither has run standalone
/// since. In that case the peer's log contains every entry that the two acknowledged. `None` if this node's own lineage is
/// unknown.
fn beside_the_other_voter(evidence: &Evidence, cib: &Cib, disk: &DataDir) -> Option<bool> {
    let Some(peer) = &cib.peer_record else { return Some(false) };
    let me = PublishedState::of(evidence.boot_id.clone(), disk.clone(), evidence.own_lineage()?);
    let answer = cold_start::answer(&me, peer, &Cluster::seen_in(evidence, cib));
    let other_votes = matches!(classify(&peer.disk), Standing::VoterBeside(_));
    let knows_no_less = !me.lineage.is_beyond(&peer.lineage);
    Some(answer == ColdStart::StartNormally(Rule::TwoPlainStarts) && other_votes && knows_no_less)
}
