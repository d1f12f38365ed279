//! The standing of a node: the kind of member that its data makes it, how that data is started, and how a running member is
//! described.

use std::collections::BTreeSet;

use super::evidence::{DataDir, Etcd, Evidence, History, LogPosition, MemberId};
use super::plan::{Effect, Exit, RunMode};
use super::reason::{Health, Refusal};

/// Kind of member that a record's data belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No data, or data that etcd cannot read.
    Nothing,
    /// The only voter of the newest configuration that it holds.
    SoleVoter,
    /// A voter next to one other.
    VoterBeside(MemberId),
    /// A voter among three or more, or next to the third voter (`super::third_voter`).
    VoterAmongMany,
    /// Listed without a vote.
    Learner,
    /// No longer listed.
    Departed,
}

/// Classifies this member by the data dir's history. It knows nothing of third voters: see [`Evidence::standing`].
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

/// Returns whether the data is a voter's and a node could run standalone from it.
pub(super) fn is_voter(evidence: &Evidence, disk: &DataDir) -> bool {
    matches!(evidence.standing(disk), Standing::SoleVoter | Standing::VoterBeside(_))
}

/// Returns whether the data dir holds a member that the living cluster, to which `etcd` belongs, still lists. A data dir
/// that holds `etcd`'s own member is a copy of its disk. Two etcds of one member would each acknowledge writes of their own.
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

/// Returns the end of a history.
pub(super) fn position(history: &History) -> LogPosition {
    LogPosition { term: history.last_term, index: history.last_index }
}

pub(super) fn history_position(disk: &DataDir) -> LogPosition {
    match disk {
        DataDir::Present(history) => position(history),
        DataDir::Blank | DataDir::Broken { .. } => LogPosition::default(),
    }
}

/// Returns the effects of a plain start. A sole voter's commit index is advanced first: the entry that removed the other
/// voter may lie above the recorded commit index, and etcd would then wait for the vote of a member that was removed.
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

/// Refuses where the database reaches beyond the end of the log. A force or an advance would make etcd number from the
/// database's index on, and no etcd starts again from a log with such a gap.
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

/// Returns the state of a serving member.
pub(super) fn health(etcd: &Etcd) -> Health {
    match (etcd.is_learner, etcd.voters().count()) {
        (true, _) => Health::Learner,
        (false, 1) => Health::SoleVoter,
        (false, 0 | 2) => Health::VoterOfTwo,
        (false, voters) => Health::VoterAmong { voters },
    }
}

/// Returns the state of a member that refuses its state to this agent.
pub(super) fn unseen(evidence: &Evidence) -> Health {
    Health::NoPermission { user: evidence.own_refuses.as_ref().and_then(|refuses| refuses.user.clone()) }
}

/// Returns the answer of a monitor for an etcd that runs. It depends on Pacemaker's promotion of this instance, because
/// Pacemaker asks for that; the vote is etcd's.
pub(super) fn running_exit(evidence: &Evidence) -> Exit {
    let promoted = evidence.boot_state().is_some_and(|memory| memory.promoted);
    if evidence.promotable && promoted { Exit::Promoted } else { Exit::Success }
}
