//! Because of what: each decision's reason, as an enum so that tests match on meaning, with the sentence that
//! becomes the log line and the exit reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::snapshot::{MemberId, NodeName, Position};

/// Why a plan is what it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A rule of a start applies.
    Rule { rule: Rule, peer: NodeName },
    /// Something is awaited.
    Waiting(Wait),
    /// Nothing is done, and the action fails for now: what stands in the way, and what resolves it.
    Refused { refusal: Refusal, peer: NodeName },
    /// A step on the way.
    Step(Step),
    /// The state of a running member.
    Running(Health),
    /// The notification asks nothing of this node.
    NothingToDo,
}

/// The rules of a start and of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    AlreadyServing,
    PeerServesAndListsThisMember,
    PeerServesAndThisDataIsNotIts,
    PeerServesAndThisNodeIsBlank,
    TwoPlainStarts,
    SoleVoter,
    PeerIsSoleVoter,
    PeerHasTheVotersData,
    PeerHasNoData,
    PeerWentOnAlone,
    PeerWasLeftBehind,
    FirstByNameBootstraps,
    SurvivorGoesOnAlone,
    OperatorConfirmed,
    PeerCameBack,
    PeerActiveButWithoutLeader,
    OnlyNode,
}

/// What is awaited.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// The record that was just published, to be visible to everyone.
    OwnRecord,
    PeerRecord {
        peer: NodeName,
    },
    PeerToServe {
        peer: NodeName,
    },
    /// Our etcd, to answer with a leader.
    OwnLeader,
    /// Our etcd, to answer.
    OwnAnswer {
        why: String,
    },
    /// A learner, to come close to the leader.
    LearnerToCatchUp {
        lag: u64,
    },
    /// A learner that was listed or started a moment ago, to answer for the first time.
    Learner,
    /// Before an action fails: Pacemaker's tries are counted, and what stands in the way may pass.
    BeforeFailing {
        refusal: Refusal,
        peer: NodeName,
    },
    /// The peer's vote for our start; etcd runs until then without a leader.
    PeerVote {
        peer: NodeName,
    },
    EtcdToStop,
}

/// A step on the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    AnnounceGoingOnAlone { peer: NodeName, position: Position },
    StopBeforeForce,
    AdvanceAndForce,
    ListPeerAsLearner { peer: NodeName },
    RemoveStaleEntry { id: MemberId },
    ListOurselvesAsLearner,
    PromoteLearner { peer: NodeName, lag: u64 },
    HandOverLeadership { peer: NodeName },
    LeaveBeforeStop { peer: NodeName },
    StopEtcd,
    AskPeerToPromote { peer: NodeName },
}

/// The state of a running member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    VoterOfTwo,
    SoleVoter,
    Learner,
    /// No leader, and the peer's fate is open: waiting is right.
    LeaderlessPeerNotConfirmed {
        peer: NodeName,
    },
    NotRunning,
    Stopped,
}

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    CibUnreadable {
        why: String,
    },
    DiskUnreadable {
        why: String,
    },
    MoreThanTwoVoters,
    HistoriesSplit,
    PeerWentOnAloneAndLostItsData {
        peer_forks: u64,
    },
    DataOfARecordedClusterIsGone,
    NoVotersData,
    /// Voter data, the peer is confirmed gone, and nothing proves that it did not go on without us.
    NoProofThatPeerDidNotGoOn {
        position: Position,
    },
    LearnerAlone {
        position: Position,
    },
    DepartedAlone {
        position: Position,
    },
    BlankAlone,
    BrokenAlone {
        why: String,
    },
    PeerSaysNothing,
    PeerDoesNotServe,
    PeerNotConfirmed {
        why: String,
    },
    EtcdExited {
        last_words: String,
    },
    EtcdDoesNotAnswer {
        why: String,
    },
    ContainerUnknown {
        why: String,
    },
    NotAVoterYet,
    StillRunning,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { rule, peer } => rule.write(f, peer),
            Self::Waiting(wait) => write!(f, "waiting for {wait}"),
            Self::Refused { refusal, peer } => refusal.write(f, peer),
            Self::Step(step) => write!(f, "{step}"),
            Self::Running(health) => write!(f, "{health}"),
            Self::NothingToDo => write!(f, "nothing to do"),
        }
    }
}

