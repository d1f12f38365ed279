//! All moves: the smallest things that can happen.

use crate::sim::model::pacemaker::{BEGINNINGS, Begin};
use crate::sim::model::timing::MOMENTS;
use crate::sim::model::world::{Blind, Bmc, KeptHistory, Wanted};

/// A move of the model: the smallest event that changes a state. Most moves have the index of a node as their first value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    Write,
    Replicate,
    Learn,
    Persist(usize),
    Elect(usize),
    Leave(usize),
    /// A leader without a follower notices that it is alone, and steps down.
    StepDown(usize),
    PowerCut(usize),
    Destroy(usize),
    Unblock(usize),
    Boot(usize),
    KillEtcd(usize),
    KillAgent(usize),
    CutLink,
    HealLink,
    Lag(usize),
    CatchUp,
    Notice,
    Meet(usize),
    Fence(usize),
    Begin(usize, Begin, usize),
    Decide(usize, usize),
    Effect(usize),
    GiveUp(usize),
    Want(usize, Wanted),
    /// An operator confirms a recovery on a node (`tandem confirm-recovery`). The first flag is true if the operator accepts a loss.
    /// The second flag is true if the operator names the other node as one that is on.
    Confirm(usize, bool, bool),
    /// Pacemaker and Corosync end on a node in maintenance.
    EndStack(usize),
    /// Pacemaker and Corosync on a node are killed.
    KillStack(usize),
    /// Pacemaker and Corosync start again on a node, in the boot in which they ended or were killed.
    StackBack(usize),
    /// The agent is killed while it starts etcd, but the start continues.
    KillLaunch(usize),
    /// A start of etcd completes. It has continued although its agent was killed.
    Launched(usize),
    /// The power of a node is cut. After that, its data looks complete, but etcd cannot start from it.
    Damage(usize),
    /// The power of a node is cut, and the disk with its data is not mounted at the next boot.
    Unmount(usize),
    /// The disk with a node's data is mounted again.
    Mount(usize),
    /// The power of a node is cut, and its disk is put back to an earlier state. The second value is the number of entries in the log
    /// of that state. The flag is true if the durable state goes back, too.
    PutBack(usize, usize, bool),
    /// An operator replaces a node's data dir with an earlier one while its etcd does not run. The second value is the number of
    /// entries in the earlier log. The flag is true if the durable state goes back, too.
    RollBack(usize, usize, bool),
    /// The power of a node is cut, and its disk becomes a copy of the other node's, which is off. The flag is true if
    /// the durable state is copied, too.
    Copy(usize, bool),
    /// An operator makes Pacemaker clear its count of failures on a node.
    CleanUp(usize),
    /// An operator chooses this node's history out of two (`etcd_primary`).
    Choose(usize),
    /// An operator, or another program, chooses this node's data as the data that is kept (`force_new_cluster`).
    Tell(usize),
    /// Another controller, or an operator with `etcdctl`, promotes the learner without Tandem.
    PromoteElsewhere,
    /// An operator with `etcdctl` removes the voter that does not lead, without Tandem.
    RemoveElsewhere,
    /// An operator makes Pacemaker on the other node forget this node, which has left the membership (`pcs cluster node remove`).
    Forget(usize),
    /// The next observation of this node's agent misses a fact.
    Hide(usize, Blind),
    /// Pacemaker erases the record of this node from the CIB.
    Erase(usize),
    /// The third voter becomes unreachable for both nodes.
    LoseThirdVoter,
    /// Both nodes reach the third voter again.
    ThirdVoterBack,
    /// Users no longer reach this node.
    CutUsers(usize),
    /// Users reach this node again.
    UsersBack(usize),
    /// A delay that this node's agent counts is over. It is the delay before a hand-over, or that of a time without a leader.
    DelayOver(usize),
    /// The network between the two etcds is cut, while Pacemaker's network works.
    PartEtcd,
    /// The network between the two etcds is repaired.
    JoinEtcd,
    /// This node's parameters change, so that they keep another history or none.
    Keep(usize, KeptHistory),
    /// The BMC of this machine stops answering, or a third machine's BMC answers in its place.
    BmcFails(usize, Bmc),
    /// The BMC of this machine answers again.
    BmcBack(usize),
    /// The peer has been off for so long that `tandem lone-boot` on this node may act.
    OffForLong(usize),
    /// `tandem lone-boot` on this node observes and decides.
    LoneLook(usize),
    /// `tandem lone-boot` on this node performs what it has decided on.
    LoneAct(usize),
}

