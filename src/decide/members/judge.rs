//! Whether one step may be taken now.

use super::{Forbidden, Health, MachineState, Member, MemberStep, Membership, Newcomer, Words, quorum};
use crate::decide::evidence::{MemberId, NodeName};

/// Result for a step that the rules allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// True if the step is allowed only because an operator confirmed it. The confirmation is valid for one step.
    pub uses_word: bool,
}

const BY_THE_RULES: Passed = Passed { uses_word: false };

/// Checks whether the rules M1 to M13 allow `step` now. If the step is part of a replacement, `replaced` is the member that is to
/// be replaced.
pub fn judge(
    membership: &Membership,
    step: &MemberStep,
    replaced: Option<MemberId>,
    words: &Words,
) -> Result<Passed, Forbidden> {
    let look = Look { membership, replaced };
    match step {
        MemberStep::AddLearner(newcomer) => look.add(newcomer),
        MemberStep::Promote(id) => look.promote(*id),
        MemberStep::MoveLeader { to } => look.hand_over(*to),
        MemberStep::Remove(id) => look.remove(*id, words),
    }
}

/// Checks by rule M7 (see [`Forbidden`]) whether the learner `id` is in a state in which it may be promoted. The other members'
/// state does not matter.
pub(super) fn judge_learner(membership: &Membership, id: MemberId) -> Result<(), Forbidden> {
    Look { membership, replaced: None }.learner(id).map(drop)
}

/// Checks by rule M11 (see [`Forbidden`]) whether a majority of healthy voters could commit a change now.
pub(super) fn judge_majority(membership: &Membership) -> Result<(), Forbidden> {
    Look { membership, replaced: None }.quorum()
}

struct Look<'a> {
    membership: &'a Membership,
    replaced: Option<MemberId>,
}

impl<'a> Look<'a> {
    /// Checks the rules for adding a learner (see [`Forbidden`]): no other learner (rule M2), room for a member (M1), healthy voters (M3),
    /// and the rules for every change.
    fn add(&self, newcomer: &Newcomer) -> Result<Passed, Forbidden> {
        self.quorum()?;
        self.settled()?;
        if let Some(known) = self.membership.at(&newcomer.peer_url) {
            return Err(Forbidden::AddressInUse { url: newcomer.peer_url.clone(), member: known.shown() });
        }
        self.pair_is_complete(None)?;
        if let Some(learner) = self.membership.learners().next() {
            return Err(Forbidden::LearnerListed { learner: learner.shown() });
        }
        let (members, wanted) = (self.membership.members.len(), self.membership.wanted);
        if members >= self.membership.room() {
            return Err(Forbidden::TooMany { members, wanted, is_pair: self.membership.is_pair });
        }
        self.others_are_healthy()?;
        Ok(BY_THE_RULES)
    }

    /// Checks the rules for a promotion (see [`Forbidden`]): a learner that is ready (rule M7), room for a voter (M1), and other voters
    /// that are healthy (M3).
    fn promote(&self, id: MemberId) -> Result<Passed, Forbidden> {
        self.quorum()?;
        self.settled()?;
        let learner = self.learner(id)?;
        self.pair_is_complete(learner.node.as_ref())?;
        let (voters, wanted) = (self.membership.voters().count(), self.membership.wanted);
        if voters >= self.membership.room() {
            return Err(Forbidden::TooMany { members: voters, wanted, is_pair: self.membership.is_pair });
        }
        self.others_are_healthy()?;
        Ok(BY_THE_RULES)
    }

