//! Because of what: each decision's reason, as an enum so that tests match on meaning, with the sentence that
//! becomes the log line and the exit reason.

mod lone_boot;
mod obstacles;
mod refusal;
mod words;
mod written;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use lone_boot::{LoneBootStep, NoLoneBoot};
pub use obstacles::{Held, NoVoteProxy};
pub use written::LastWritten;

use super::evidence::{Cause, LogPosition, MemberId, NodeName, Obstacle};

/// Reason for a plan. The log, the exit reason and `tandem explain` print it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A rule of a start or of a recovery applies.
    Rule {
        rule: Rule,
        peer: NodeName,
    },
    /// The agent waits for an event.
    Waiting(Wait),
    /// The agent does nothing, and the action fails for now. The refusal names the obstacle, and what resolves it.
    Refused {
        refusal: Refusal,
        peer: NodeName,
    },
    /// The agent takes a step of a start, a stop or a recovery.
    Step(ReasonStep),
    /// A member runs, in this state.
    Running(Health),
    /// Pacemaker's notification requires nothing of this node.
    NothingToDo,
    LoneBoot {
        step: LoneBootStep,
        peer: NodeName,
    },
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
    ChosenPrimary,
    PeerIsChosenPrimary,
    /// Rule of `two_histories=primary`: this node is the configured primary, and its history is kept.
    PrimaryIsKept,
    PeerIsKept,
    PeerHasTheVotersData,
    PeerHasNoData,
    PeerWentOnAlone,
    PeerWasLeftBehind,
    FirstByNameBootstraps,
    SurvivorGoesOnAlone,
    OperatorConfirmed,
    PeerCameBack,
    /// Rule of a plain start: the peer has joined again since it published its record. This node's data lists the peer's new
    /// member.
    PeerJoinedSince,
    PeerActiveButWithoutLeader,
    OnlyNode,
    /// Rule of a plain start of a node with a third voter, or among three or more voters. An operator added the additional
    /// voters.
    MoreThanTwoVoters,
}

/// Event that a plan waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Wait until the record that this node has just published is visible in the CIB.
    OwnRecord,
    PeerRecord {
        peer: NodeName,
    },
    PeerToServe {
        peer: NodeName,
    },
    /// Wait until fencing or the peer itself confirms whether the peer runs.
    PeerConfirmed {
        peer: NodeName,
        why: String,
    },
    /// Wait until this node's etcd answers and has a leader.
    OwnLeader,
    /// Wait until this node's etcd answers.
    OwnAnswer {
        why: String,
    },
    /// Wait until a learner comes close to the leader.
    LearnerToCatchUp {
        lag: u64,
    },
    /// Wait until a learner that was just listed or started answers for the first time.
    Learner,
    /// Wait for a second consecutive observation in which the peer is close to the leader. Leadership moves to the peer only
    /// after two.
    SecondLook {
        peer: NodeName,
    },
    /// Wait for an obstacle to end. The start does not fail before, because Pacemaker counts failed starts.
    BeforeFailing {
        refusal: Refusal,
        peer: NodeName,
    },
    /// Wait for the peer's vote during this node's start. Until the peer votes, etcd runs without a leader.
    PeerVote {
        peer: NodeName,
    },
    EtcdToStop,
    /// Wait for a later action that has enough time for the next step.
    MoreTime,
    /// Wait until a program other than Pacemaker has restarted etcd.
    Restart,
    /// Wait for the end of a change to the container that an earlier action left half done.
    EarlierAction,
    /// Wait for the end of an obstacle to a start of etcd.
    WayToBeFree {
        obstacle: Obstacle,
    },
}