impl Rule {
    fn write(self, f: &mut fmt::Formatter<'_>, peer: &str) -> fmt::Result {
        match self {
            Self::AlreadyServing => write!(f, "R0: etcd runs here and answers"),
            Self::PeerServesAndListsThisMember => {
                write!(f, "R1: {peer} serves and lists this member: starting normally, nothing is wiped")
            }
            Self::PeerServesAndThisDataIsNotIts => {
                write!(
                    f,
                    "R1: {peer} serves and this data is not a member's of its cluster: joining as a learner, the data dir is kept as a backup"
                )
            }
            Self::PeerServesAndThisNodeIsBlank => {
                write!(f, "R1: {peer} serves and this node holds no data: joining as a learner")
            }
            Self::TwoPlainStarts => {
                write!(
                    f,
                    "R2: this node and {peer} hold the data of two voters that name each other: both start normally, nothing is wiped or forced"
                )
            }
            Self::SoleVoter => write!(f, "R2: this node is the sole voter of its data: starting normally"),
            Self::PeerIsSoleVoter => write!(f, "R2: {peer} is the sole voter: following it as a learner"),
            Self::PeerHasTheVotersData => write!(f, "R2: {peer} holds the voters' data: following it as a learner"),
            Self::PeerHasNoData => {
                write!(
                    f,
                    "R2: {peer} holds no data and this node holds all that was acknowledged: going on alone with it"
                )
            }
            Self::PeerWentOnAlone => write!(f, "R2: {peer} went on alone since this data was written: following it"),
            Self::PeerWasLeftBehind => {
                write!(f, "R2: this node went on alone since {peer}'s data was written: going on with ours")
            }
            Self::FirstByNameBootstraps => {
                write!(
                    f,
                    "R2: both nodes are blank and no cluster was ever recorded: the first by name begins a new cluster, the other joins it"
                )
            }
            Self::SurvivorGoesOnAlone => {
                write!(
                    f,
                    "R3: {peer} is confirmed stopped or fenced and could not have gone on without this voter: going on alone"
                )
            }
            Self::PeerCameBack => {
                write!(f, "R3: {peer} came back before this node went on alone: starting normally with our data")
            }
            Self::OperatorConfirmed => {
                write!(f, "R3: an operator confirmed that {peer} is given up: going on alone with this node's data")
            }
            Self::PeerActiveButWithoutLeader => {
                write!(
                    f,
                    "R4: {peer}'s agent is active and its etcd has no leader: starting normally with our data, forcing nothing"
                )
            }
            Self::OnlyNode => write!(f, "this is the only node of node_ip_map"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnRecord => write!(f, "our own record to be visible in the CIB"),
            Self::PeerRecord { peer } => write!(f, "{peer} to say what data it holds"),
            Self::PeerToServe { peer } => write!(f, "{peer} to serve"),
            Self::OwnLeader => write!(f, "our etcd to have a leader"),
            Self::OwnAnswer { why } => write!(f, "our etcd to answer ({why})"),
            Self::LearnerToCatchUp { lag } => write!(f, "the learner to catch up ({lag} entries behind)"),
            Self::Learner => write!(f, "the learner to answer"),
            Self::BeforeFailing { refusal, peer } => {
                write!(f, "this to pass: ")?;
                refusal.write(f, peer)
            }
            Self::PeerVote { peer } => {
                write!(f, "{peer}'s vote: etcd runs here and has no leader until its peer is there")
            }
            Self::EtcdToStop => write!(f, "etcd to be gone"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnnounceGoingOnAlone { peer, position: Position { term, index } } => {
                write!(
                    f,
                    "R3: {peer} is confirmed stopped or fenced, etcd has no leader, and this voter ran until then: announcing that it goes on alone from term {term} index {index}"
                )
            }
            Self::StopBeforeForce => write!(f, "stopping etcd, to force a new cluster from its data"),
            Self::AdvanceAndForce => {
                write!(
                    f,
                    "advancing the commit index to the end of the log and forcing a new cluster: all that was acknowledged is in this log"
                )
            }
            Self::ListPeerAsLearner { peer } => write!(f, "{peer} returns: listing it as a learner"),
            Self::RemoveStaleEntry { id } => write!(f, "removing the stale member {id:x} that has our address"),
            Self::ListOurselvesAsLearner => write!(f, "R1: asking the peer to list this node as a learner"),
            Self::PromoteLearner { peer, lag } => {
                write!(f, "{peer} has caught up ({lag} entries behind in two polls): promoting it to a voter")
            }
            Self::HandOverLeadership { peer } => write!(f, "handing leadership to {peer} before leaving"),
            Self::LeaveBeforeStop { peer } => {
                write!(f, "leaving the member list before stopping, so that {peer} goes on alone without a pause")
            }
            Self::StopEtcd => write!(f, "stopping etcd"),
            Self::AskPeerToPromote { peer } => write!(f, "asking {peer} to make this learner a voter"),
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VoterOfTwo => write!(f, "a voter of two"),
            Self::SoleVoter => write!(f, "the sole voter"),
            Self::Learner => write!(f, "a learner"),
            Self::LeaderlessPeerNotConfirmed { peer } => {
                write!(f, "etcd has no leader; waiting until {peer} is back or confirmed stopped or fenced")
            }
            Self::NotRunning => write!(f, "etcd does not run here"),
            Self::Stopped => write!(f, "etcd is stopped"),
        }
    }
}

impl Reason {
    /// The sentence for `crm_mon`: Pacemaker keeps 127 bytes of an exit reason, so this one says what to type, and the
    /// log says the rest.
    pub fn short(&self) -> String {
        match self {
            Self::Refused { refusal, peer } => refusal.short(peer),
            Self::Rule { .. } | Self::Waiting(_) | Self::Step(_) | Self::Running(_) | Self::NothingToDo => {
                self.to_string()
            }
        }
    }
}

impl Refusal {
    fn short(&self, peer: &str) -> String {
        match self {
            Self::CibUnreadable { why } => format!("cannot read the CIB: {why}"),
            Self::DiskUnreadable { why } => format!("cannot read the data dir: {why}"),
            Self::MoreThanTwoVoters => "three or more voters: 'etcdctl member remove' all but two".to_owned(),
            Self::HistoriesSplit => {
                format!("this node and {peer} both went on alone: move one's member dir aside, see 'tandem explain'")
            }
            Self::PeerWentOnAloneAndLostItsData { .. } => {
                format!(
                    "{peer} went on alone and lost its data: restore it, or 'tandem confirm-recovery --accept-loss'"
                )
            }
            Self::DataOfARecordedClusterIsGone => {
                "both nodes lost their data: restore one with 'etcdutl snapshot restore'".to_owned()
            }
            Self::NoVotersData => {
                "neither node holds a voter's data: move a backup back, see 'tandem explain'".to_owned()
            }
            Self::NoProofThatPeerDidNotGoOn { position: Position { term, index } } => {
                format!(
                    "{peer} may have gone on since term {term} index {index}: start {peer}, or 'tandem confirm-recovery'"
                )
            }
            Self::LearnerAlone { .. } => format!("this node was only a learner: start {peer}"),
            Self::DepartedAlone { .. } => format!("this member left the cluster: start {peer}"),
            Self::BlankAlone => format!("this node holds no data: start {peer}"),
            Self::BrokenAlone { .. } => format!("this node's data dir is broken: start {peer}"),
            Self::PeerSaysNothing => {
                format!("{peer} has not said what data it holds: does Tandem run there? See 'pcs status'")
            }
            Self::PeerDoesNotServe => format!("{peer} is to serve first and does not yet: see 'pcs status'"),
            Self::PeerNotConfirmed { .. } => {
                format!("{peer} is not confirmed off: fence it, or 'pcs stonith confirm {peer}'")
            }
            Self::EtcdExited { last_words } => format!("etcd exited: {last_words}"),
            Self::EtcdDoesNotAnswer { why } => format!("etcd does not answer: {why}"),
            Self::ContainerUnknown { why } => format!("cannot tell whether etcd runs: {why}"),
            Self::NotAVoterYet => format!("still a learner: not caught up with {peer} yet"),
            Self::StillRunning => "etcd does not end: see 'podman ps' and 'podman kill'".to_owned(),
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table of sentences")]
    fn write(&self, f: &mut fmt::Formatter<'_>, peer: &str) -> fmt::Result {
        match self {
            Self::CibUnreadable { why } => write!(f, "cannot read the CIB ({why}); will try again"),
            Self::DiskUnreadable { why } => write!(f, "cannot read the data dir: {why}"),
            Self::MoreThanTwoVoters => {
                write!(
                    f,
                    "the data names three or more voters; this agent keeps two: remove the others with 'etcdctl member remove' first"
                )
            }
            Self::HistoriesSplit => {
                write!(
                    f,
                    "this node and {peer} both went on alone and their histories split: choose one and move the other's aside, 'mv /var/lib/etcd/member /var/lib/etcd/member-kept' on the node that loses, then 'pcs resource cleanup'"
                )
            }
            Self::PeerWentOnAloneAndLostItsData { peer_forks } => {
                write!(
                    f,
                    "{peer} went on alone (fork {peer_forks}) and holds no data now: writes since then are only in its backups; restore them there, or confirm the loss with 'tandem confirm-recovery --accept-loss'"
                )
            }
            Self::DataOfARecordedClusterIsGone => {
                write!(
                    f,
                    "a cluster was recorded here and neither node holds its data: restore a snapshot with 'etcdutl snapshot restore', or delete the node attribute cluster_id on both nodes to begin a new one"
                )
            }
            Self::NoVotersData => {
                write!(
                    f,
                    "neither node holds a voter's data: move a backup back ('mv /var/lib/etcd/member-* /var/lib/etcd/member') or restore a snapshot"
                )
            }
            Self::NoProofThatPeerDidNotGoOn { position: Position { term, index } } => {
                write!(
                    f,
                    "this node's data reaches term {term} index {index}, and {peer} may have gone on without it: start {peer} (nothing is lost then), or type 'tandem confirm-recovery' here"
                )
            }
            Self::LearnerAlone { position: Position { term, index } } => {
                write!(
                    f,
                    "this node was a learner and its data (to term {term} index {index}) may lack acknowledged writes: start {peer}"
                )
            }
            Self::DepartedAlone { position: Position { term, index } } => {
                write!(f, "this member left the cluster at term {term} index {index} and {peer} went on: start {peer}")
            }
            Self::BlankAlone => write!(f, "this node holds no data: start {peer}, which is to serve first"),
            Self::BrokenAlone { why } => {
                write!(f, "this node's data dir is broken ({why}): start {peer}, which is to serve first")
            }
            Self::PeerSaysNothing => {
                write!(
                    f,
                    "{peer} has not said what data it holds, as Tandem does before it starts; see with 'pcs status' why its agent does not start, and whether it is Tandem ('tandem explain' there); will try again"
                )
            }
            Self::PeerDoesNotServe => write!(f, "{peer} is to serve first and does not yet; will try again"),
            Self::PeerNotConfirmed { why } => {
                write!(
                    f,
                    "{peer} is not confirmed stopped ({why}): fence it, or confirm that it is off with 'pcs stonith confirm {peer}'"
                )
            }
            Self::EtcdExited { last_words } => write!(f, "etcd exited: {last_words}"),
            Self::EtcdDoesNotAnswer { why } => write!(f, "etcd does not answer: {why}"),
            Self::ContainerUnknown { why } => write!(f, "cannot tell whether the container runs: {why}"),
            Self::NotAVoterYet => write!(f, "this member is still a learner: it has not caught up with {peer}"),
            Self::StillRunning => write!(f, "etcd does not end"),
        }
    }
}
