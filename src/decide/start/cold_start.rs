//! Rule R2: two nodes that start together, no living etcd between them. Both compute the same answer from the same
//! two records, each from its own side.

use super::preferred::{self, Kept, Known};
use super::put_back::{self, are_copies, is_behind, left_more, proves_put_back};
use crate::decide::evidence::{
    Cib, DataDir, Evidence, History, Lineage, MemberId, PublishedState, Reached, ThirdVoter,
};
use crate::decide::reason::{Refusal, Rule};
use crate::decide::standing::{Standing, classify};
use crate::decide::third_voter::beside;

/// Result of the table of cold starts (rule R2) for this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::decide) enum ColdStart {
    StartNormally(Rule),
    ForceNewCluster(Rule),
    Bootstrap(Rule),
    /// Wait until the peer serves, and then join its cluster (rule R1).
    FollowThePeer(Rule),
    Refuse(Refusal),
}

/// Facts of the cluster that the table of cold starts uses in addition to the two nodes' records.
#[derive(Clone, Copy, Debug)]
pub(in crate::decide) struct Cluster<'a> {
    /// This node's name, and the peer's.
    pub(in crate::decide) names: [&'a str; 2],
    /// True if the CIB records that a cluster once existed.
    pub(in crate::decide) recorded: bool,
    /// Largest number of forks (forced new clusters) that any node recorded permanently. It stays as it is if a node loses its
    /// disk.
    pub(in crate::decide) forks: u64,
    pub(in crate::decide) chosen: Chosen,
    /// Log position that the leader last published.
    pub(in crate::decide) reached: Option<&'a Reached>,
    /// Lineage (see [`Lineage`]) in this node's own attribute, which this node recorded earlier.
    pub(in crate::decide) recorded_of_me: Option<&'a Lineage>,
    /// Lineage (see [`Lineage`]) in the peer's attribute, which the peer recorded earlier.
    pub(in crate::decide) recorded_of_peer: Option<&'a Lineage>,
    /// Third voter, outside of the pair; `None` unless an administrator named one.
    pub(in crate::decide) third_voter: Option<&'a ThirdVoter>,
}

impl<'a> Cluster<'a> {
    pub(in crate::decide) fn seen_in(evidence: &'a Evidence, cib: &'a Cib) -> Self {
        Self {
            names: [&evidence.me.name, evidence.peer_name()],
            recorded: cib.cluster_recorded,
            forks: cib.lineage.forks,
            chosen: Chosen::seen_in(evidence, cib),
            reached: cib.reached.known(),
            recorded_of_me: cib.own_lineage.as_ref(),
            recorded_of_peer: cib.peer_lineage.as_ref(),
            third_voter: cib.third_voter.as_ref(),
        }
    }

    /// Returns whether the peer serves the history that the parameters of both nodes prefer.
    pub(in crate::decide) fn keeps_what_serves(&self, me: &PublishedState, peer: &PublishedState) -> bool {
        preferred::serves_there(me, peer, self.names, self.forks)
    }

    fn known(&self) -> Known<'a> {
        let recorded = [self.recorded_of_me, self.recorded_of_peer];
        Known { names: self.names, forks: self.forks, recorded, reached: self.reached }
    }
}

/// Node that an operator chose in `etcd_primary` after the two histories split. The data on this node is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decide) enum Chosen {
    Nobody,
    Me,
    ThePeer,
}

impl Chosen {
    pub(in crate::decide) fn seen_in(evidence: &Evidence, cib: &Cib) -> Self {
        match cib.primary.as_deref() {
            Some(name) if name == evidence.me.name => Self::Me,
            Some(name) if evidence.peer.as_ref().is_some_and(|peer| peer.name == name) => Self::ThePeer,
            Some(_) | None => Self::Nobody,
        }
    }
}