/// The largest number of entries that a log may keep when a search puts it back.
pub const MOST_ENTRIES: usize = 32;

/// All combinations of the two flags of [`Move::Confirm`]: the operator accepts a loss, and the operator names the other node as one
/// that is on.
pub const WORDS: [[bool; 2]; 4] = [[false, false], [true, false], [false, true], [true, true]];

/// The histories that the parameters of a node can keep.
pub const KEPT: [KeptHistory; 3] = [KeptHistory::Primarys, KeptHistory::Neither, KeptHistory::Others];

/// The ways in which a BMC can fail.
pub const BMC_FAULTS: [Bmc; 2] = [Bmc::Silent, Bmc::Anothers];

/// Returns all moves that a scenario file can name.
pub fn all() -> Vec<Move> {
    let mut moves = vec![Move::Write, Move::Replicate, Move::Learn, Move::CutLink, Move::HealLink];
    moves.extend([Move::CatchUp, Move::Notice, Move::PromoteElsewhere, Move::LoseThirdVoter, Move::ThirdVoterBack]);
    moves.push(Move::RemoveElsewhere);
    moves.extend([Move::PartEtcd, Move::JoinEtcd]);
    for n in 0..2 {
        moves.extend([Move::Persist(n), Move::Elect(n), Move::Leave(n), Move::PowerCut(n), Move::Boot(n)]);
        moves.extend([Move::StepDown(n), Move::Destroy(n), Move::Unblock(n)]);
        moves.extend([Move::KillEtcd(n), Move::KillAgent(n), Move::Lag(n), Move::Meet(n), Move::Fence(n)]);
        moves.extend([Move::EndStack(n), Move::KillStack(n), Move::StackBack(n)]);
        moves.extend([Move::KillLaunch(n), Move::Launched(n), Move::Damage(n), Move::CleanUp(n)]);
        moves.extend([Move::Unmount(n), Move::Mount(n)]);
        moves.extend([Move::Effect(n), Move::GiveUp(n)]);
        moves.extend(WORDS.map(|[accept_loss, node_is_on]| Move::Confirm(n, accept_loss, node_is_on)));
        moves.extend([Wanted::Running, Wanted::Standby, Wanted::Shutdown].map(|wanted| Move::Want(n, wanted)));
        moves.extend([Move::Choose(n), Move::Tell(n), Move::Forget(n)]);
        moves.extend(Blind::ALL.map(|what| Move::Hide(n, what)));
        moves.extend([Move::Erase(n), Move::CutUsers(n), Move::UsersBack(n), Move::DelayOver(n)]);
        moves.extend(KEPT.map(|kept| Move::Keep(n, kept)));
        moves.extend(BMC_FAULTS.map(|bmc| Move::BmcFails(n, bmc)));
        moves.extend([Move::BmcBack(n), Move::OffForLong(n), Move::LoneLook(n), Move::LoneAct(n)]);
        moves.extend((1..MOST_ENTRIES).flat_map(|kept| [false, true].map(|note| Move::PutBack(n, kept, note))));
        moves.extend((1..MOST_ENTRIES).flat_map(|kept| [false, true].map(|note| Move::RollBack(n, kept, note))));
        moves.extend([true, false].map(|with_note| Move::Copy(n, with_note)));
        for moment in 0..MOMENTS.len() {
            moves.push(Move::Decide(n, moment));
        }
        for begin in BEGINNINGS {
            let moments = if is_pending(begin) { 1 } else { MOMENTS.len() };
            moves.extend((0..moments).map(|moment| Move::Begin(n, begin, moment)));
        }
    }
    moves
}

