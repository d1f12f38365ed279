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

/// Explanation of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A rule of a start applies.
    Rule {
        rule: Rule,
        peer: NodeName,
    },
    /// Something is awaited.
    Waiting(Wait),
    /// Nothing is done, and the action fails for now: the obstacle, and what resolves it.
    Refused {
        refusal: Refusal,
        peer: NodeName,
    },
    /// A step on the way.
    Step(ReasonStep),
    /// The state of a running member.
    Running(Health),
    /// The notification asks nothing of this node.
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
    /// The parameter `two_histories` keeps the configured primary's history.
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
    /// The peer's record is of a member that left, and our data has another one in its place.
    PeerJoinedSince,
    PeerActiveButWithoutLeader,
    OnlyNode,
    /// An operator added members with etcd's own commands.
    MoreThanTwoVoters,
}

/// Event that a plan waits for.
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
    /// Fencing, or the peer itself: whether it runs is not known.
    PeerConfirmed {
        peer: NodeName,
        why: String,
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
    /// Before leadership moves to the peer: it has to be close in two looks in a row.
    SecondLook {
        peer: NodeName,
    },
    /// Before an action fails: Pacemaker's tries are counted, and the obstacle may pass.
    BeforeFailing {
        refusal: Refusal,
        peer: NodeName,
    },
    /// The peer's vote for our start; etcd runs until then without a leader.
    PeerVote {
        peer: NodeName,
    },
    EtcdToStop,
    /// An action with enough time for what is to be done.
    MoreTime,
    /// An etcd that a program other than Pacemaker restarts.
    Restart,
    /// The end of a change that an earlier action began and left behind.
    EarlierAction,
    /// The end of an obstacle to a start.
    WayToBeFree {
        obstacle: Obstacle,
    },
}

/// A step on the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonStep {
    AnnounceGoingOnAlone {
        peer: NodeName,
        position: LogPosition,
    },
    StopBeforeForce,
    /// The same where a vote proxy was wanted, and why none votes.
    RestartInstead {
        why: NoVoteProxy,
    },
    #[serde(rename = "stand_in")]
    VoteProxy {
        peer: NodeName,
    },
    /// A node that had lost its peer serves again, so many milliseconds after the action began.
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
    /// The third voter, which learns, has the one place that the peer needs.
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
    /// Leadership moves while both nodes are well.
    GiveLeadership {
        peer: NodeName,
        cause: Cause,
    },
    /// Only etcd's network parts: the claim goes before etcd does.
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

/// The state of a running member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    VoterOfTwo,
    VoterAmong {
        voters: usize,
    },
    SoleVoter,
    Learner,
    /// Serves, and raises alarms.
    Alarm {
        alarms: String,
    },
    /// Serves, and etcd's auth does not let this agent see how.
    NoPermission {
        user: Option<String>,
    },
    /// No leader, and the peer's fate is open: waiting is right.
    LeaderlessPeerNotConfirmed {
        peer: NodeName,
    },
    /// No leader; the peer is stopped in the middle of a restart, and may run standalone without this node.
    LeaderlessPeerKeepsItsClaim {
        peer: NodeName,
    },
    /// No leader, and a majority of three or more is awaited: no new cluster is forced there.
    WithoutMajority {
        others: String,
    },
    NotRunning,
    Stopped,
}

/// Cause for doing nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    CibUnreadable {
        why: String,
    },
    DiskUnreadable {
        why: String,
    },
    /// The durable note next to the data.
    NoteUnreadable {
        why: String,
    },
    HistoriesSplit,
    PeerWentOnAloneAndLostItsData {
        peer_forks: u64,
    },
    /// This node asked to be removed, so the peer may have continued alone, and the peer's data is gone.
    PeerMayHaveGoneOnAndLostItsData,
    DataOfARecordedClusterIsGone,
    /// The same in a cluster of one node.
    OnlyNodesDataIsGone,
    /// Data ends before what it had reached: its disk was put back.
    DiskWasPutBack {
        /// The end of this node's data.
        here: LogPosition,
        /// The end of the peer's data, where the two records prove it.
        there: Option<LogPosition>,
        /// The position that this node's data had reached, where the cluster or this boot wrote that down.
        reached: Option<LogPosition>,
    },
    /// The data here is the other node's member.
    CopiedDisk {
        member: MemberId,
    },
    /// The etcd at the peer's address is of another cluster than the peer's own data.
    AnotherClusterAnswers {
        address: String,
    },
    NoVotersData,
    /// Voter data, the peer is confirmed gone, and nothing proves that it did not continue without this node.
    NoProofThatPeerDidNotGoOn {
        position: LogPosition,
        /// Time of the last write to the data's log, in seconds since 1970.
        #[serde(default)]
        written: Option<u64>,
    },
    /// The same, where it is recorded that the peer did continue.
    PeerWentOnWithoutUs {
        position: LogPosition,
        #[serde(default)]
        written: Option<u64>,
    },
    /// An operator's confirmation was about this node's data as it was before it changed.
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
    /// The database holds what the log has lost: nothing may be forced from it.
    DatabaseAheadOfLog {
        last_index: u64,
        database_index: u64,
    },
    PeerSaysNothing,
    PeerDoesNotServe,
    /// Only etcd's network parts, and this node has given its claim up to the configured primary.
    YieldsToPrimary,
    /// The primary runs standalone since, and this node does not reach its etcd.
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
    /// A recovery takes longer on this machine than this action has.
    NoTimeToGoOn {
        needed_ms: u64,
    },
    StillRunning,
    /// An earlier action, or its podman, does not end.
    EarlierActionLasts,
    /// `node_ip_map` gives this node another address than etcd runs with.
    AddressChanged {
        from: String,
        to: String,
    },
    /// An operator's confirmation or a new map requests that this node continue without its peer, and only a start reads
    /// them.
    AskedToGoOn,
    /// A learner's copy of the data does not fit on the disk.
    NoRoomToJoin {
        needed_bytes: u64,
        free_bytes: u64,
    },
    /// An operator chose this node's data, and the peer serves another history.
    PeerServesThoughNotChosen,
    /// The only voter went away before its learner had the data.
    PeerLostWhileJoining,
    /// An obstacle prevents a start.
    InTheWay {
        obstacle: Obstacle,
    },
    /// OpenShift is deleting this node's Machine.
    MachineIsDeleted,
    /// A check that an operator asked for failed.
    CheckFailed {
        why: String,
    },
    /// etcd's auth knows no user of this agent that may ask.
    NoPermission {
        user: Option<String>,
    },
    /// A node that boots without its peer waits for it.
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
    /// Returns the sentence for `crm_mon`. Pacemaker keeps 127 bytes of an exit reason, so this one begins with what to
    /// type. The log has the rest.
    pub fn short(&self) -> String {
        match self {
            Self::Refused { refusal, peer } | Self::Waiting(Wait::BeforeFailing { refusal, peer }) => {
                refusal.short(peer)
            }
            _ => self.to_string(),
        }
    }
}

/// Returns the command that gives this agent the permission that etcd's auth asks for. etcd takes a certificate's CommonName
/// for the user's name.
pub(crate) fn grant(user: Option<&str>) -> String {
    match user {
        Some(user) => format!("'tandem etcdctl user grant-role {user} root' after 'user add'"),
        None => "give this node's etcd certificate a CommonName, and etcd a user of that name".to_owned(),
    }
}

fn megabytes(bytes: u64) -> u64 {
    bytes >> 20
}
