//! Every wait of the core, with its reason: how long something is waited for, what is kept of an action's time, and how soon
//! one observation follows another. Nothing here waits: a plan contains the time after which it is to be decided again.
//!
//! Patience begins with the action, or with the phase that it is in. What is lost by too little of it is a failed action that
//! could have succeeded; by too much, time in which Pacemaker does nothing else on this node, and sometimes on both.

/// Makes a constant of each row, and the list [`PATIENCES`] of all of them.
macro_rules! patiences {
    ($($(#[$reason:meta])* $name:ident = $ms:literal;)*) => {
        $($(#[$reason])* pub(super) const $name: u64 = $ms;)*

        /// Name and milliseconds of every wait. A model that decides only at certain moments needs a moment before each wait's
        /// end and one after it.
        pub const PATIENCES: &[(&str, u64)] = &[$((stringify!($name), $name)),*];
    };
}

patiences! {
    /// Milliseconds for which a start waits for a peer that is starting at the same time.
    PATIENCE_WITH_A_STARTING_PEER_MS = 60_000;
    /// Milliseconds for which a start waits for a peer that can act only once this start has ended. A longer wait would only block the
    /// peer.
    PATIENCE_WITH_A_BLOCKED_PEER_MS = 4_000;
    /// Milliseconds for which a sole voter's start waits for a peer while the peer's machine is joining the cluster.
    PATIENCE_WITH_A_JOINING_PEER_MS = 15_000;
    /// Milliseconds for which an action waits for its own write to appear in this node's CIB.
    PATIENCE_WITH_THE_CIB_MS = 15_000;
    /// Milliseconds for which a start waits until another process frees a port that etcd needs.
    PATIENCE_WITH_A_PORT_MS = 60_000;
    /// Least milliseconds that a start takes before it fails, once a few starts have failed. It keeps failures rare, because
    /// Pacemaker's work between two failed starts costs both nodes time.
    PACE_MS = 16_000;
    /// Milliseconds for which the agent waits before a vote proxy votes. In this time etcd has to report its term, and the term
    /// has to stop changing.
    PATIENCE_WITH_A_TERM_MS = 2_000;
    /// Milliseconds for which the agent waits for etcd to report its state after a vote proxy has voted. They count from the
    /// beginning of the vote, which takes up to 7 s. etcd may be slow, because all its clients query it at once when it serves
    /// again.
    PATIENCE_AFTER_A_VOTE_MS = 10_000;
    /// Milliseconds for which a plain start waits for etcd to have a leader. After that, the start ends, and etcd runs without a
    /// leader until the peer votes.
    PATIENCE_FOR_A_LEADER_MS = 5_000;
    /// Milliseconds for which a plain start waits for a leader before it checks whether the peer serves in a cluster that does
    /// not list this member.
    PATIENCE_WITH_A_STALE_RECORD_MS = 1_000;
    /// Milliseconds for which a monitor waits for an answer of a silent etcd before the monitor fails.
    PATIENCE_WITH_A_SILENT_ETCD_MS = 12_000;
    /// Milliseconds for which a monitor waits for a container that a program other than Pacemaker is restarting. podman gives
    /// etcd 10 s to end.
    PATIENCE_WITH_A_RESTART_MS = 15_000;
    /// Milliseconds for which a monitor waits for a learner that has almost caught up. Any action also waits so long for a new
    /// voter's claim to run standalone to appear in the CIB. After either wait, the next monitor continues.
    PATIENCE_OF_A_MONITOR_WITH_A_LEARNER_MS = 5_000;
    /// Milliseconds for which the notification after the peer's start waits for a learner that is catching up. Monitors continue
    /// afterwards.
    PATIENCE_OF_A_NOTIFICATION_WITH_A_LEARNER_MS = 15_000;
    /// Milliseconds for which the notification after the peer's start waits for the first answer of a node that joins.
    PATIENCE_WITH_A_JOINER_MS = 3_000;
    /// Milliseconds for which a promotion waits for a learner to become a voter.
    PATIENCE_WITH_A_VOTE_MS = 15_000;
    /// Milliseconds for which a stop waits for a hand-over of leadership before the member leaves without one.
    PATIENCE_WITH_THE_HANDOVER_MS = 2_000;
    /// Milliseconds that a stop spends at most on leaving the member list. The limit is needed because the peer may not answer.
    PATIENCE_WITH_LEAVING_MS = 10_000;
    /// Milliseconds for which a stop or a start waits for an earlier action that changes the container. After that, it kills the
    /// earlier action. podman starts a container in one or two seconds.
    PATIENCE_WITH_AN_EARLIER_ACTION_MS = 10_000;
}

/// Number of failed starts after which every further start takes at least [`PACE_MS`]. The first starts may fail quickly, because
/// the obstacle is mostly a peer that boots at the same time.
pub(super) const QUICK_FAILURES: u64 = 3;

// What is kept of an action's time.

/// Part of a start's time, in milliseconds, that is kept for its last steps.
pub(super) const START_RESERVE_MS: u64 = 10_000;
/// Part of a stop's time, in milliseconds, that is kept for the steps after etcd's end.
pub(super) const STOP_RESERVE_MS: u64 = 5_000;
/// Part of a monitor's time, in milliseconds, that is kept for its result.
pub(super) const MONITOR_RESERVE_MS: u64 = 3_000;
/// Part of a promotion's time, in milliseconds, that is kept for its result.
pub(super) const PROMOTION_RESERVE_MS: u64 = 3_000;
/// Part of an action's time, in milliseconds, that is kept for its result. It applies while the action waits for a forced etcd to
/// serve.
pub(super) const FORCE_RESERVE_MS: u64 = 3_000;
/// Part of any action's time, in milliseconds, that is kept for the steps after the wait for an earlier action.
pub(super) const LOCK_RESERVE_MS: u64 = 5_000;

// What is left to be done of running standalone needs this much of the action's time, so that nothing is cut short in
// its middle. A monitor has 23 s, a notification 58.

/// Time that an action must have left to launch the container. podman takes one or two seconds. `slow.rs` requires more on a
/// machine on which earlier launches took longer.
pub const LAUNCH_NEEDS_MS: u64 = 7_000;
/// Time that an action must have left to end etcd, wait for the CIB, and launch the container.
pub(super) const STOP_AND_LAUNCH_NEED_MS: u64 = 10_000;

/// Time that an action must have left for a vote proxy: at most 3 s for the vote, two more seconds for each of its checks, and
/// time for the result.
pub(super) const VOTE_PROXY_NEEDS_MS: u64 = 8_000;

// How long etcd is given to end by itself, in seconds.

/// Seconds that a stop gives etcd to end by itself, in which etcd can still write. etcd needs well under a second unless
/// something hangs.
pub(super) const STOP_GRACE_S: u64 = 8;
/// Seconds that etcd gets to end by itself before a force. An etcd without a leader has nothing to finish. Entries that it has
/// written are recorded as committed before the force.
pub(super) const FORCE_GRACE_S: u64 = 1;
/// Seconds that etcd gets to end by itself if no member list contains its member. It has nothing to finish.
pub(super) const LEFT_OUT_GRACE_S: u64 = 1;

// How soon the next observation follows. Each one asks etcd, podman and the CIB, so slow changes are observed less often.

/// No pause before the next observation, because the result is visible at once, or the next step does not depend on it.
pub(super) const LOOK_AT_ONCE_MS: u64 = 0;
/// Pause before checking whether the CIB shows this node's announcement that it will run standalone. It is short, because no etcd
/// serves until the next step is done.
pub(super) const LOOK_FOR_AN_ANNOUNCEMENT_MS: u64 = 20;
/// Pause before checking whether this node's own CIB shows another write of this node.
pub(super) const LOOK_FOR_A_WRITE_MS: u64 = 50;
/// Pause after a change that soon takes effect: a launch with force, a promotion, the end of an earlier action.
pub(super) const LOOK_AFTER_A_CHANGE_MS: u64 = 50;
/// Pause before checking whether a changed member list is in effect.
pub(super) const LOOK_AT_THE_LIST_MS: u64 = 100;
/// Pause before checking whether an etcd that was launched has a leader.
pub(super) const LOOK_FOR_A_LEADER_MS: u64 = 100;
/// Pause before checking whether an earlier action has ended.
pub(super) const LOOK_FOR_THE_LOCK_MS: u64 = 100;
/// Pause before checking whether the peer serves or has published its record.
pub(super) const LOOK_AT_THE_PEER_MS: u64 = 200;
/// Pause before checking whether etcd has ended.
pub(super) const LOOK_FOR_THE_END_MS: u64 = 200;
/// Pause between two observations of a learner that has to catch up or to answer. A promotion needs two observations that are not
/// too close together.
pub(super) const LOOK_AT_A_LEARNER_MS: u64 = 250;
/// Pause before checking whether an etcd that was forced or is being restarted serves again. Both take seconds.
pub(super) const LOOK_FOR_A_RETURN_MS: u64 = 250;
/// Pause before observing a state that may last: a silent etcd, an obstacle to a start, or a delayed refusal.
pub(super) const LOOK_AGAIN_MS: u64 = 500;
/// Pause between two checks for a restored record. A fast cluster takes some ten milliseconds to show it.
pub(super) const LOOK_FOR_A_RESTORED_RECORD_MS: u64 = 100;
/// Number of checks for a restored record. After them, the agent decides without the record.
pub(super) const LOOKS_FOR_A_RESTORED_RECORD: u8 = 10;