/// Returns whether the other node sees this action as soon as it begins. For starts and stops this is so. Of all other actions, the
/// other node sees only the effects.
pub fn is_pending(begin: Begin) -> bool {
    matches!(begin, Begin::Start { .. } | Begin::Stop { .. } | Begin::StopInVain)
}

impl Move {
    /// Returns whether the move is a fault or an operator's action. A search limits how many of these happen in a run.
    pub fn is_fault(self) -> bool {
        matches!(
            self,
            Self::PowerCut(_)
                | Self::Destroy(_)
                | Self::KillEtcd(_)
                | Self::KillAgent(_)
                | Self::CutLink
                | Self::Lag(_)
                | Self::Confirm(..)
                | Self::EndStack(_)
                | Self::KillStack(_)
                | Self::KillLaunch(_)
                | Self::Damage(_)
                | Self::Unmount(_)
                | Self::PutBack(..)
                | Self::RollBack(..)
                | Self::Copy(..)
                | Self::CleanUp(_)
                | Self::Choose(_)
                | Self::Tell(_)
                | Self::Forget(_)
                | Self::PromoteElsewhere
                | Self::RemoveElsewhere
                | Self::Hide(..)
                | Self::Erase(_)
                | Self::LoseThirdVoter
                | Self::CutUsers(_)
                | Self::PartEtcd
                | Self::BmcFails(..)
                | Self::Keep(_, KeptHistory::Neither | KeptHistory::Others)
                | Self::Want(_, Wanted::Standby | Wanted::Shutdown)
        )
    }

    /// Returns a number below 128 that identifies the kind of the move. It is the same for both nodes and all moments.
    pub fn kind(self) -> usize {
        match self {
            Self::Write => 0,
            Self::Replicate => 1,
            Self::Learn => 2,
            Self::Persist(_) => 3,
            Self::Elect(_) => 4,
            Self::Leave(_) => 5,
            Self::PowerCut(_) => 6,
            Self::Destroy(_) => 7,
            Self::Unblock(_) => 8,
            Self::Boot(_) => 9,
            Self::KillEtcd(_) => 10,
            Self::KillAgent(_) => 11,
            Self::CutLink => 12,
            Self::HealLink => 13,
            Self::Lag(_) => 14,
            Self::CatchUp => 15,
            Self::Notice => 16,
            Self::Meet(_) => 17,
            Self::Fence(_) => 18,
            Self::Decide(..) => 19,
            Self::Effect(_) => 20,
            Self::GiveUp(_) => 21,
            Self::Want(_, Wanted::Running) => 22,
            Self::Want(_, Wanted::Standby) => 23,
            Self::Want(_, Wanted::Shutdown) => 24,
            Self::Confirm(_, false, _) => 25,
            Self::Confirm(_, true, _) => 26,
            Self::Choose(_) => 27,
            Self::Tell(_) => 28,
            Self::Hide(_, Blind::Stranger) => 66,
            Self::Hide(_, what) => 29 + what as usize,
            // The number of `Blind::None` is free, because no move has it.
            Self::PromoteElsewhere => 29,
            Self::LoseThirdVoter => 36,
            Self::ThirdVoterBack => 37,
            Self::Erase(_) => 38,
            Self::PutBack(..) => 39,
            Self::RollBack(..) => 67,
            Self::CutUsers(_) => 68,
            Self::UsersBack(_) => 69,
            Self::DelayOver(_) => 70,
            Self::PartEtcd => 71,
            Self::JoinEtcd => 72,
            Self::Keep(_, kept) => 73 + kept as usize,
            Self::BmcFails(_, bmc) => 75 + bmc as usize,
            Self::BmcBack(_) => 78,
            Self::OffForLong(_) => 79,
            Self::LoneLook(_) => 80,
            Self::LoneAct(_) => 81,
            Self::RemoveElsewhere => 82,
            Self::Copy(..) => 63,
            Self::EndStack(_) => 54,
            Self::KillStack(_) => 55,
            Self::StackBack(_) => 56,
            Self::KillLaunch(_) => 57,
            Self::Launched(_) => 58,
            Self::Damage(_) => 59,
            Self::Unmount(_) => 64,
            Self::Mount(_) => 65,
            Self::CleanUp(_) => 60,
            Self::StepDown(_) => 61,
            Self::Forget(_) => 62,
            Self::Begin(_, begin, _) => 40 + BEGINNINGS.iter().position(|known| *known == begin).unwrap_or(0),
        }
    }

