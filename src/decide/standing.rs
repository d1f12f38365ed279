//! The standing of a node: the kind of member that its data makes it, how that data is started, and how a running member is
//! described.

use std::collections::BTreeSet;

use super::evidence::{DataDir, Etcd, Evidence, History, LogPosition, MemberId};
use super::plan::{Effect, Exit, RunMode};
use super::reason::{Health, Refusal};

/// Role of the member that owns a node's data: voter, learner or departed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No data, or data that etcd cannot read.
    Nothing,
    /// The only voter in the newest configuration of its own log.
    SoleVoter,
    /// One of two voters. The field is the other voter's id.
    VoterBeside(MemberId),
    /// One of three or more voters, or a voter next to the third voter (`super::third_voter`).
    VoterAmongMany,
    /// Member without a vote.
    Learner,
    /// Member that was removed from the member list.
    Departed,
}

/// Classifies the member that owns the data, from the data's own log. The log does not show which voter is the third voter: see
/// [`Evidence::standing`].
pub(super) fn classify(disk: &DataDir) -> Standing {
    let DataDir::Present(history) = disk else { return Standing::Nothing };
    if history.has_left {
        return Standing::Departed;
    }
    if !history.voters.contains(&history.member_id) {
        return Standing::Learner;
    }
    let others: BTreeSet<MemberId> = history.voters.iter().copied().filter(|id| *id != history.member_id).collect();
    match (others.len(), others.first()) {
        (0, _) => Standing::SoleVoter,
        (1, Some(other)) => Standing::VoterBeside(*other),
        _ => Standing::VoterAmongMany,
    }
}

/// Returns whether the data belongs to a voter. With any other data, a node cannot run standalone.
pub(super) fn is_voter(evidence: &Evidence, disk: &DataDir) -> bool {
    matches!(evidence.standing(disk), Standing::SoleVoter | Standing::VoterBeside(_))
}

/// Returns whether the data's member is in the member list of the running `etcd`. False if the data belongs to the member that
/// `etcd` itself runs. In that case one disk is a copy of the other, and two etcds of one member would each acknowledge writes of
/// their own.
pub(super) fn is_listed(disk: &DataDir, etcd: &Etcd) -> bool {
    match disk {
        DataDir::Present(history) => {
            !history.has_left
                && history.member_id != etcd.member_id
                && history.cluster_id == etcd.cluster_id
                && etcd.members.iter().any(|member| member.id == history.member_id)
        }
        DataDir::Blank | DataDir::Broken { .. } => false,
    }
}

/// Returns the term and index at which a history ends.
pub(super) fn position(history: &History) -> LogPosition {
    LogPosition { term: history.last_term, index: history.last_index }
}

pub(super) fn history_position(disk: &DataDir) -> LogPosition {
    match disk {
        DataDir::Present(history) => position(history),
        DataDir::Blank | DataDir::Broken { .. } => LogPosition::default(),
    }
}

/// Returns the effects of a plain start. For a sole voter, its whole log is first recorded as committed. Without that, the
/// removal of the other voter could be above the commit index, and etcd would wait for the removed member's vote.
pub(super) fn plain_start(disk: &DataDir) -> Vec<Effect> {
    let mut effects = vec![Effect::RunContainer(RunMode::Normally)];
    if let DataDir::Present(history) = disk
        && classify(disk) == Standing::SoleVoter
        && is_to_be_advanced(history)
    {
        effects.insert(0, Effect::AdvanceCommit);
    }
    effects
}

/// Returns whether a sole voter's log has entries that it does not record as committed.
fn is_to_be_advanced(history: &History) -> bool {
    history.commit_index < history.last_index
}

/// Returns the refusal if the database has entries beyond the end of the log. After a force, or after its entries are recorded as
/// committed, etcd would give new entries the numbers after the database's index. No etcd starts from a log with such a gap.
pub(super) fn database_is_ahead(disk: &DataDir) -> Option<Refusal> {
    let DataDir::Present(history) = disk else { return None };
    let touches_the_log = match classify(disk) {
        Standing::VoterBeside(_) => true,
        Standing::SoleVoter => is_to_be_advanced(history),
        Standing::Nothing | Standing::VoterAmongMany | Standing::Learner | Standing::Departed => false,
    };
    let database_index = history.database_ahead.filter(|_| touches_the_log)?;
    Some(Refusal::DatabaseAheadOfLog { last_index: history.last_index, database_index })
}

/// Returns the state of a serving member: sole voter, voter of two or more, or learner.
pub(super) fn health(etcd: &Etcd) -> Health {
    match (etcd.is_learner, etcd.voters().count()) {
        (true, _) => Health::Learner,
        (false, 1) => Health::SoleVoter,
        (false, 0 | 2) => Health::VoterOfTwo,
        (false, voters) => Health::VoterAmong { voters },
    }
}

/// Returns the state of a member that serves clients while etcd's auth rejects this agent.
pub(super) fn unseen(evidence: &Evidence) -> Health {
    Health::NoPermission { user: evidence.own_refuses.as_ref().and_then(|refuses| refuses.user.clone()) }
}

/// Returns the result of a monitor for a running etcd. It depends on whether Pacemaker promoted this instance, because Pacemaker
/// expects its own promotion. etcd's vote does not matter.
pub(super) fn running_exit(evidence: &Evidence) -> Exit {
    let promoted = evidence.boot_state().is_some_and(|memory| memory.promoted);
    if evidence.promotable && promoted { Exit::Promoted } else { Exit::Success }
}
