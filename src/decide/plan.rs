//! What a decision answers: effects in order, what comes next, and because of what.

use serde::{Deserialize, Serialize};

use super::evidence::{
    BootState, DurableState, Evidence, FailedStarts, Identity, Lineage, MemberId, NodeName, PublishedState, Reached,
    RunningImage,
};
use super::reason::{Reason, Refusal, Rule};

/// Action that Pacemaker asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Start,
    Stop,
    /// A recurring monitor.
    Monitor,
    /// A monitor that asks what is there before anything was started.
    Probe,
    Notify,
    Promote,
    Demote,
    /// Parameters have changed that a running etcd may take.
    Reload,
    /// Not Pacemaker but `tandem lone-boot` asks: whether this node may have quorum without its peer.
    LoneBoot,
}

/// All that is decided in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub plan: Plan,
    pub on_failure: OnFailure,
    /// Answer of an action that runs out of time while its plan is carried out; `None` if that is a failure.
    pub when_over: Option<Exit>,
}

/// Result of an action where an effect of its plan fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// It is answered: what a monitor could not write down is written down by the next one.
    Answer(Exit),
    /// It tries again, and fails after some rounds in a row.
    FailInTime,
    /// It tries again for as long as it has: Pacemaker counts failed starts.
    TryOn,
}

/// Effects of one round, what follows them, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Plan {
    /// Performed in order; the first that fails ends the round.
    pub effects: Vec<Effect>,
    pub next: Next,
    pub because: Reason,
}

/// Step that follows the effects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// The action is answered.
    Exit(Exit),
    /// Look again after a pause.
    Reobserve { after_ms: u64, progress: Progress },
}

/// Answer of an action. The numbers are the OCF resource-agent API's; see `crate::adapters::ocf::exit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Success,
    /// Running as a voter that Pacemaker promoted.
    Promoted,
    NotRunning,
    /// Failed, and worth another try: every refusal is one of these.
    Retriable,
}

/// Memory of one action between its rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Progress {
    pub phase: Phase,
    /// Start of the phase, in milliseconds since the action began.
    pub since_ms: u64,
    /// Polls in a row that saw the learner close enough to the leader.
    pub polls_caught_up: u8,
    /// Restores in a row after which this node's record did not come back.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub restores: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none_yet(count: &u8) -> bool {
    *count == 0
}

/// Position of an action in its sequence of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    #[default]
    Begin,
    /// The container was started; its etcd is awaited.
    Started(RunMode),
    /// The fork is announced; etcd still runs and is stopped next.
    Announced,
    /// It was announced, etcd is stopped, and a record with this nonce was published since: it must show in our own CIB
    /// before etcd is forced (see `PublishedState::nonce`).
    Barrier { nonce: u64 },
    /// It was announced with this nonce while etcd runs on. Once that shows in our own CIB, the dead member's vote is cast.
    /// The term is the one that our etcd was in before: see [`DeadVote::term`].
    #[serde(rename = "stand_in")]
    VoteProxy { nonce: u64, term: u64 },
    /// It was cast, or tried to.
    StoodIn,
    /// Leadership was handed to the peer, or tried to.
    HandedOver,
    /// This member has left the member list, or tried to.
    Left,
    /// The container was asked to stop.
    Stopped,
}

/// Missing vote of our etcd: the member that had it, and the member that it is cast for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeadVote {
    /// The member that is off.
    pub dead: MemberId,
    /// Our own member, and its cluster.
    pub member_id: MemberId,
    pub cluster_id: u64,
    /// The term that our etcd was in before the announcement was published. If it has moved since, another member may have
    /// been elected behind the announcement, and the vote is not cast.
    pub term: u64,
    /// Up to which index it has applied its log: a change of members above that is in no list.
    pub applied: u64,
}

/// Way in which etcd is started.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// With the data that is there.
    Normally,
    /// The first member of a new cluster, on a blank data dir.
    Bootstrap,
    /// With the data that is there, as the only voter of a new cluster that continues from it.
    ForceNewCluster,
    /// On a blank data dir, as a learner of the peer's cluster.
    JoinAsLearner {
        /// `name=peer URL` of every member, as the peer's member list has them.
        initial_cluster: Vec<(NodeName, String)>,
    },
}