    /// Returns the same move for the other node.
    #[must_use]
    pub fn of_the_other(self) -> Self {
        match self {
            Self::Persist(n) => Self::Persist(1 - n),
            Self::Elect(n) => Self::Elect(1 - n),
            Self::Leave(n) => Self::Leave(1 - n),
            Self::StepDown(n) => Self::StepDown(1 - n),
            Self::PowerCut(n) => Self::PowerCut(1 - n),
            Self::Destroy(n) => Self::Destroy(1 - n),
            Self::Unblock(n) => Self::Unblock(1 - n),
            Self::Boot(n) => Self::Boot(1 - n),
            Self::KillEtcd(n) => Self::KillEtcd(1 - n),
            Self::KillAgent(n) => Self::KillAgent(1 - n),
            Self::Lag(n) => Self::Lag(1 - n),
            Self::Meet(n) => Self::Meet(1 - n),
            Self::Fence(n) => Self::Fence(1 - n),
            Self::Begin(n, begin, moment) => Self::Begin(1 - n, begin, moment),
            Self::Decide(n, moment) => Self::Decide(1 - n, moment),
            Self::Effect(n) => Self::Effect(1 - n),
            Self::GiveUp(n) => Self::GiveUp(1 - n),
            Self::Want(n, wanted) => Self::Want(1 - n, wanted),
            Self::Confirm(n, accept_loss, node_is_on) => Self::Confirm(1 - n, accept_loss, node_is_on),
            Self::EndStack(n) => Self::EndStack(1 - n),
            Self::KillStack(n) => Self::KillStack(1 - n),
            Self::StackBack(n) => Self::StackBack(1 - n),
            Self::KillLaunch(n) => Self::KillLaunch(1 - n),
            Self::Launched(n) => Self::Launched(1 - n),
            Self::Damage(n) => Self::Damage(1 - n),
            Self::Unmount(n) => Self::Unmount(1 - n),
            Self::Mount(n) => Self::Mount(1 - n),
            Self::CleanUp(n) => Self::CleanUp(1 - n),
            Self::PutBack(n, kept, note) => Self::PutBack(1 - n, kept, note),
            Self::RollBack(n, kept, note) => Self::RollBack(1 - n, kept, note),
            Self::Copy(n, with_note) => Self::Copy(1 - n, with_note),
            Self::Choose(n) => Self::Choose(1 - n),
            Self::Tell(n) => Self::Tell(1 - n),
            Self::Forget(n) => Self::Forget(1 - n),
            Self::Hide(n, what) => Self::Hide(1 - n, what),
            Self::Erase(n) => Self::Erase(1 - n),
            Self::CutUsers(n) => Self::CutUsers(1 - n),
            Self::UsersBack(n) => Self::UsersBack(1 - n),
            Self::DelayOver(n) => Self::DelayOver(1 - n),
            Self::Keep(n, kept) => Self::Keep(1 - n, kept),
            Self::BmcFails(n, bmc) => Self::BmcFails(1 - n, bmc),
            Self::BmcBack(n) => Self::BmcBack(1 - n),
            Self::OffForLong(n) => Self::OffForLong(1 - n),
            Self::LoneLook(n) => Self::LoneLook(1 - n),
            Self::LoneAct(n) => Self::LoneAct(1 - n),
            Self::Write
            | Self::Replicate
            | Self::Learn
            | Self::CutLink
            | Self::HealLink
            | Self::PartEtcd
            | Self::JoinEtcd
            | Self::CatchUp
            | Self::Notice
            | Self::PromoteElsewhere
            | Self::RemoveElsewhere
            | Self::LoseThirdVoter
            | Self::ThirdVoterBack => self,
        }
    }
}
