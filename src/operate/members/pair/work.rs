//! The loop of a change: observe, carry out the next step, and observe again.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use super::change::{self, Change};
use super::facts::Look;
use super::plan::{self, PairStep};
use super::{changed, end};
use crate::adapters::command::Programs;
use crate::adapters::openshift::machines::Written;
use crate::adapters::pacemaker::member_change;
use crate::decide::members::Forbidden;
use crate::operate::cluster;
use crate::operate::failure::Failure;
use crate::operate::health;
use crate::operate::members::changed::Changed;
use crate::operate::members::order::Terms;
use crate::operate::members::protect;
use crate::operate::setup::TOKEN;
use crate::operate::setup::action::Action;
use crate::operate::setup::apply;
use crate::operate::talk::{Progress, Talk};
use crate::os::clock::{self, Deadline};
use crate::os::ofd_lock;

const OFTEN: Duration = Duration::from_secs(1);

/// The result of carrying out a step of a member change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Took {
    /// The step has acted, as the text describes. The next observation shows the effect.
    Acted(String),
    /// The step is finished, as the text describes. No later observation can show that, so it is recorded in the change's file.
    Over(String),
    /// The step waits for what the text describes.
    Waits(String),
}

/// A member change that the running command carries out.
pub(super) struct Work {
    pub(super) change: Change,
    pub(super) programs: Programs,
    pub(super) progress: Box<dyn Progress>,
    pub(super) end: Deadline,
    pub(super) made: Vec<String>,
    /// The deadline for Pacemaker to fence the old node; `None` until the old node was seen unclean.
    pub(super) unclean: Option<Deadline>,
    /// The time of the first observation of the learner's raft index, and that index. They give the speed of the copy. `None` until the
    /// learner was observed.
    pub(super) copied: Option<(Deadline, u64)>,
    /// True if this run of the command has started the new node.
    pub(super) is_started: bool,
    /// True if this run of the command has tried to set the deletion hook on the new member's Machine.
    pub(super) is_protected: bool,
    /// Path of the file with the token that both pcsds accept.
    pub(super) token: PathBuf,
    /// Open file with a lock that keeps a second 'tandem member' on this node from running.
    _lock: File,
}

impl Work {
    /// Takes the member-change lock, or continues if this change already has the lock. Returns the rule that forbids
    /// the change if another change has the lock.
    pub(super) fn begin(change: &Change, terms: &Terms, talk: &dyn Talk) -> Result<Result<Self, Forbidden>, Failure> {
        let lock = change::open_lock()?;
        if !ofd_lock::try_take(&lock)? {
            return Err(Failure(format!("another 'tandem member' is at it: {}: wait for its end", change.what())));
        }
        let programs = Programs::default();
        let is_new = change.log.is_empty();
        // The file comes first, because a lock without it would belong to no command.
        change.save()?;
        if !member_change::take(&programs, &change.words())? {
            let look = cluster::ask(terms.target.resource())?;
            let there = health::change_under_way(&look).unwrap_or_default();
            if there != change.words() {
                if is_new {
                    let _ = std::fs::remove_file(change::FILE);
                }
                return Ok(Err(Forbidden::ChangeUnderWay { change: there }));
            }
        }
        let end = Deadline::after(terms.timeout);
        Ok(Ok(Self::of(change.clone(), programs, talk.progress(), end, TOKEN.into(), lock)))
    }

    fn of(
        change: Change,
        programs: Programs,
        progress: Box<dyn Progress>,
        end: Deadline,
        token: PathBuf,
        lock: File,
    ) -> Self {
        Self {
            change,
            programs,
            progress,
            end,
            made: Vec::new(),
            unclean: None,
            copied: None,
            is_started: false,
            is_protected: false,
            token,
            _lock: lock,
        }
    }

    #[cfg(test)]
    pub(super) fn of_test(change: Change, programs: Programs, token: PathBuf) -> Self {
        let end = Deadline::after(Duration::from_secs(60));
        Self::of(
            change,
            programs,
            Box::new(crate::operate::talk::fake_operator::Unseen),
            end,
            token,
            tempfile::tempfile().unwrap(),
        )
    }