/// Returns the result of the table of cold starts (rule R2) for two nodes' records.
///
/// Member ids are never reused. So two voters that name each other have one history, even if forks are recorded. Two plain starts
/// keep every entry of that history, and the agent wipes and forces nothing.
///
/// If the CIB records more forks (forced new clusters) than a node's data has, another node continued without that data, and the
/// data is not the newest. If the node that continued has no data now, its writes are lost. Only an operator can give up these
/// writes.
pub(in crate::decide) fn answer(me: &PublishedState, peer: &PublishedState, cluster: &Cluster<'_>) -> ColdStart {
    use Standing::{Departed, Learner, Nothing, SoleVoter, VoterAmongMany, VoterBeside};
    let forks = cluster.forks.max(me.lineage.forks).max(peer.lineage.forks);
    let lost_forks = forks > me.lineage.forks && !left_to(peer, me) && !peer.joins;
    let recorded = cluster.recorded_of_peer.map_or(0, |recorded| recorded.forks);
    let peer_lost_a_fork = forks > me.lineage.forks && recorded > peer.lineage.forks && !peer.joins;
    let i_am_behind = || is_behind(me, cluster.recorded_of_me, cluster.reached);
    let peer_is_behind = || is_behind(peer, cluster.recorded_of_peer, cluster.reached);
    let put_back = || put_back(me, cluster.chosen, put_back::refusal(me, peer));
    let two_plain_starts = || {
        let are_behind = i_am_behind() && peer_is_behind();
        if are_behind { put_back() } else { ColdStart::StartNormally(Rule::TwoPlainStarts) }
    };
    // Two histories: an operator's choice counts, and without one the parameters of both nodes.
    let split = || match (cluster.chosen, preferred::kept(me, peer, &cluster.known())) {
        (Chosen::Nobody, Some(Kept::Mine)) => ColdStart::ForceNewCluster(Rule::PrimaryIsKept),
        (Chosen::Nobody, Some(Kept::ThePeers)) => ColdStart::FollowThePeer(Rule::PeerIsKept),
        (chosen, _) => chosen_of_two(chosen),
    };
    if are_copies(me, peer) {
        let member = history(me).map(|me| me.member_id).unwrap_or_default();
        return ColdStart::Refuse(Refusal::CopiedDisk { member });
    }
    match (beside(cluster.third_voter, classify(&me.disk)), beside(cluster.third_voter, classify(&peer.disk))) {
        // Their majority decides, but not over what was acknowledged without them: the third voter may be what lets old data serve.
        (VoterAmongMany, SoleVoter) if peer.lineage.is_beyond(&me.lineage) => {
            ColdStart::FollowThePeer(Rule::PeerWentOnAlone)
        }
        (VoterAmongMany | SoleVoter | VoterBeside(_), Nothing | Departed) if lost_forks || peer_lost_a_fork => {
            ColdStart::Refuse(Refusal::PeerWentOnAloneAndLostItsData { peer_forks: forks })
        }
        // Its disk was put back to when it learned from this one.
        (SoleVoter, Learner) if peer_lost_a_fork => {
            ColdStart::Refuse(Refusal::PeerWentOnAloneAndLostItsData { peer_forks: forks })
        }
        // Plain Raft: a voter or learner there starts plainly, and their majority decides.
        (VoterAmongMany, _) | (VoterBeside(_) | Learner, VoterAmongMany) => {
            ColdStart::StartNormally(Rule::MoreThanTwoVoters)
        }
        (SoleVoter, VoterAmongMany) if peer.lineage.is_beyond(&me.lineage) => chosen_of_two(cluster.chosen),
        // Raft elects the longer log, which has to be as long as it once was.
        (VoterBeside(a), VoterBeside(b)) if lists(me, a, peer) && lists(peer, b, me) => two_plain_starts(),
        // The promotion is in one log and not yet in the other, or one disk went back to before it.
        (VoterBeside(other), Learner) if lists(me, other, peer) => two_plain_starts(),
        (Learner, VoterBeside(other)) if lists(peer, other, me) => two_plain_starts(),
        (SoleVoter, SoleVoter) => split(),
        (SoleVoter, VoterBeside(other)) if went_its_own_way(peer, other, me) => split(),
        (VoterBeside(other), SoleVoter) if went_its_own_way(me, other, peer) => split(),
        (SoleVoter, _) if proves_put_back(peer, me) || i_am_behind() => put_back(),
        (_, SoleVoter) if proves_put_back(me, peer) || peer_is_behind() => put_back(),
        (SoleVoter, _) => ColdStart::StartNormally(Rule::SoleVoter),
        // The peer has come back since it published that, as the other voter: its start, which publishes that at its end,
        // awaits our vote.
        (VoterBeside(other), Departed) if !lists(me, other, peer) => ColdStart::StartNormally(Rule::PeerJoinedSince),
        (VoterBeside(other), VoterBeside(_) | Learner) if joined_since(me, other, peer, cluster.chosen) => {
            ColdStart::StartNormally(Rule::PeerJoinedSince)
        }
        (_, SoleVoter) => ColdStart::FollowThePeer(Rule::PeerIsSoleVoter),
        (VoterBeside(_), Nothing | Departed) if left_more(peer, me) || i_am_behind() => put_back(),
        (Nothing | Departed, VoterBeside(_)) if left_more(me, peer) || peer_is_behind() => put_back(),
        // The peer may have removed this member, and taken writes as the only voter.
        (VoterBeside(_), Nothing) if me.left && !peer.joins => {
            ColdStart::Refuse(Refusal::PeerMayHaveGoneOnAndLostItsData)
        }
        // It has been promoted since it said that it joins, so it has data, and its start awaits our vote.
        (VoterBeside(_), Nothing) if peer.joins => ColdStart::StartNormally(Rule::PeerJoinedSince),
        // The peer has nothing that could hold more than we do: all that a cluster of two acknowledged is in our log.
        (VoterBeside(_), Nothing | Departed) => ColdStart::ForceNewCluster(Rule::PeerHasNoData),
        (Nothing | Departed, VoterBeside(_) | VoterAmongMany) => ColdStart::FollowThePeer(Rule::PeerHasTheVotersData),
        (VoterBeside(_), VoterBeside(_) | Learner) | (Learner, VoterBeside(_)) => {
            unrelated(me, peer, cluster.chosen, split)
        }
        (Nothing, Nothing) if cluster.recorded || is_broken(me) || is_broken(peer) => {
            ColdStart::Refuse(Refusal::DataOfARecordedClusterIsGone)
        }
        (Nothing, Nothing) if cluster.names[0] < cluster.names[1] => ColdStart::Bootstrap(Rule::FirstByNameBootstraps),
        (Nothing, Nothing) => ColdStart::FollowThePeer(Rule::FirstByNameBootstraps),
        (Nothing | Learner | Departed, Nothing | Learner | Departed) => ColdStart::Refuse(Refusal::NoVotersData),
    }
}