/// Step of a start, a stop, a monitor or a recovery.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonStep {
    AnnounceGoingOnAlone {
        peer: NodeName,
        position: LogPosition,
    },
    StopBeforeForce,
    /// The stop of etcd before a forced new cluster, although a vote proxy was wanted. `why` is the reason that no vote proxy can
    /// vote.
    RestartInstead {
        why: NoVoteProxy,
    },
    #[serde(rename = "stand_in")]
    VoteProxy {
        peer: NodeName,
    },
    /// A node that lost its peer serves again. `ms` is the time in milliseconds since the action began.
    TookOver {
        restarted: bool,
        ms: u64,
    },
    AdvanceAndForce,
    TakeBackOutdatedConfirmation,
    ListPeerAsLearner {
        peer: NodeName,
    },
    RemoveStaleEntry {
        id: MemberId,
    },
    RemoveDeleted {
        id: MemberId,
    },
    ListOurselvesAsLearner,
    PromoteLearner {
        peer: NodeName,
        lag: u64,
    },
    RemoveStranger {
        id: MemberId,
    },
    /// The removal of the member that is to become the third voter, while it is still a learner. etcd allows only one learner, and the
    /// peer needs that place.
    #[serde(rename = "guest_makes_place")]
    ThirdVoterMakesPlace {
        id: MemberId,
    },
    DropBackups {
        names: Vec<String>,
        needed_bytes: u64,
    },
    HandOverLeadership {
        peer: NodeName,
    },
    /// A move of leadership to the peer while both nodes are well.
    GiveLeadership {
        peer: NodeName,
        cause: Cause,
    },
    /// The end of this node's claim to run standalone, before its etcd stops. The node yields because only etcd's network is
    /// partitioned, and Pacemaker's is not.
    YieldToPrimary {
        peer: NodeName,
    },
    LeaveBeforeStop {
        peer: NodeName,
    },
    StopEtcd,
    EndEarlierAction,
    RestoreRecord,
    AskPeerToPromote {
        peer: NodeName,
    },
}

/// State of a running member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    VoterOfTwo,
    VoterAmong {
        voters: usize,
    },
    SoleVoter,
    Learner,
    /// etcd serves, and raises alarms.
    Alarm {
        alarms: String,
    },
    /// etcd serves, but its auth hides its state from this agent.
    NoPermission {
        user: Option<String>,
    },
    /// etcd has no leader. It is unknown whether the peer runs, so this node waits.
    LeaderlessPeerNotConfirmed {
        peer: NodeName,
    },
    /// etcd has no leader. The peer is stopped in the middle of a restart, and still has a claim to run standalone without this
    /// node.
    LeaderlessPeerKeepsItsClaim {
        peer: NodeName,
    },
    /// etcd has no leader, and waits for a majority of three or more voters. The agent forces no new cluster in that case.
    WithoutMajority {
        others: String,
    },
    NotRunning,
    Stopped,
}

