//! The next step towards a wish. A program asks for it anew before each step, with an observation of its own. So a program
//! that was killed in between continues from the state that it finds.

use super::judge::{judge_learner, judge_majority};
use super::{Forbidden, Health, MemberStep, Membership, Newcomer, Passed, Wish, Words, judge};
use crate::decide::evidence::MemberId;

/// Next step of a change of the members, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The change is complete.
    Done,
    Step(MemberStep, Passed),
    /// No step is allowed now; [`Forbidden::passes`] returns whether waiting helps.
    Forbidden(Forbidden),
}

/// Point of a replacement at which the old member is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// The old member is removed before the new one is listed, because etcd lists no learner while a voter is down.
    First,
    /// The old member is removed just before the new one is promoted. With the dead voter still listed, the promotion would raise
    /// the quorum to the number of live voters. No further voter could fail then.
    BeforeTheVote,
    /// The old member is removed once the new one votes.
    Last,
}

/// Returns at which point the member `old`, which `new` replaces, is removed. A member of unknown health counts as healthy, and a
/// healthy member is removed last.
pub fn leaves(membership: &Membership, old: MemberId, new: &Newcomer) -> Leaves {
    let is_sick = membership.member(old).is_some_and(|member| matches!(member.health, Health::No(_)));
    match membership.at(&new.peer_url) {
        _ if !is_sick => Leaves::Last,
        None => Leaves::First,
        Some(newcomer) if newcomer.is_learner && newcomer.id != old => Leaves::BeforeTheVote,
        Some(_) => Leaves::Last,
    }
}

/// Returns the next step of the change `wish`.
pub fn next(membership: &Membership, wish: &Wish, words: &Words) -> Next {
    let turn = Turn { membership, words };
    match wish {
        Wish::Remove(id) if membership.member(*id).is_none() => Next::Done,
        Wish::Remove(id) => turn.remove(*id),
        Wish::Promote(id) => turn.promote(*id, None),
        Wish::Add(new) => turn.add(new, None),
        Wish::Replace { old, new } => match old.filter(|old| membership.member(*old).is_some()) {
            None => turn.add(new, None),
            Some(old) => turn.replace(old, new),
        },
    }
}

struct Turn<'a> {
    membership: &'a Membership,
    words: &'a Words,
}

impl Turn<'_> {
    fn judged(&self, step: MemberStep, replaced: Option<MemberId>) -> Next {
        match judge(self.membership, &step, replaced, self.words) {
            Ok(passed) => Next::Step(step, passed),
            Err(why) => Next::Forbidden(why),
        }
    }

    /// Returns the next step of removing member `id`. If the member leads and no other rule forbids the removal, this step first
    /// moves leadership to a healthy voter.
    fn remove(&self, id: MemberId) -> Next {
        let removed = self.judged(MemberStep::Remove(id), None);
        if !matches!(removed, Next::Forbidden(Forbidden::Leads { .. })) {
            return removed;
        }
        let Some(heir) = self.membership.voters().find(|voter| voter.id != id && voter.is_healthy()) else {
            return Next::Forbidden(Forbidden::NoHeir);
        };
        // Leadership is not moved for a removal that is refused then.
        let without = Membership { leader: Some(heir.id), ..self.membership.clone() };
        match judge(&without, &MemberStep::Remove(id), None, self.words) {
            Ok(_) => self.judged(MemberStep::MoveLeader { to: heir.id }, None),
            Err(why) => Next::Forbidden(why),
        }
    }

    fn promote(&self, id: MemberId, replaced: Option<MemberId>) -> Next {
        match self.membership.member(id) {
            Some(member) if !member.is_learner => Next::Done,
            _ => self.judged(MemberStep::Promote(id), replaced),
        }
    }

    fn add(&self, new: &Newcomer, replaced: Option<MemberId>) -> Next {
        match self.membership.at(&new.peer_url) {
            Some(member) => self.promote(member.id, replaced),
            None => self.judged(MemberStep::AddLearner(new.clone()), replaced),
        }
    }

    /// Returns the next step of replacing the member `old`, which is still listed.
    fn replace(&self, old: MemberId, new: &Newcomer) -> Next {
        let newcomer = self.membership.at(&new.peer_url).filter(|member| member.id != old);
        let may_go = match (leaves(self.membership, old, new), newcomer) {
            (Leaves::First, _) => judge_majority(self.membership),
            (Leaves::BeforeTheVote, Some(member)) => judge_learner(self.membership, member.id),
            (_, None) => return self.judged(MemberStep::AddLearner(new.clone()), Some(old)),
            (_, Some(member)) if member.is_learner => return self.promote(member.id, Some(old)),
            // One too many now; should it not be, as another one has gone meanwhile, M4 keeps it.
            (_, Some(_)) => Ok(()),
        };
        may_go.map_or_else(Next::Forbidden, |()| self.remove(old))
    }
}
