//! What a decision answers: effects in order, what comes next, and because of what.

use serde::{Deserialize, Serialize};

use super::evidence::{
    BootState, DurableState, Evidence, FailedStarts, Identity, Lineage, MemberId, NodeName, PublishedState, Reached,
    RunningImage,
};
use super::reason::{Reason, Refusal, Rule};

/// Action that Pacemaker or an operator's command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Start,
    Stop,
    /// A recurring monitor.
    Monitor,
    /// A monitor that runs once, before any start, to find out whether the resource already runs.
    Probe,
    Notify,
    Promote,
    Demote,
    /// Application of changed parameters to a running etcd (`reload-agent`), as far as they can change without a restart.
    Reload,
    /// Check whether this node may have quorum without its peer. `tandem lone-boot` requests it, and Pacemaker never does.
    LoneBoot,
}

/// Result of deciding: the plan, and the action's result for the case that the plan fails or takes too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub plan: Plan,
    pub on_failure: OnFailure,
    /// Result of the action if its time-out is reached while the agent carries the plan out; `None` if the action then fails.
    pub when_over: Option<Exit>,
}

/// Result of an action if an effect of its plan fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The action ends with this result. Monitors use it, because the next monitor can write what this one failed to write.
    Answer(Exit),
    /// The action observes and decides again. If several plans in a row fail, the action fails.
    FailInTime,
    /// The action retries until its time ends, because Pacemaker counts failed starts.
    TryOn,
}

/// Effects that the agent performs, the step that follows them, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Plan {
    /// Effects, performed in order. If one fails, the agent performs none of the rest.
    pub effects: Vec<Effect>,
    pub next: Next,
    pub because: Reason,
}

/// Step that follows the effects of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// The action ends with this result.
    Exit(Exit),
    /// The agent observes and decides again after a pause.
    Reobserve { after_ms: u64, progress: Progress },
}

/// Result of an action. The exit codes are those of the OCF resource agent API; see `crate::adapters::ocf::exit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Success,
    /// Success of a monitor that found a running voter in a resource that Pacemaker promoted.
    Promoted,
    NotRunning,
    /// Failure that is worth a retry. Every refusal has this result.
    Retriable,
}

/// State that an action keeps from one round (observe, decide, act) to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Progress {
    pub phase: Phase,
    /// Start of the present phase, in milliseconds since the action began.
    pub since_ms: u64,
    /// Number of consecutive observations in which the learner was close enough to the leader.
    pub polls_caught_up: u8,
    /// Number of consecutive attempts to restore this node's record that had no effect: the CIB still lacked the record after
    /// each.
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
    /// The agent has started the container, and waits until its etcd serves.
    Started(RunMode),
    /// The agent has announced in the CIB that this node will run standalone. etcd still runs, and the next step stops it.
    Announced,
    /// The agent announced that this node will run standalone, stopped etcd, and then published a record with this nonce. The
    /// agent forces a new cluster only once that record is in this node's own CIB (see `PublishedState::nonce`).
    Barrier { nonce: u64 },
    /// The agent has announced that this node will run standalone, in a record with this nonce, and etcd keeps running. Once this
    /// node's own CIB contains the nonce, a vote proxy casts the dead member's vote. For `term` see [`DeadVote::term`].
    #[serde(rename = "stand_in")]
    VoteProxy { nonce: u64, term: u64 },
    /// The vote proxy has cast the dead member's vote, or has failed to.
    StoodIn,
    /// This node's etcd has handed leadership to the peer, or has failed to.
    HandedOver,
    /// This member has left the member list, or has failed to.
    Left,
    /// The agent has asked the container to stop.
    Stopped,
}

/// Vote that this node's etcd lacks. It names the dead member that had the vote, and the member that gets it from a vote proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeadVote {
    /// Id of the dead member, which is confirmed off.
    pub dead: MemberId,
    /// Id of this node's member.
    pub member_id: MemberId,
    /// Id of the cluster of this node's member.
    pub cluster_id: u64,
    /// Term of this node's etcd before the agent announced that this node will run standalone. If the term has changed since,
    /// another member may have been elected, and the vote proxy does not vote.
    pub term: u64,
    /// Log index up to which this node's etcd has applied its log. Its member list lacks changes at higher indexes.
    pub applied: u64,
}