/// Reason why an action does nothing and fails for now.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    CibUnreadable {
        why: String,
    },
    DiskUnreadable {
        why: String,
    },
    /// The durable note next to the data dir cannot be read.
    NoteUnreadable {
        why: String,
    },
    HistoriesSplit,
    PeerWentOnAloneAndLostItsData {
        peer_forks: u64,
    },
    /// This node asked the peer to remove it, so the peer may have continued alone. The peer's data is gone now.
    PeerMayHaveGoneOnAndLostItsData,
    DataOfARecordedClusterIsGone,
    /// The cluster has one node only, and the data of the cluster that the CIB records is gone.
    OnlyNodesDataIsGone,
    /// The data ends before a position that it had already reached, because the disk was put back to an older state.
    DiskWasPutBack {
        /// Position at which this node's data ends.
        here: LogPosition,
        /// Position at which the peer's data ends; `None` unless a comparison of both published records proved that a disk was
        /// put back.
        there: Option<LogPosition>,
        /// Position that this node's data had reached earlier, by the CIB or by the agent's memory of this boot; `None` if
        /// neither records one.
        reached: Option<LogPosition>,
    },
    /// The data on this node belongs to the other node's member. So one node's disk is a copy of the other node's.
    CopiedDisk {
        member: MemberId,
    },
    /// The etcd at the peer's address belongs to another cluster than the peer's own data.
    AnotherClusterAnswers {
        address: String,
    },
    NoVotersData,
    /// This node has a voter's data and the peer is confirmed gone. But nothing proves that the peer did not continue without this node
    /// before it was gone.
    NoProofThatPeerDidNotGoOn {
        position: LogPosition,
        /// Time of the last write to the log in this node's data dir, in seconds since 1970.
        #[serde(default)]
        written: Option<u64>,
    },
    /// This node has a voter's data, but the CIB records that the peer continued without this node.
    PeerWentOnWithoutUs {
        position: LogPosition,
        #[serde(default)]
        written: Option<u64>,
    },
    /// This node's data has changed since the operator confirmed that the node may run standalone with it.
    ConfirmationIsOutdated {
        position: LogPosition,
    },
    LearnerAlone {
        position: LogPosition,
    },
    DepartedAlone {
        position: LogPosition,
    },
    BlankAlone,
    BrokenAlone {
        why: String,
    },
    /// The database contains entries that the log has lost. So the agent must not force a new cluster from this data.
    DatabaseAheadOfLog {
        last_index: u64,
        database_index: u64,
    },
    PeerSaysNothing,
    PeerDoesNotServe,
    /// This node has given up its claim to run standalone in favour of the configured primary. It yields because only etcd's network is
    /// partitioned, and Pacemaker's is not.
    YieldsToPrimary,
    /// The configured primary runs standalone because only etcd's network is partitioned. This node does not reach the primary's
    /// etcd.
    PrimaryNotReached,
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
    /// A recovery on this machine takes longer than the time-out of an action.
    NoTimeToGoOn {
        needed_ms: u64,
    },
    StillRunning,
    /// An earlier action, or a podman that it left behind, has not ended.
    EarlierActionLasts,
    /// `node_ip_map` gives this node another address than the one with which etcd runs.
    AddressChanged {
        from: String,
        to: String,
    },
    /// An operator's confirmation or a new `node_ip_map` requests that this node continue without its peer. Only a start can
    /// carry that out.
    AskedToGoOn,
    /// The disk has too little space for the copy of the data that a learner receives.
    NoRoomToJoin {
        needed_bytes: u64,
        free_bytes: u64,
    },
    /// An operator chose this node's data, but the peer serves another history.
    PeerServesThoughNotChosen,
    /// The peer, which was the only voter, was lost before this learner had received the data.
    PeerLostWhileJoining,
    /// An obstacle prevents a start of etcd.
    InTheWay {
        obstacle: Obstacle,
    },
    /// OpenShift is deleting this node's Machine.
    MachineIsDeleted,
    /// An additional check that an operator requested has failed.
    CheckFailed {
        why: String,
    },
    /// etcd's auth knows no user for this agent that may make the agent's queries.
    NoPermission {
        user: Option<String>,
    },
    /// A node that boots without its peer has to wait for the peer.
    LoneBoot {
        why: NoLoneBoot,
    },
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
            Self::LoneBoot { step, peer } => step.write(f, peer),
        }
    }
}

impl Reason {
    /// Returns the sentence for `crm_mon`. Pacemaker keeps 127 bytes of an exit reason, so a refusal begins with the command to type. The
    /// log has the rest.
    pub fn short(&self) -> String {
        match self {
            Self::Refused { refusal, peer } | Self::Waiting(Wait::BeforeFailing { refusal, peer }) => {
                refusal.short(peer)
            }
            _ => self.to_string(),
        }
    }
}

/// Returns the command that gives this agent the permission that etcd's auth requires. `user` is the CommonName of the agent's
/// certificate, which etcd takes as the user's name.
pub(crate) fn grant(user: Option<&str>) -> String {
    match user {
        Some(user) => format!("'tandem etcdctl user grant-role {user} root' after 'user add'"),
        None => "give this node's etcd certificate a CommonName, and etcd a user of that name".to_owned(),
    }
}

fn megabytes(bytes: u64) -> u64 {
    bytes >> 20
}