    fn learner(&self, id: MemberId) -> Result<&'a Member, Forbidden> {
        let learner = self.listed(id)?;
        let member = || learner.shown();
        if !learner.is_learner {
            return Err(Forbidden::VotesAlready { member: member() });
        }
        match &learner.machine {
            MachineState::BeingDeleted => return Err(Forbidden::BeingDeleted { member: member() }),
            MachineState::Unknown(why) => {
                return Err(Forbidden::MachineUnknown { member: member(), why: why.clone() });
            }
            MachineState::Stays { is_protected: false } if self.membership.uses_hooks => {
                return Err(Forbidden::Unprotected { member: member() });
            }
            MachineState::Stays { .. } | MachineState::None => {}
        }
        if !learner.has_started() {
            return Err(Forbidden::NotStarted { member: member() });
        }
        match &learner.health {
            Health::Yes => {}
            Health::No(why) => return Err(Forbidden::LearnerUnhealthy { member: member(), why: why.clone() }),
            Health::Unknown(why) => return Err(Forbidden::Unknown { member: member(), why: why.clone() }),
        }
        let most = self.membership.promote_max_lag;
        let looks = [learner.lag, learner.lag_before];
        if let Some(lag) = looks.into_iter().flatten().find(|lag| *lag > most) {
            return Err(Forbidden::Lags { member: member(), lag, most });
        }
        if looks.contains(&None) {
            return Err(Forbidden::SeenOnce { member: member() });
        }
        Ok(learner)
    }

    fn hand_over(&self, to: MemberId) -> Result<Passed, Forbidden> {
        self.quorum()?;
        self.settled()?;
        let heir = self.listed(to)?;
        match &heir.health {
            _ if heir.is_learner => Err(Forbidden::NoHeir),
            Health::Yes => Ok(BY_THE_RULES),
            Health::No(_) => Err(Forbidden::NoHeir),
            Health::Unknown(why) => Err(Forbidden::Unknown { member: heir.shown(), why: why.clone() }),
        }
    }

    /// Checks the rules for a removal (see [`Forbidden`]):
    ///
    /// - The member is neither the last voter nor the leader (rule M10).
    /// - A majority of healthy voters exists before and after the removal (M5), and the health of the voters is known (M12).
    /// - Unhealthy members are removed before healthy ones (M6), and learners only by rule M8.
    /// - A voter that no other member replaces is not lost (M4).
    fn remove(&self, id: MemberId, words: &Words) -> Result<Passed, Forbidden> {
        let target = self.listed(id)?;
        let (voters, healthy) = (self.membership.voters().count(), self.membership.healthy());
        if !target.is_learner {
            if voters == 1 {
                return Err(Forbidden::LastVoter { member: target.shown() });
            }
            self.unknown(None)?;
            if healthy < quorum(voters) {
                return Err(Forbidden::CannotCommit { voters, healthy, is_pair: self.membership.is_pair });
            }
        }
        self.quorum()?;
        self.settled()?;
        if target.is_learner {
            return remove_learner(target);
        }
        let left = healthy - usize::from(target.is_healthy());
        if left < quorum(voters - 1) {
            return Err(Forbidden::QuorumWouldGo { voters: voters - 1, healthy: left });
        }
        if self.membership.leader == Some(id) {
            return Err(Forbidden::Leads { member: target.shown(), is_pair: self.membership.is_pair });
        }
        if !target.is_healthy() {
            return Ok(BY_THE_RULES);
        }
        if let Some(sick) = self.membership.members.iter().find(|member| !member.is_healthy() && !is_new(member)) {
            return Err(Forbidden::UnhealthyFirst { member: target.shown(), unhealthy: sick.shown() });
        }
        self.may_be_fewer(target, voters, words)
    }

    /// Checks whether a healthy voter may leave without a replacement. It may if there are more voters than are wanted (rule M4),
    /// or if an operator confirmed the loss of this member (rule M13).
    fn may_be_fewer(&self, target: &Member, voters: usize, words: &Words) -> Result<Passed, Forbidden> {
        if voters > self.membership.wanted {
            return Ok(BY_THE_RULES);
        }
        match words.fewer_voters {
            Some(id) if id == target.id => Ok(Passed { uses_word: true }),
            Some(id) => {
                let given = self.membership.member(id).map_or_else(|| format!("member {id:x}"), Member::shown);
                Err(Forbidden::WordForAnother { given, member: target.shown() })
            }
            None => Err(Forbidden::NoReplacement { member: target.shown(), wanted: self.membership.wanted }),
        }
    }

    fn listed(&self, id: MemberId) -> Result<&'a Member, Forbidden> {
        self.membership.member(id).ok_or_else(|| Forbidden::NotListed { member: format!("member {id:x}") })
    }

    /// Checks by rule M11 that etcd has a leader and a majority of healthy voters. If voters of unknown health make the majority
    /// doubtful, the error names rule M12 (see [`Forbidden`]).
    fn quorum(&self) -> Result<(), Forbidden> {
        let (voters, healthy) = (self.membership.voters().count(), self.membership.healthy());
        let is_pair = self.membership.is_pair;
        if self.membership.leader.is_none() {
            return Err(Forbidden::NoLeader { is_pair });
        }
        if healthy >= quorum(voters) {
            return Ok(());
        }
        self.unknown(None)?;
        Err(Forbidden::NoQuorum { voters, healthy, is_pair })
    }

    /// Checks by rule M9 (see [`Forbidden`]) that no other change is under way, and that all members have applied the last one.
    fn settled(&self) -> Result<(), Forbidden> {
        if let Some(change) = &self.membership.change {
            return Err(Forbidden::ChangeUnderWay { change: change.clone() });
        }
        if !self.membership.is_confirmed {
            return Err(Forbidden::Unconfirmed);
        }
        let lacks = |member: &&Member| member.is_healthy() && member.knows_the_list == Some(false);
        match self.membership.members.iter().find(lacks) {
            Some(member) => Err(Forbidden::NotApplied { member: member.shown() }),
            None => Ok(()),
        }
    }

    /// Checks rule M3 (see [`Forbidden`]) for a third voter, which runs on neither node of the pair. It is added only once the
    /// members of both nodes vote. If only one of them voted, the third voter would be the second of two voters. No agent would
    /// replace it after a failure.
    fn pair_is_complete(&self, node: Option<&NodeName>) -> Result<(), Forbidden> {
        let voting = self.membership.voters().filter(|voter| voter.node.is_some()).count();
        if self.membership.third_voter && node.is_none() && voting < 2 { Err(Forbidden::HalfAPair) } else { Ok(()) }
    }

    /// Checks that every voter except the one to be replaced is healthy (rule M3). If the health of such a voter is unknown, the
    /// error names rule M12.
    fn others_are_healthy(&self) -> Result<(), Forbidden> {
        self.unknown(self.replaced)?;
        for voter in self.membership.voters().filter(|voter| Some(voter.id) != self.replaced) {
            if let Health::No(why) = &voter.health {
                return Err(Forbidden::UnhealthyBeside { member: voter.shown(), why: why.clone() });
            }
        }
        Ok(())
    }

    /// Checks by rule M12 that the health of every voter is known, except that of the member `except`.
    fn unknown(&self, except: Option<MemberId>) -> Result<(), Forbidden> {
        for voter in self.membership.voters().filter(|voter| Some(voter.id) != except) {
            if let Health::Unknown(why) = &voter.health {
                return Err(Forbidden::Unknown { member: voter.shown(), why: why.clone() });
            }
        }
        Ok(())
    }
}

/// Returns whether `member` is a learner that has not started yet. Such a learner does not count as unhealthy, because it may be
/// starting just now.
fn is_new(member: &Member) -> bool {
    member.is_learner && !member.has_started()
}

/// Checks by rule M8 whether the learner `target` may be removed. A healthy learner may not, because it is about to become a
/// voter.
fn remove_learner(target: &Member) -> Result<Passed, Forbidden> {
    let is_deleted = target.machine == MachineState::BeingDeleted;
    if !target.has_started() || is_deleted || target.is_strange {
        return Ok(BY_THE_RULES);
    }
    match &target.health {
        Health::Yes => Err(Forbidden::Joining { member: target.shown() }),
        Health::No(_) => Ok(BY_THE_RULES),
        Health::Unknown(why) => Err(Forbidden::Unknown { member: target.shown(), why: why.clone() }),
    }
}
