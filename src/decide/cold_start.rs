//! Rule R2: two nodes that start together, no living etcd between them. Both compute the same answer from the same
//! two records, each from its own side.

use std::collections::BTreeSet;

use super::reason::{Refusal, Rule};
use super::snapshot::{DataDir, History, MemberId, Record};

/// What a record's data is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// No data, or data that etcd cannot read.
    Nothing,
    /// The only voter of the newest configuration that it holds.
    SoleVoter,
    /// A voter beside one other.
    VoterBeside(MemberId),
    /// A voter among three or more.
    VoterAmongMany,
    /// Listed without a vote.
    Learner,
    /// No longer listed.
    Departed,
}

/// What this node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    StartNormally(Rule),
    ForceNewCluster(Rule),
    Bootstrap(Rule),
    /// Wait until the peer serves, then follow it (rule R1).
    FollowThePeer(Rule),
    Refuse(Refusal),
}

/// What the data dir's history makes of this member.
pub(super) fn classify(disk: &DataDir) -> Data {
    let DataDir::Present(history) = disk else { return Data::Nothing };
    if history.has_left {
        return Data::Departed;
    }
    if !history.voters.contains(&history.member_id) {
        return Data::Learner;
    }
    let others: BTreeSet<MemberId> = history.voters.iter().copied().filter(|id| *id != history.member_id).collect();
    match (others.len(), others.first()) {
        (0, _) => Data::SoleVoter,
        (1, Some(other)) => Data::VoterBeside(*other),
        _ => Data::VoterAmongMany,
    }
}

/// The table. Member ids are never given twice, so two voters that name each other have one history, whatever else
/// is written anywhere: two plain starts keep every entry of it, and nothing is wiped or forced.
///
/// `i_am_first` orders the two nodes by name; `cluster_recorded` says that data existed once.
pub(super) fn answer(me: &Record, peer: &Record, i_am_first: bool, cluster_recorded: bool) -> Answer {
    use Data::{Departed, Learner, Nothing, SoleVoter, VoterAmongMany, VoterBeside};
    match (classify(&me.disk), classify(&peer.disk)) {
        (VoterAmongMany, _) | (_, VoterAmongMany) => Answer::Refuse(Refusal::MoreThanTwoVoters),
        (VoterBeside(a), VoterBeside(b)) if lists(me, a, peer) && lists(peer, b, me) => {
            Answer::StartNormally(Rule::TwoPlainStarts)
        }
        // The promotion is in one log and not yet in the other.
        (VoterBeside(other), Learner) if lists(me, other, peer) => Answer::StartNormally(Rule::TwoPlainStarts),
        (Learner, VoterBeside(other)) if lists(peer, other, me) => Answer::StartNormally(Rule::TwoPlainStarts),
        (SoleVoter, SoleVoter) => Answer::Refuse(Refusal::HistoriesSplit),
        (SoleVoter, _) => Answer::StartNormally(Rule::SoleVoter),
        (_, SoleVoter) => Answer::FollowThePeer(Rule::PeerIsSoleVoter),
        (VoterBeside(_), Nothing | Departed) => voter_alone_with_data(me, peer),
        (Nothing | Departed, VoterBeside(_)) => Answer::FollowThePeer(Rule::PeerHasTheVotersData),
        (VoterBeside(_), VoterBeside(_) | Learner) | (Learner, VoterBeside(_)) => unrelated(me, peer),
        (Nothing, Nothing) if cluster_recorded => Answer::Refuse(Refusal::DataOfARecordedClusterIsGone),
        (Nothing, Nothing) if i_am_first => Answer::Bootstrap(Rule::FirstByNameBootstraps),
        (Nothing, Nothing) => Answer::FollowThePeer(Rule::FirstByNameBootstraps),
        (Nothing | Learner | Departed, Nothing | Learner | Departed) => Answer::Refuse(Refusal::NoVotersData),
    }
}

/// The peer has nothing that could hold more than we do: everything acknowledged in a cluster of two is in our log.
fn voter_alone_with_data(me: &Record, peer: &Record) -> Answer {
    if peer.lineage.forks > me.lineage.forks {
        return Answer::Refuse(Refusal::PeerWentOnAloneAndLostItsData { peer_forks: peer.lineage.forks });
    }
    Answer::ForceNewCluster(Rule::PeerHasNoData)
}

/// Two voters' data that do not name each other: the one with more forks behind it is the newer history.
fn unrelated(me: &Record, peer: &Record) -> Answer {
    match (classify(&me.disk), me.lineage.forks.cmp(&peer.lineage.forks)) {
        (Data::VoterBeside(_), std::cmp::Ordering::Greater) => Answer::ForceNewCluster(Rule::PeerWasLeftBehind),
        (_, std::cmp::Ordering::Less) => Answer::FollowThePeer(Rule::PeerWentOnAlone),
        _ => Answer::Refuse(Refusal::HistoriesSplit),
    }
}

/// Whether `other`, the second voter that `lister` names, is the member whose data `listed` holds.
fn lists(lister: &Record, other: MemberId, listed: &Record) -> bool {
    match (history(lister), history(listed)) {
        (Some(lister), Some(listed)) => listed.member_id == other && listed.cluster_id == lister.cluster_id,
        _ => false,
    }
}

fn history(record: &Record) -> Option<&History> {
    match &record.disk {
        DataDir::Present(history) => Some(history),
        DataDir::Blank | DataDir::Broken { .. } => None,
    }
}
