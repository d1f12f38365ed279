//! Every wait of the core, with its reason: how long something is waited for, what is kept of an action's time, and how soon
//! one observation follows another. Nothing here waits: a plan contains the time after which it is to be decided again.
//!
//! Patience begins with the action, or with the phase that it is in. What is lost by too little of it is a failed action that
//! could have succeeded; by too much, time in which Pacemaker does nothing else on this node, and sometimes on both.

/// Makes a constant of each row, and one list of all of them.
macro_rules! patiences {
    ($($(#[$reason:meta])* $name:ident = $ms:literal;)*) => {
        $($(#[$reason])* pub(super) const $name: u64 = $ms;)*

        /// Every patience by its name: a model that decides at a few moments needs one before and one past each.
        pub const PATIENCES: &[(&str, u64)] = &[$((stringify!($name), $name)),*];
    };
}

patiences! {
    /// A start, with a peer that starts at the same time: both starts run in parallel.
    PATIENCE_WITH_A_STARTING_PEER_MS = 60_000;
    /// A start, with a peer that can only act once our start has ended. Waiting longer would block it.
    PATIENCE_WITH_A_BLOCKED_PEER_MS = 4_000;
    /// A sole voter's start, with a peer that is joining the cluster.
    PATIENCE_WITH_A_JOINING_PEER_MS = 15_000;
    /// Anything that the agent writes, until it appears in its own CIB.
    PATIENCE_WITH_THE_CIB_MS = 15_000;
    /// A start, with another process that listens on our ports.
    PATIENCE_WITH_A_PORT_MS = 60_000;
    /// The least time that a start takes before it fails, once as many as are tried quickly have failed. Pacemaker's work
    /// between two failed starts costs both nodes something.
    PACE_MS = 16_000;
    /// A vote proxy that is announced, with a term that moves, or that etcd does not report for a moment.
    PATIENCE_WITH_A_TERM_MS = 2_000;
    /// The time after a vote proxy, which took 7 s at most itself, with an etcd that does not report its state. All of its
    /// clients ask it at once when it serves again.
    PATIENCE_AFTER_A_VOTE_MS = 10_000;
    /// A plain start, with an etcd without a leader. It runs on without one and waits for its peer's vote.
    PATIENCE_FOR_A_LEADER_MS = 5_000;
    /// The same, before it looks whether the peer serves without it.
    PATIENCE_WITH_A_STALE_RECORD_MS = 1_000;
    /// A monitor, with an etcd that does not answer, before the agent reports that.
    PATIENCE_WITH_A_SILENT_ETCD_MS = 12_000;
    /// A monitor, with a container that a program other than Pacemaker restarts: podman gives etcd 10 s to end.
    PATIENCE_WITH_A_RESTART_MS = 15_000;
    /// A monitor, with a learner that is almost caught up, and any action that finds a new voter, with its claim. The next
    /// monitor continues.
    PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS = 5_000;
    /// A post-start notification, with a learner that is catching up; monitors continue afterwards.
    PATIENCE_OF_A_NOTIFICATION_WITH_A_LEARNER_MS = 15_000;
    /// The same, with a joiner that has not answered yet.
    PATIENCE_WITH_A_JOINER_MS = 3_000;
    /// A promotion, with a learner that has no vote yet.
    PATIENCE_WITH_A_VOTE_MS = 15_000;
    /// A stop, with the handing over of leadership, before the member leaves without it.
    PATIENCE_WITH_THE_HANDOVER_MS = 2_000;
    /// A stop, with leaving in all: a peer that does not answer must not eat its time.
    PATIENCE_WITH_LEAVING_MS = 10_000;
    /// A stop or a start, with an earlier action that still changes the container, before they end it. podman takes a second or
    /// two for a start.
    PATIENCE_WITH_AN_EARLIER_ACTION_MS = 10_000;
}

/// The number of failed starts that come quickly, because the obstacle is mostly a peer that boots at the same time. Each
/// later one takes [`PACE_MS`].
pub(super) const QUICK_FAILURES: u64 = 3;

// What is kept of an action's time.

/// Of a start, for its last steps.
pub(super) const START_RESERVE_MS: u64 = 10_000;
/// Of a stop, for what comes after etcd is gone.
pub(super) const STOP_RESERVE_MS: u64 = 5_000;
/// Of a monitor, for its answer.
pub(super) const MONITOR_RESERVE_MS: u64 = 3_000;
/// Of a promotion, for its answer.
pub(super) const PROMOTION_RESERVE_MS: u64 = 3_000;
/// Of the time in which what was forced is waited for.
pub(super) const FORCE_RESERVE_MS: u64 = 3_000;
/// Of any action, for what follows the wait for an earlier one.
pub(super) const LOCK_RESERVE_MS: u64 = 5_000;

// What is left to be done of running standalone needs this much of the action's time, so that nothing is cut short in
// its middle. A monitor has 23 s, a notification 58.

/// The launch: podman takes a second or two. Where launches were seen to need more it is more (`slow.rs`).
pub const LAUNCH_NEEDS_MS: u64 = 7_000;
/// Before it, the end of etcd and the CIB's answer.
pub(super) const STOP_AND_LAUNCH_NEED_MS: u64 = 10_000;

/// A vote proxy: 3 s at most, two more for each of its proofs, and the answer.
pub(super) const VOTE_PROXY_NEEDS_MS: u64 = 8_000;

// How long etcd is given to end by itself, in seconds.

/// Of a stop, with a chance to write: etcd needs well under a second where nothing hangs.
pub(super) const STOP_GRACE_S: u64 = 8;
/// Before a force: a leaderless etcd has nothing to finish; what it has not written is covered by advancing the commit index.
pub(super) const FORCE_GRACE_S: u64 = 1;
/// Of a member that no list has: it has nothing to finish.
pub(super) const LEFT_OUT_GRACE_S: u64 = 1;

// How soon the next observation follows. Each one asks etcd, podman and the CIB, so slow changes are observed less often.

/// The result is visible at once, or the next step does not depend on it.
pub(super) const LOOK_AT_ONCE_MS: u64 = 0;
/// An announcement, to appear in the CIB: until the step after it is done no etcd serves.
pub(super) const LOOK_FOR_AN_ANNOUNCEMENT_MS: u64 = 20;
/// Anything else that we wrote, to appear in our own CIB.
pub(super) const LOOK_FOR_A_WRITE_MS: u64 = 50;
/// A change that takes a moment: a launch with force, a promotion, the end of an earlier action.
pub(super) const LOOK_AFTER_A_CHANGE_MS: u64 = 50;
/// A member list that was changed, to be in force.
pub(super) const LOOK_AT_THE_LIST_MS: u64 = 100;
/// An etcd that was launched, to have a leader.
pub(super) const LOOK_FOR_A_LEADER_MS: u64 = 100;
/// An earlier action, to be over.
pub(super) const LOOK_FOR_THE_LOCK_MS: u64 = 100;
/// The peer, to serve or to say something.
pub(super) const LOOK_AT_THE_PEER_MS: u64 = 200;
/// etcd, to be gone.
pub(super) const LOOK_FOR_THE_END_MS: u64 = 200;
/// A learner, to catch up or to answer: two polls in a row are to be apart.
pub(super) const LOOK_AT_A_LEARNER_MS: u64 = 250;
/// An etcd that was forced, or that is being restarted, to be back: that takes seconds.
pub(super) const LOOK_FOR_A_RETURN_MS: u64 = 250;
/// A state that may last: an etcd that is silent, an obstacle to a start, a refusal before its time has come.
pub(super) const LOOK_AGAIN_MS: u64 = 500;
/// The pause between checks for a restored record, and their number: it takes some ten milliseconds on a fast cluster.
pub(super) const LOOK_FOR_A_RESTORED_RECORD_MS: u64 = 100;
pub(super) const LOOKS_FOR_A_RESTORED_RECORD: u8 = 10;
