//! The loop of observations and steps. It ends when the wish is fulfilled, or a rule forbids the rest.

use std::time::Duration;

use super::super::ask::{ask, voter};
use super::super::look::{self, MembersSeen};
use super::held::{Held, STEP};
use super::hooks::Hooks;
use super::progress::Progress;
use super::removed::Removed;
use super::wanted::Meant;
use super::{PAUSE, endpoints, new_etcd};
use crate::decide::evidence::MemberId;
use crate::decide::members::{Forbidden, Member, MemberStep, Membership, Next, Passed, Words, next};
use crate::operate::failure::Failure;
use crate::operate::members::source::Source;
use crate::operate::talk::Talk;
use crate::os::clock::{self, Deadline};

/// Time after a change of the member list during which members may be unhealthy, because they follow a new leader or have just started.
const SETTLES: Duration = Duration::from_secs(20);
/// Time for which a refused step is repeated. etcd may refuse what the rules allow, because it also checks the age of its peers'
/// connections.
const INSISTS: Duration = Duration::from_secs(30);

/// The result of a change of the members.
#[derive(Debug)]
pub(super) enum End {
    Done,
    Forbidden(Forbidden),
}

pub(super) struct Work<'a> {
    source: &'a Source,
    meant: &'a Meant,
    words: Words,
    lock: &'a Held,
    talk: &'a dyn Talk,
    deadline: Deadline,
    /// The latest observation of the members.
    pub(super) seen: MembersSeen,
    pub(super) made: Vec<String>,
    settling: Deadline,
    insisting: Option<Deadline>,
    progress: Progress,
    hooks: Hooks,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        source: &'a Source,
        meant: &'a Meant,
        words: Words,
        lock: &'a Held,
        talk: &'a dyn Talk,
        deadline: Deadline,
        seen: MembersSeen,
    ) -> Self {
        let (made, settling, insisting) = (Vec::new(), Deadline::after(Duration::ZERO), None);
        let (progress, hooks) = (Progress::default(), Hooks::default());
        Self { source, meant, words, lock, talk, deadline, seen, made, settling, insisting, progress, hooks }
    }

    pub(super) fn go(&mut self) -> Result<End, Failure> {
        loop {
            self.look()?;
            if self.seen.membership.is_confirmed && self.seen.lock.as_ref() != Some(&self.lock.key) {
                return Err(lost());
            }
            let off = self.hooks.after_removal(self.source, &self.seen);
            self.did(off)?;
            match next(&self.seen.membership, &self.meant.wish, &self.words) {
                Next::Done => return Ok(End::Done),
                Next::Step(step, passed) => self.take(&step, passed)?,
                Next::Forbidden(Forbidden::Unprotected { .. }) if self.protects() => {
                    let on = self.hooks.before_promotion(self.source, &self.seen)?;
                    self.did(on)?;
                }
                Next::Forbidden(why) if self.waits(&why) => self.tell_why_it_waits(&why)?,
                Next::Forbidden(why) => return Ok(End::Forbidden(why)),
            }
            clock::sleep(PAUSE);
        }
    }

    /// Observes the members repeatedly until one of them answers. Fails once the lock may expire or the deadline has passed.
    fn look(&mut self) -> Result<(), Failure> {
        let mut seen = loop {
            match look::look(self.source) {
                Ok(seen) => break seen,
                Err(why) if !self.lock.counts() || self.deadline.has_passed() => return Err(why),
                Err(_) => clock::sleep(PAUSE),
            }
        };
        if seen.cluster_id != self.seen.cluster_id {
            return Err(Failure("another cluster answers now: name the endpoints of one".to_owned()));
        }
        for member in &mut seen.membership.members {
            member.lag_before = self.seen.membership.member(member.id).and_then(|before| before.lag);
        }
        if shape(&seen.membership) != shape(&self.seen.membership) {
            self.settling = Deadline::after(SETTLES);
        }
        self.lock.ask(endpoints(&seen));
        self.seen = seen;
        Ok(())
    }

    /// Reports what was done to a Machine's deletion hook: in the log, to the operator, and in the command's result.
    fn did(&mut self, what: Option<String>) -> Result<(), Failure> {
        if let Some(what) = what {
            log::info!("{what}");
            self.talk.tell(&what)?;
            self.made.push(what);
        }
        Ok(())
    }

    fn protects(&self) -> bool {
        self.hooks.may_be_put_on() && !self.deadline.has_passed()
    }

    fn waits(&self, why: &Forbidden) -> bool {
        let passes = why.passes() || !self.settling.has_passed() && settles(why);
        passes && !self.deadline.has_passed()
    }

    fn take(&mut self, step: &MemberStep, passed: Passed) -> Result<(), Failure> {
        // The observation has found the lock in etcd. By the clock it must also outlive the step.
        if !self.lock.counts() {
            return Err(lost());
        }
        let said = said(step, &self.seen.membership);
        if passed.uses_word {
            log::warn!("{said} at an operator's word, although the voter is healthy and nothing replaces it");
        }
        if let MemberStep::Remove(id) = step
            && let Some(member) = self.seen.membership.member(*id)
        {
            let new = self.meant.new.as_ref().map(|new| new.peer_url.as_str());
            Removed::of(member, &self.meant.node, new)
                .note(voter(&self.seen, self.source, Some(*id)), &self.source.credentials);
        }
        match ask(step, &self.seen, self.source, STEP) {
            Ok(()) => {
                self.insisting = None;
                log::info!("{said}");
                self.talk.tell(&said)?;
                self.made.push(said);
                if passed.uses_word {
                    self.words = Words::default();
                }
                if let MemberStep::Remove(id) = step {
                    self.hooks.leaves(*id, &self.seen);
                }
                if let MemberStep::AddLearner(new) = step {
                    let (name, variables) = (&new.name, self.variables());
                    self.talk.tell(&format_args!("start etcd for {name} with an empty data dir and:{variables}"))?;
                }
                Ok(())
            }
            Err(error) => {
                let insisting = self.insisting.get_or_insert_with(|| Deadline::after(INSISTS));
                if insisting.has_passed() || self.deadline.has_passed() {
                    return Err(Failure(format!("etcd does not do it ({said}): {error}")));
                }
                Ok(())
            }
        }
    }

    fn variables(&self) -> String {
        let new = self.meant.new.as_ref();
        new.map(|new| new_etcd::lines(&new_etcd::variables(new, &self.seen))).unwrap_or_default()
    }

    fn tell_why_it_waits(&mut self, why: &Forbidden) -> Result<(), Failure> {
        if matches!(why, Forbidden::NotStarted { .. }) && self.progress.is_silent() && self.made.is_empty() {
            self.talk.tell(&format_args!("start etcd with an empty data dir and:{}", self.variables()))?;
        }
        match self.progress.line(why, &self.seen.membership) {
            Some(line) => self.talk.tell(&line),
            None => Ok(()),
        }
    }
}