/// Returns the result of the table of cold starts (rule R2) on this node. It is a refusal in two cases that the two nodes'
/// records do not show.
///
/// In the first case, this node knows that its own data was put back to an earlier state. It starts only if an operator chose its
/// data, or if it is one of two voters and the peer's log reaches far enough, because Raft elects the peer then. In the second
/// case, `two_histories=primary` would continue this node's history, but the peer's etcd may run.
pub(in crate::decide) fn answer_here(
    evidence: &Evidence,
    me: &PublishedState,
    peer: &PublishedState,
    cluster: &Cluster<'_>,
) -> ColdStart {
    let answer = match answer(me, peer, cluster) {
        ColdStart::ForceNewCluster(Rule::PrimaryIsKept) if !evidence.peer_etcd.is_absent() => {
            ColdStart::Refuse(Refusal::HistoriesSplit)
        }
        answer => answer,
    };
    let reached = history(me).and_then(|me| Some((me, put_back::put_back_from(evidence, me)?)));
    if let (ColdStart::StartNormally(Rule::TwoPlainStarts), Some((_, reached))) = (&answer, reached)
        && cluster.chosen == Chosen::Nobody
        && put_back::ends_before_position(peer, reached)
    {
        return ColdStart::Refuse(put_back::refusal_of_two(me, peer, reached));
    }
    let rests_on_it = match &answer {
        ColdStart::StartNormally(_) => classify(&me.disk) == Standing::SoleVoter,
        ColdStart::ForceNewCluster(rule) => *rule != Rule::ChosenPrimary,
        ColdStart::Bootstrap(_) | ColdStart::FollowThePeer(_) | ColdStart::Refuse(_) => false,
    };
    match reached.filter(|_| rests_on_it) {
        Some((me, reached)) => ColdStart::Refuse(put_back::alone(me, reached)),
        None => answer,
    }
}

/// Returns whether `voter` may have continued in a fork (forced new cluster) that the sole voter's data does not know. `voter`
/// lists `other` as its second voter. An operator's confirmation allows such a fork.
///
/// `voter` has to have recorded a fork that the sole voter's data lacks. In addition, either `voter` claims to run standalone, or
/// its second voter is not the sole voter's member. The record of `voter` may still show two voters, because a node's record
/// shows the fork's only voter only after its next start.
fn went_its_own_way(voter: &PublishedState, other: MemberId, sole: &PublishedState) -> bool {
    let may_be_done = voter.claims || !lists(voter, other, sole);
    voter.lineage.is_beyond(&sole.lineage) && may_be_done
}

/// Returns whether the peer has left a cluster in which this member stayed as the voter. In that case the two have one history. A
/// recorded fork (forced new cluster) does not count, because it was not carried out.
pub(in crate::decide) fn left_to(peer: &PublishedState, me: &PublishedState) -> bool {
    history(peer).is_some_and(|peer| peer.has_left) && counts_as_voter(peer, me)
}

/// Returns whether the peer's record is older than its last join. The record is of an earlier member, and the peer has since
/// joined as `other`, the second voter in this node's record.
///
/// Both nodes have one history. This node's log is the newer one, because it no longer contains the earlier member. The peer's
/// start waits for this node's vote.
fn joined_since(me: &PublishedState, other: MemberId, peer: &PublishedState, chosen: Chosen) -> bool {
    let is_earlier = counts_as_voter(peer, me) && !lists(me, other, peer);
    is_earlier && me.lineage.forks == peer.lineage.forks && !peer.claims && chosen == Chosen::Nobody
}