/// Single step of a plan. Each is idempotent: after a crash behind any of them the next action continues.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Publishes this node's record in the CIB, in one write.
    PublishRecord(PublishedState),
    /// Has Pacemaker's attribute manager write this node's record into the CIB again.
    RestoreRecord,
    /// Publishes what others read in the CIB: this member's id and cluster id.
    PublishIdentity(Identity),
    /// Publishes the lineage in the CIB, for good.
    PublishLineage(Lineage),
    /// Publishes the peer's lineage in the CIB in its place, for good.
    PublishPeerLineage(Lineage),
    /// Publishes the sole voter in the CIB; `None` takes it back.
    SetStandalone(Option<NodeName>),
    /// Publishes in the CIB the node that may start as a learner; `None` takes it back.
    SetLearner(Option<NodeName>),
    /// Writes the durable note and reads it back.
    WriteNote(DurableState),
    /// Writes what this boot remembers.
    Remember(BootState),
    /// Writes down that etcd broke down over the data that is here.
    NoteFailedStart(FailedStarts),
    /// Forgets that it did: it serves from that data.
    ForgetFailedStarts,
    /// Takes the operator's confirmation back: it has been used.
    // As in the files of decisions of the first version.
    #[serde(rename = "consume_authorisation")]
    ConsumeConfirmation,
    /// Shows etcd's alarms as an attribute of this node; `None` takes them back.
    SetAlarm(Option<String>),
    /// Publishes the image that etcd runs from, and the one that follows; `None` takes it back.
    PublishImage(Option<RunningImage>),
    /// Shows as an attribute of this node whether its etcd leads; `None` takes the attribute back.
    ShowLeader(Option<bool>),
    /// Shows as an attribute of this node that its fence agent waits before it switches the peer off, or takes that back.
    ShowFenceWait(bool),
    /// Publishes in the CIB that from now on there are two voters, or are not.
    SetRedundancy(bool),
    /// Publishes how far etcd has reached, for good.
    SetReached(Reached),
    /// Takes the operator's choice between two histories back: there is one history again.
    ForgetPrimary,
    /// Publishes in the CIB what other programs read there.
    TellOthers(Notice),
    /// Sets how often Pacemaker takes an operation of ours to have failed on this node: `start_0`, `monitor_5000`.
    SetFailures { operation: String, count: u64 },
    /// Sets this node's promotion score in Pacemaker; `None` takes the score back.
    SetPromotionScore(Option<u32>),
    /// Stops the container: SIGTERM, and SIGKILL after `grace_s` seconds.
    StopContainer { grace_s: u64 },
    /// Ends what an earlier action left behind in the middle of a change to the container.
    EndLaunch,
    /// Treats every entry of our write-ahead log as committed (what lies above the commit index may have been acknowledged).
    AdvanceCommit,
    /// Renames the data dir's `member` to a backup.
    MoveDataAside,
    /// Renames it to what nothing here ever deletes: it is a history that an operator gave up for another one.
    MoveHistoryAside,
    /// Deletes these backups, to make room.
    DropBackups(Vec<String>),
    /// Deletes the oldest backups, but for as many as the administrator wants kept.
    PruneBackups,
    /// Writes etcd's configuration and runs the container.
    RunContainer(RunMode),
    /// Votes in the name of a member that is confirmed off, until our etcd leads and has removed it. The next observation
    /// shows whether that succeeded.
    #[serde(rename = "stand_in")]
    VoteProxy(DeadVote),
    /// Takes `force-new-cluster` out of the configuration, so that no later restart forces once more.
    SettleConfig,
    /// Hands leadership to another member.
    MoveLeader { to: MemberId },
    /// Removes a member from the list, asking the etcd at `via`.
    RemoveMember { id: MemberId, via: Via },
    /// Adds the node at `peer_url` to the list as a learner, asking the etcd at `via`.
    AddLearner { peer_url: String, via: Via },
    /// Makes a learner a voter, asking the etcd at `via`.
    PromoteMember { id: MemberId, via: Via },
    /// Sets the cluster property `etcd_lone_boot` to `NODE:SECONDS`, by the clock of this node, and writes the event down. `tandem
    /// lone-boot` performs this and the next two, because they need the peer's BMC, and no agent asks that.
    AnnounceLoneBoot(NodeName),
    /// Asks the power of this peer once more, and fails where its BMC does not say Off or is not of the machine that was found. Then has
    /// the fencer hold the peer off (`stonith_admin --fence`): one `ForceOff` at most, and no `On`.
    HoldPeerOff(NodeName),
    /// Has Corosync wait for its absent members no longer (`quorum.cancel_wait_for_all`).
    CancelWaitForAll,
}

/// Information that other programs read in the CIB: see `Others`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The address of this node's member.
    Address(String),
    /// The revision that OpenShift's sidecar last wrote.
    Revision(u64),
    /// The UUID that this machine's firmware reports.
    SystemUuid(String),
    /// This node leaves the member list.
    Leaving,
    /// It is a member.
    Member,
    /// The force that was asked for is done, or not needed.
    ForceDone,
    /// The restart that was asked for is done.
    RestartDone,
}

/// Node with the etcd that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    Own,
    Peer,
}

impl Plan {
    /// Returns a plan that performs `effects` and then answers the action.
    pub fn exit(effects: Vec<Effect>, exit: Exit, because: Reason) -> Self {
        Self { effects, next: Next::Exit(exit), because }
    }

    /// Returns a plan that does nothing and fails the action for now.
    pub fn refuse(because: Reason) -> Self {
        Self::exit(Vec::new(), Exit::Retriable, because)
    }

    /// Returns a plan that performs the effects and then observes again.
    pub fn then_look(effects: Vec<Effect>, after_ms: u64, progress: Progress, because: Reason) -> Self {
        Self { effects, next: Next::Reobserve { after_ms, progress }, because }
    }
}

impl Progress {
    /// Returns the progress of a phase that begins now.
    pub fn enter(phase: Phase, now_ms: u64) -> Self {
        Self { phase, since_ms: now_ms, polls_caught_up: 0, restores: 0 }
    }

    /// Returns the time since the phase began.
    pub fn in_phase_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }
}

impl Evidence {
    /// Returns a plan that does nothing, with the refusal as its reason. Most refusals are about the peer.
    pub(super) fn refuse(&self, refusal: Refusal) -> Plan {
        Plan::refuse(Reason::Refused { refusal, peer: self.peer_name().to_owned() })
    }

    /// Returns a rule, with the peer that it is about.
    pub(super) fn rule(&self, rule: Rule) -> Reason {
        Reason::Rule { rule, peer: self.peer_name().to_owned() }
    }
}