fn lost() -> Failure {
    Failure("the lock of this change was lost before its next step: type the same again".to_owned())
}

/// Returns the leader's id, and each member's id with two flags: it is a learner, and it has started. A difference shows that the
/// membership has changed.
pub(in crate::operate::members) fn shape(membership: &Membership) -> (Option<MemberId>, Vec<(MemberId, bool, bool)>) {
    let of = |member: &Member| (member.id, member.is_learner, member.has_started());
    (membership.leader, membership.members.iter().map(of).collect())
}

/// Returns whether `why` can be a passing effect of a change, such as a member that is unhealthy while it starts.
pub(in crate::operate::members) fn settles(why: &Forbidden) -> bool {
    matches!(
        why,
        Forbidden::UnhealthyBeside { .. }
            | Forbidden::UnhealthyFirst { .. }
            | Forbidden::LearnerUnhealthy { .. }
            | Forbidden::Unknown { .. }
            | Forbidden::NoQuorum { .. }
            | Forbidden::CannotCommit { .. }
            | Forbidden::QuorumWouldGo { .. }
            | Forbidden::NoHeir
    )
}

pub(in crate::operate::members) fn said(step: &MemberStep, membership: &Membership) -> String {
    let shown = |id: &MemberId| membership.member(*id).map_or_else(|| format!("member {id:x}"), Member::shown);
    match step {
        MemberStep::AddLearner(new) => format!("{} is listed as a learner", new.name),
        MemberStep::Promote(id) => format!("{} votes", shown(id)),
        MemberStep::MoveLeader { to } => format!("leadership is handed over to {}", shown(to)),
        MemberStep::Remove(id) => format!("{} is removed", shown(id)),
    }
}