/// Returns whether the peer's record of this boot shows that the peer has not run standalone. The peer votes next to this member,
/// and has no claim to run standalone. A node publishes that claim before it runs standalone.
pub(in crate::decide) fn still_votes_beside(peer: &PublishedState, me: &PublishedState) -> bool {
    matches!(classify(&peer.disk), Standing::VoterBeside(other) if lists(peer, other, me)) && !peer.claims
}

/// Returns whether the peer's record of this boot shows that its member is a learner next to this sole voter. To become that, the
/// peer gave up its own data.
pub(in crate::decide) fn learns_from(peer: &PublishedState, me: &PublishedState) -> bool {
    let is_one_cluster = |peer: &History, me: &History| {
        peer.cluster_id == me.cluster_id && (peer.voters.is_empty() || peer.voters.contains(&me.member_id))
    };
    let histories = history(peer).zip(history(me));
    classify(&peer.disk) == Standing::Learner && histories.is_some_and(|(peer, me)| is_one_cluster(peer, me))
}

/// Returns the result for two nodes with data that does not name the other node's member. The data with more forks (forced new
/// clusters) has the newer history.
fn unrelated(
    me: &PublishedState,
    peer: &PublishedState,
    chosen: Chosen,
    split: impl FnOnce() -> ColdStart,
) -> ColdStart {
    match (classify(&me.disk), me.lineage.forks.cmp(&peer.lineage.forks)) {
        (Standing::VoterBeside(_), std::cmp::Ordering::Greater) => ColdStart::ForceNewCluster(Rule::PeerWasLeftBehind),
        (_, std::cmp::Ordering::Less) => ColdStart::FollowThePeer(Rule::PeerWentOnAlone),
        _ if classify(&me.disk) == Standing::Learner && chosen == Chosen::Me => {
            ColdStart::Refuse(Refusal::NoVotersData)
        }
        _ => split(),
    }
}

/// Returns the result that follows the operator's choice between two histories of which neither is newer. The chosen node forces
/// a new cluster and records this fork, so that its history counts as the newer one from then on.
fn chosen_of_two(chosen: Chosen) -> ColdStart {
    match chosen {
        Chosen::Nobody => ColdStart::Refuse(Refusal::HistoriesSplit),
        Chosen::Me => ColdStart::ForceNewCluster(Rule::ChosenPrimary),
        Chosen::ThePeer => ColdStart::FollowThePeer(Rule::PeerIsChosenPrimary),
    }
}

/// Returns the table's result if a disk was put back to an earlier state. An operator has to choose one node's data, and it has
/// to be a voter's.
fn put_back(me: &PublishedState, chosen: Chosen, refusal: Refusal) -> ColdStart {
    match chosen {
        Chosen::Nobody => ColdStart::Refuse(refusal),
        Chosen::Me if matches!(classify(&me.disk), Standing::SoleVoter | Standing::VoterBeside(_)) => {
            ColdStart::ForceNewCluster(Rule::ChosenPrimary)
        }
        Chosen::Me => ColdStart::Refuse(Refusal::NoVotersData),
        Chosen::ThePeer => ColdStart::FollowThePeer(Rule::PeerIsChosenPrimary),
    }
}

/// Returns whether the data of `lister` names the member that owns `voter`'s data as a voter of the same cluster.
pub(in crate::decide) fn counts_as_voter(lister: &PublishedState, voter: &PublishedState) -> bool {
    match (history(lister), history(voter)) {
        (Some(lister), Some(voter)) => {
            voter.cluster_id == lister.cluster_id && lister.voters.contains(&voter.member_id)
        }
        _ => false,
    }
}

/// Returns whether `other`, the second voter that `lister` names, is the member that owns `listed`'s data.
fn lists(lister: &PublishedState, other: MemberId, listed: &PublishedState) -> bool {
    match (history(lister), history(listed)) {
        (Some(lister), Some(listed)) => listed.member_id == other && listed.cluster_id == lister.cluster_id,
        _ => false,
    }
}

/// Returns whether the record describes a damaged data dir. Such a data dir once held a cluster's data.
fn is_broken(record: &PublishedState) -> bool {
    matches!(record.disk, DataDir::Broken { .. })
}

fn history(record: &PublishedState) -> Option<&History> {
    match &record.disk {
        DataDir::Present(history) => Some(history),
        DataDir::Blank | DataDir::Broken { .. } => None,
    }
}