    pub(super) fn run(mut self, terms: &Terms, talk: &dyn Talk) -> Result<Changed, Failure> {
        let done = self.all(terms, talk);
        self.progress.end();
        done
    }

    fn all(&mut self, terms: &Terms, talk: &dyn Talk) -> Result<Changed, Failure> {
        loop {
            let look = Look::at_all(terms, Some(&self.change))?;
            let seen = look.seen(&self.change);
            let Some(step) = plan::next(&self.change, &seen) else { return self.over(&look) };
            match self.take(step, &look, &seen, talk)? {
                Took::Acted(what) => self.did(step, what),
                Took::Over(what) => {
                    self.change.note(step, &what)?;
                    self.did(step, what);
                }
                Took::Waits(what) => {
                    self.progress.say(&format!("{}: {what}", step.word()));
                    if self.end.has_passed() {
                        return Err(Failure(format!(
                            "{}: {what}: not within the time; 'tandem status' shows how it is, 'tandem member replace' continues",
                            step.word()
                        )));
                    }
                    self.end.sleep(OFTEN);
                }
            }
        }
    }

    fn did(&mut self, step: PairStep, what: String) {
        self.progress.keep(&format!("tandem: {}: {what}", step.word()));
        self.made.push(what);
    }

    fn take(&mut self, step: PairStep, look: &Look, seen: &plan::PairSeen, talk: &dyn Talk) -> Result<Took, Failure> {
        match step {
            PairStep::Check => self.check(look),
            PairStep::Leave => match look.third_voter() {
                Some(third_voter) => self.leave_beside(look, seen, &third_voter),
                None => self.leave(seen),
            },
            PairStep::Out => self.out(seen),
            PairStep::Forget => self.forget(look),
            PairStep::Device => self.device(look),
            PairStep::Map => self.map(look),
            PairStep::Prepare => self.prepare(look, talk),
            PairStep::Add => self.add(look, seen),
            PairStep::Save => self.save_objects(look, seen),
            PairStep::Delete => self.delete_objects(look),
            PairStep::Node => self.new_machine(look),
            PairStep::Join => self.join(look, seen),
            PairStep::Verify => self.verify(look),
        }
    }

    fn over(&mut self, look: &Look) -> Result<Changed, Failure> {
        let seconds = clock::wall_seconds().saturating_sub(self.change.began);
        self.made.extend(self.unprotected(look));
        end::close(&self.programs)?;
        Ok(changed(&self.change, look, std::mem::take(&mut self.made), seconds))
    }

    /// Removes the deletion hook from the old member's Machine. If the new machine has the same name, the hook
    /// belongs to the new machine and stays. Returns a message for the operator, or `None` if nothing was done.
    fn unprotected(&self, look: &Look) -> Option<String> {
        let kubeconfig = &look.context.params.kubeconfig;
        let old = self.change.old.as_ref().filter(|_| !self.change.keeps_name() && kubeconfig.exists())?;
        let (name, address) = (old.name.as_str(), old.address.to_string());
        match protect::hook(kubeconfig, name, &[name, &address], false) {
            Ok(written) => (written == Some(Written::Yes)).then(|| format!("{name}'s Machine may be deleted")),
            Err(Failure(why)) => Some(format!("{why}: 'tandem member unprotect {name}' takes it off")),
        }
    }

    /// Runs the command `words`. An error contains the command.
    pub(super) fn typed<W: AsRef<str>>(&self, words: &[W]) -> Result<(), Failure> {
        let words: Vec<String> = words.iter().map(|word| word.as_ref().to_owned()).collect();
        self.act(&Action::Command(words))
    }

    pub(super) fn act(&self, action: &Action) -> Result<(), Failure> {
        self.progress.say(&action.to_string());
        apply::apply(&self.programs, action).map_err(Failure)
    }
}