/// Way in which the agent starts etcd.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// Start with the present data.
    Normally,
    /// Start on a blank data dir, as the first member of a new cluster.
    Bootstrap,
    /// Start with the present data, as the only voter of a new cluster. The new cluster continues the present history.
    ForceNewCluster,
    /// Start on a blank data dir, as a learner of the peer's cluster.
    JoinAsLearner {
        /// Name and peer URL of every member in the peer's member list.
        initial_cluster: Vec<(NodeName, String)>,
    },
}

/// Single effect of a plan. Each can be repeated, so that the next action can continue after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Publishes in the CIB, in one write, the record that describes this node's data.
    PublishRecord(PublishedState),
    /// Makes Pacemaker's attribute manager write this node's published record into the CIB again.
    RestoreRecord,
    /// Publishes this member's id and its cluster's id in the CIB. Other programs read them.
    PublishIdentity(Identity),
    /// Publishes in the CIB, permanently, how many forks (forced new clusters) there are, and which node made the last one.
    PublishLineage(Lineage),
    /// Publishes the peer's lineage in the CIB, permanently, in the peer's place: how many forks (forced new clusters) the peer
    /// has recorded, and which node made the last one.
    PublishPeerLineage(Lineage),
    /// Records in the CIB which node is the sole voter; `None` removes the entry.
    SetStandalone(Option<NodeName>),
    /// Records in the CIB which node may start as a learner; `None` removes the entry.
    SetLearner(Option<NodeName>),
    /// Writes the durable note next to the data dir, and reads it back.
    WriteNote(DurableState),
    /// Stores facts about etcd for the duration of this boot, in a file that no reboot preserves.
    Remember(BootState),
    /// Records that etcd crashed in a plain start because of the present data.
    NoteFailedStart(FailedStarts),
    /// Deletes the record of failed starts, because etcd serves from the present data.
    ForgetFailedStarts,
    /// Deletes the operator's confirmation, because it has been used.
    // As in the files of decisions of the first version.
    #[serde(rename = "consume_authorisation")]
    ConsumeConfirmation,
    /// Sets this node's attribute that shows etcd's alarms; `None` removes the attribute.
    SetAlarm(Option<String>),
    /// Publishes the image from which etcd runs, and the image that the next start would use; `None` removes both.
    PublishImage(Option<RunningImage>),
    /// Sets this node's attribute that shows whether its etcd leads; `None` removes the attribute.
    ShowLeader(Option<bool>),
    /// Sets this node's attribute that makes its fence agent wait before it switches the peer off; `false` removes the attribute.
    ShowFenceWait(bool),
    /// Records in the CIB that there are two voters from now on (`true`), or that there no longer are (`false`).
    SetRedundancy(bool),
    /// Publishes in the CIB, permanently, the log position that etcd has reached.
    SetReached(Reached),
    /// Deletes the operator's choice between two histories (`etcd_primary`), because only one history is left.
    ForgetPrimary,
    /// Publishes an attribute in the CIB that other programs read.
    TellOthers(Notice),
    /// Sets Pacemaker's fail count of an operation on this node, such as `start_0` or `monitor_5000`.
    SetFailures { operation: String, count: u64 },
    /// Sets this node's promotion score in Pacemaker; `None` removes the score.
    SetPromotionScore(Option<u32>),
    /// Stops the container with SIGTERM. After `grace_s` seconds, SIGKILL follows.
    StopContainer { grace_s: u64 },
    /// Kills processes that an earlier action left behind while it was changing the container.
    EndLaunch,
    /// Records every entry of this node's write-ahead log as committed, because entries above the recorded commit index may have
    /// been acknowledged.
    AdvanceCommit,
    /// Renames the data dir's `member` to a backup.
    MoveDataAside,
    /// Renames the data dir's `member` to a name that no agent ever deletes. An operator gave up this data, which is a history of
    /// its own, for another history.
    MoveHistoryAside,
    /// Deletes the backups with these names to make room.
    DropBackups(Vec<String>),
    /// Deletes the oldest backups. As many are left as the administrator wants to keep.
    PruneBackups,
    /// Writes etcd's configuration for this run mode, and runs the container.
    RunContainer(RunMode),
    /// Casts the vote of a member that is confirmed off, until this node's etcd leads and has removed that member. The next
    /// observation shows whether the vote proxy succeeded.
    #[serde(rename = "stand_in")]
    VoteProxy(DeadVote),
    /// Removes `force-new-cluster` from etcd's configuration, so that no later restart forces a new cluster again.
    SettleConfig,
    /// Hands leadership to the member `to`.
    MoveLeader { to: MemberId },
    /// Removes the member `id` from the member list by a request to the etcd at `via`.
    RemoveMember { id: MemberId, via: Via },
    /// Adds the node at `peer_url` to the member list as a learner, by a request to the etcd at `via`.
    AddLearner { peer_url: String, via: Via },
    /// Promotes the learner `id` to a voter by a request to the etcd at `via`.
    PromoteMember { id: MemberId, via: Via },
    /// Sets the cluster property `etcd_lone_boot` to `NODE:SECONDS`, by this node's clock, and records the event. Only `tandem
    /// lone-boot` performs this effect, [`Effect::HoldPeerOff`] and [`Effect::CancelWaitForAll`], because they need the peer's
    /// BMC, which the agent never asks.
    AnnounceLoneBoot(NodeName),
    /// Asks the peer's BMC for the power state once more. Fails unless the BMC reports Off and controls the machine that was found
    /// before. Then has the fencer fence the peer (`stonith_admin --fence`), so that it stays off. The fencer sends at most one
    /// `ForceOff`, and no `On`.
    HoldPeerOff(NodeName),
    /// Makes Corosync stop waiting for its absent members (`quorum.cancel_wait_for_all`).
    CancelWaitForAll,
}

