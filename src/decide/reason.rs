//! Because of what: each decision's reason, as an enum so that tests match on meaning, with the sentence that
//! becomes the log line and the exit reason.

mod refusal;
mod written;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use written::{LastWritten, utc};

use super::snapshot::{MemberId, NodeName, Obstacle, Position};

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
    ChosenPrimary,
    PeerIsChosenPrimary,
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
    /// Somebody added members with etcd's own commands.
    MoreThanTwoVoters,
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
    /// An action with enough time for what is to be done.
    MoreTime,
    /// An etcd that somebody restarts behind Pacemaker.
    Restart,
    /// What an earlier action began and left behind, to be over.
    EarlierAction,
    /// What has to go before etcd can be started.
    WayToBeFree {
        obstacle: Obstacle,
    },
}

/// A step on the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    AnnounceGoingOnAlone { peer: NodeName, position: Position },
    StopBeforeForce,
    AdvanceAndForce,
    TakeBackOutdatedConfirmation,
    ListPeerAsLearner { peer: NodeName },
    RemoveStaleEntry { id: MemberId },
    RemoveDeleted { id: MemberId },
    ListOurselvesAsLearner,
    PromoteLearner { peer: NodeName, lag: u64 },
    RemoveStranger { id: MemberId },
    DropBackups { names: Vec<String>, needed_bytes: u64 },
    HandOverLeadership { peer: NodeName },
    LeaveBeforeStop { peer: NodeName },
    StopEtcd,
    EndEarlierAction,
    AskPeerToPromote { peer: NodeName },
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
    /// The durable note beside the data.
    NoteUnreadable {
        why: String,
    },
    HistoriesSplit,
    PeerWentOnAloneAndLostItsData {
        peer_forks: u64,
    },
    DataOfARecordedClusterIsGone,
    NoVotersData,
    /// Voter data, the peer is confirmed gone, and nothing proves that it did not go on without us.
    NoProofThatPeerDidNotGoOn {
        position: Position,
        /// When the data's log was last written to, in seconds since 1970.
        #[serde(default)]
        written: Option<u64>,
    },
    /// As above, and somebody recorded that the peer did go on.
    PeerWentOnWithoutUs {
        position: Position,
        #[serde(default)]
        written: Option<u64>,
    },
    /// An operator's word was about this node's data as it was before it changed.
    ConfirmationIsOutdated {
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
    /// The database holds what the log has lost: nothing may be forced from it.
    DatabaseAheadOfLog {
        last_index: u64,
        database_index: u64,
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
    /// An earlier action, or its podman, does not end.
    EarlierActionLasts,
    /// A learner's copy of the data does not fit on the disk.
    NoRoomToJoin {
        needed_bytes: u64,
        free_bytes: u64,
    },
    /// An operator chose this node's data, and the peer serves another history.
    PeerServesThoughNotChosen,
    /// The only voter went away before its learner had the data.
    PeerLostWhileJoining,
    /// Something stands in the way of a start.
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
    #[expect(clippy::too_many_lines, reason = "a table of sentences")]
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
            Self::SoleVoter => write!(f, "R2/R3: this node is the sole voter of its data: starting normally"),
            Self::PeerIsSoleVoter => write!(f, "R2: {peer} is the sole voter: following it as a learner"),
            Self::ChosenPrimary => {
                write!(f, "R2: the histories split and an operator chose this node's: going on with it")
            }
            Self::PeerIsChosenPrimary => {
                write!(f, "R2: the histories split and an operator chose {peer}'s: following it")
            }
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
            Self::PeerJoinedSince => {
                write!(f, "R2: {peer} has joined again since it said what it holds: starting normally with our data")
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
            Self::MoreThanTwoVoters => {
                write!(
                    f,
                    "three or more voters: starting normally; their majority decides, and nothing is forced or removed here"
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
            Self::PeerConfirmed { peer, why } => write!(f, "{peer} to be back, or confirmed off ({why})"),
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
            Self::MoreTime => {
                write!(f, "the next action, which has time to go on alone: this one could be cut short in the middle")
            }
            Self::Restart => write!(f, "etcd to be back: 'restart_no_leave' says that somebody restarts it"),
            Self::EarlierAction => {
                write!(f, "an earlier action to be over: it, or its podman, still starts or ends etcd's container")
            }
            Self::WayToBeFree { obstacle: Obstacle::StaticPod } => {
                write!(f, "kubelet's static pod to end its etcd, which runs with our data")
            }
            Self::WayToBeFree { obstacle: Obstacle::PortTaken(port) } => {
                write!(f, "port {port} to be free: another program listens on it")
            }
        }
    }
}

/// A place in a log, behind its word; nothing where it is not known, as an etcd without a leader may not tell it.
struct At(&'static str, Position);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(word, Position { term, index }) = self;
        if self.1 == Position::default() { Ok(()) } else { write!(f, "{word} term {term} index {index}") }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnnounceGoingOnAlone { peer, position } => {
                let from = At(" from", *position);
                write!(
                    f,
                    "R3: {peer} is confirmed stopped or fenced, etcd has no leader, and this voter ran until then: announcing that it goes on alone{from}"
                )
            }
            Self::StopBeforeForce => write!(f, "stopping etcd, to force a new cluster from its data"),
            Self::AdvanceAndForce => {
                write!(
                    f,
                    "advancing the commit index to the end of the log and forcing a new cluster: all that was acknowledged is in this log"
                )
            }
            Self::TakeBackOutdatedConfirmation => {
                write!(f, "taking 'tandem confirm-recovery' back: this node's data has changed since it was typed")
            }
            Self::ListPeerAsLearner { peer } => write!(f, "{peer} returns: listing it as a learner"),
            Self::RemoveStranger { id } => {
                write!(f, "removing the learner {id:x}, which is at neither node's address, to make place for the peer")
            }
            Self::DropBackups { names, needed_bytes } => {
                write!(
                    f,
                    "joining needs about {} MB: deleting the oldest backups, {}",
                    megabytes(*needed_bytes),
                    names.join(", ")
                )
            }
            Self::RemoveStaleEntry { id } => write!(f, "removing the stale member {id:x} that has our address"),
            Self::RemoveDeleted { id } => write!(f, "removing the learner {id:x}: its Machine is being deleted"),
            Self::ListOurselvesAsLearner => write!(f, "R1: asking the peer to list this node as a learner"),
            Self::PromoteLearner { peer, lag } => {
                write!(f, "{peer} has caught up ({lag} entries behind in two polls): promoting it to a voter")
            }
            Self::HandOverLeadership { peer } => write!(f, "handing leadership to {peer} before leaving"),
            Self::LeaveBeforeStop { peer } => {
                write!(f, "leaving the member list before stopping, so that {peer} goes on alone without a pause")
            }
            Self::StopEtcd => write!(f, "stopping etcd"),
            Self::EndEarlierAction => {
                write!(f, "ending an earlier action, or its podman: it takes too long to start or end etcd's container")
            }
            Self::AskPeerToPromote { peer } => write!(f, "asking {peer} to make this learner a voter"),
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VoterOfTwo => write!(f, "a voter of two"),
            Self::VoterAmong { voters } => write!(f, "a voter among {voters}"),
            Self::SoleVoter => write!(f, "the sole voter"),
            Self::Learner => write!(f, "a learner"),
            Self::Alarm { alarms } => {
                write!(f, "etcd raises the alarm {alarms}: see 'etcdctl alarm list'")?;
                if alarms.contains(NO_SPACE) {
                    write!(
                        f,
                        "; it takes no writes until 'etcdctl compact' and 'etcdctl defrag' have made room and 'etcdctl alarm disarm' was typed"
                    )?;
                }
                Ok(())
            }
            Self::NoPermission { user } => write!(
                f,
                "etcd serves and its auth refuses this agent, which cannot tell how it stands nor change its members: {}",
                grant(user.as_deref())
            ),
            Self::LeaderlessPeerNotConfirmed { peer } => {
                write!(f, "etcd has no leader; waiting until {peer} is back or confirmed stopped or fenced")
            }
            Self::NotRunning => write!(f, "etcd does not run here"),
            Self::Stopped => write!(f, "etcd is stopped"),
        }
    }
}

/// etcd's word for a database that has reached its quota.
const NO_SPACE: &str = "NOSPACE";

/// What gives this agent the permission that etcd's auth asks for. etcd takes a certificate's CommonName for the user's name.
pub(crate) fn grant(user: Option<&str>) -> String {
    match user {
        Some(user) => format!("'etcdctl user grant-role {user} root' once 'user add' made it"),
        None => "give this node's etcd certificate a CommonName, and etcd a user of that name".to_owned(),
    }
}

fn megabytes(bytes: u64) -> u64 {
    bytes >> 20
}

impl Reason {
    /// The sentence for `crm_mon`: Pacemaker keeps 127 bytes of an exit reason, so this one begins with what to type, and
    /// the log says the rest.
    pub fn short(&self) -> String {
        match self {
            Self::Refused { refusal, peer } | Self::Waiting(Wait::BeforeFailing { refusal, peer }) => {
                refusal.short(peer)
            }
            Self::Rule { .. } | Self::Waiting(_) | Self::Step(_) | Self::Running(_) | Self::NothingToDo => {
                self.to_string()
            }
        }
    }
}