/// Attribute that other programs read in the CIB: see `Others`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// IP address of this node's member.
    Address(String),
    /// Revision that OpenShift's sidecar last wrote.
    Revision(u64),
    /// UUID that this machine's firmware reports.
    SystemUuid(String),
    /// This node is leaving the member list.
    Leaving,
    /// This node is in the member list.
    Member,
    /// The new cluster that an operator or a program asked this node to force now exists, or is not needed.
    ForceDone,
    /// The restart that another program asked for (`restart_no_leave`) is done.
    RestartDone,
}

/// Node with the etcd that receives a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    Own,
    Peer,
}

impl Plan {
    /// Returns a plan that performs `effects` and then ends the action with the result `exit`.
    pub fn exit(effects: Vec<Effect>, exit: Exit, because: Reason) -> Self {
        Self { effects, next: Next::Exit(exit), because }
    }

    /// Returns a plan without effects that fails the action, so that Pacemaker may try again.
    pub fn refuse(because: Reason) -> Self {
        Self::exit(Vec::new(), Exit::Retriable, because)
    }

    /// Returns a plan that performs `effects`, and after a pause of `after_ms` milliseconds observes and decides again.
    pub fn then_look(effects: Vec<Effect>, after_ms: u64, progress: Progress, because: Reason) -> Self {
        Self { effects, next: Next::Reobserve { after_ms, progress }, because }
    }
}

impl Progress {
    /// Returns the progress of an action that enters `phase` now.
    pub fn enter(phase: Phase, now_ms: u64) -> Self {
        Self { phase, since_ms: now_ms, polls_caught_up: 0, restores: 0 }
    }

    /// Returns the milliseconds since the present phase began.
    pub fn in_phase_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }
}

impl Evidence {
    /// Returns a plan without effects that fails the action with this refusal. The reason names the peer, because most refusals are about
    /// it.
    pub(super) fn refuse(&self, refusal: Refusal) -> Plan {
        Plan::refuse(Reason::Refused { refusal, peer: self.peer_name().to_owned() })
    }

    /// Returns the reason for a plan that follows this rule, with the peer's name.
    pub(super) fn rule(&self, rule: Rule) -> Reason {
        Reason::Rule { rule, peer: self.peer_name().to_owned() }
    }
}
