//! Observers of a finished round, which change neither the round nor the action's answer. A panic in one of them is
//! only logged.

use std::time::Duration;

use super::Round;
use crate::adapters::data_dir::{self, AsideKind};
use crate::adapters::podman::process;
use crate::agent::act::drop_in;
use crate::agent::contract;
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::Container;
use crate::decide::reason::{Health, ReasonStep, Wait};
use crate::decide::{Effect, Evidence, Exit, Next, Plan, Reason, Request};
use crate::os::isolated::isolated;
use crate::records::decision_log::{self, Entry};
use crate::records::events::own::{self, GivenUp};

/// Log, recorded decisions, events and measured times of an action. None of them changes what the action does.
pub(super) struct Watch<'a> {
    context: &'a Context,
    request: Request,
    /// Reason that was logged last. A reason is logged once, so that a long wait is one line.
    pub(super) last_because: Option<Reason>,
    /// True if the last decision had effects or logged a new reason. Only such a decision is recorded.
    is_news: bool,
    spent: Spent,
}

/// Time that a recovery has taken since it began, as three sums: observing, performing effects, and waiting.
#[derive(Default)]
struct Spent {
    looking: Duration,
    acting: Duration,
    waiting: Duration,
}

impl<'a> Watch<'a> {
    pub(super) fn new(context: &'a Context, request: Request) -> Self {
        Self { context, request, last_because: None, is_news: false, spent: Spent::default() }
    }

    /// Logs a decision, before its first effect.
    pub(super) fn decided(&mut self, round: &Round) {
        isolated("process", || remember(self.context, &round.evidence.container));
        if self.last_because.is_none() {
            isolated("contract", || contract::say(self.context, self.request, &round.evidence));
        }
        let plan = &round.decision.plan;
        self.is_news = !plan.effects.is_empty();
        isolated("log", || self.is_news |= self.log(plan));
    }

    /// Records a decision and its events after its last effect, or after the one that failed.
    pub(super) fn finished(&mut self, round: &Round) {
        isolated("times", || self.count(round));
        isolated("log", || warn_of_a_machine(&round.evidence, &round.decision.plan));
        isolated("events", || self.tell(round));
        if self.is_news {
            isolated("record", || self.record(round));
        }
    }

    /// Counts the action if it postponed a recovery to the next action, because it had too little time left. `because` is the reason of
    /// the action's last plan.
    pub(super) fn answered(&self, because: &Reason) {
        isolated("postponed", || self.count_postponed(because));
    }

    /// Records the event that the action failed because it was out of time.
    pub(super) fn failed_for_want_of_time(&self) {
        isolated("events", || self.last_because.iter().for_each(|because| self.tell_refusal(because)));
    }

    /// Adds the times of this observation and its effects to those of a recovery, and logs the sums when the recovery ends. The sums begin
    /// with the announcement that this node will run standalone, because fencing and the waits before it are not the agent's time.
    fn count(&mut self, round: &Round) {
        let plan = &round.decision.plan;
        if matches!(plan.because, Reason::Step(ReasonStep::AnnounceGoingOnAlone { .. })) {
            self.spent = Spent::default();
        }
        self.spent.looking += round.looking;
        self.spent.acting += round.acting;
        if matches!(plan.because, Reason::Step(ReasonStep::TookOver { .. })) {
            let [looking, acting, waiting] =
                [self.spent.looking, self.spent.acting, self.spent.waiting].map(|time| time.as_secs_f64());
            log::info!("recovery took {looking:.3} s observing, {acting:.3} s acting, {waiting:.3} s waiting");
        }
        if let Next::Reobserve { after_ms, .. } = plan.next
            && round.performed.is_ok()
        {
            self.spent.waiting += Duration::from_millis(after_ms);
        }
    }

    /// Counts consecutive actions that postponed a recovery to the next action, because they had too little time left. Only a monitor
    /// that postpones nothing resets the count, because other requests may have nothing to do with a recovery.
    fn count_postponed(&self, because: &Reason) {
        let is_postponed = *because == Reason::Waiting(Wait::MoreTime);
        if is_postponed || self.request == Request::Monitor {
            self.context.programs.pace().note_postponed(is_postponed);
        }
    }

    /// Records a decision in a file, for `tandem replay`. A failure to record it must not affect etcd.
    fn record(&self, round: &Round) {
        let outcome = round.performed.as_ref().map_or_else(ToString::to_string, |()| "done".to_owned());
        let Some(directory) = &self.context.decisions else { return };
        let (progress, plan) = (round.progress.clone(), round.decision.plan.clone());
        let entry = Entry::new(self.request, progress, round.evidence.clone(), plan, outcome);
        if let Err(error) = decision_log::append(directory, &self.context.resource, &entry) {
            log::debug!("this decision cannot be recorded: {error}");
        }
    }

    /// Records events about the effects that were performed, and about a refusal.
    fn tell(&self, round: &Round) {
        let Some(directory) = &self.context.events else { return };
        let Round { evidence, decision, done, .. } = round;
        let plan = &decision.plan;
        let node = &self.context.me.name;
        let is_new = evidence.cib.known().is_some_and(|cib| cib.redundancy.is_absent());
        for effect in plan.effects.iter().take(*done) {
            own::tell(directory, own::of_effect(node, effect, &plan.because, is_new));
            if *effect == Effect::MoveHistoryAside {
                let given_up = given_up(self.context);
                own::tell(directory, own::of_given_up_history(node, evidence, &plan.because, given_up));
            }
            if *effect == Effect::ShowLeader(Some(true)) {
                own::tell(directory, evidence.own_etcd.known().map(|etcd| own::of_leader(node, etcd)));
            }
        }
        // The former sole voter has an effect when there are two voters again: it remembers the new voter.
        if *done > 0 {
            let was_sole =
                evidence.boot_state().and_then(|memory| memory.voter.as_ref()).is_some_and(|voter| voter.sole);
            own::tell(directory, own::of_two_voters(node, evidence.own_etcd.known(), was_sole));
        }
        if plan.next == Next::Exit(Exit::Retriable) {
            let told = own::of_refusal(node, &self.context.resource, &plan.because);
            let revision = || data_dir::revision(self.context.data_dir());
            own::tell(directory, own::with_both_ends(told, evidence, revision));
        }
    }

    fn tell_refusal(&self, because: &Reason) {
        if let Some(directory) = &self.context.events {
            own::tell(directory, own::of_refusal(&self.context.me.name, &self.context.resource, because));
        }
    }

    /// Logs the plan's reason if it differs from the one that was logged last. Returns whether it logged anything above debug level.
    fn log(&mut self, plan: &Plan) -> bool {
        if self.last_because.as_ref() == Some(&plan.because) {
            return false;
        }
        let quiet = plan.effects.is_empty()
            && match &plan.because {
                // The log should show that a notification changes nothing while etcd lacks a leader.
                Reason::Running(
                    Health::LeaderlessPeerNotConfirmed { .. } | Health::LeaderlessPeerKeepsItsClaim { .. },
                ) => self.request != Request::Notify,
                because => matches!(because, Reason::Running(_) | Reason::NothingToDo),
            };
        let level = match plan.next {
            Next::Exit(Exit::Retriable) => log::Level::Error,
            _ if plan.effects.iter().any(|effect| matches!(effect, Effect::SetAlarm(Some(_)))) => log::Level::Warn,
            _ if quiet && (self.last_because.is_none() || plan.because == Reason::NothingToDo) => log::Level::Debug,
            _ => log::Level::Info,
        };
        log::log!(level, "{}: {}", self.request, plan.because);
        self.last_because = Some(plan.because.clone());
        level != log::Level::Debug
    }
}

/// Returns where this node's former data is stored after the node has given it up for the peer's data, with the last revisions of the data.
fn given_up(context: &Context) -> GivenUp {
    let dir = context.data_dir();
    let mut histories = data_dir::aside(dir).unwrap_or_default().into_iter();
    let newest = histories.rfind(|aside| AsideKind::of(&aside.path) == Some(AsideKind::History));
    let Some(path) = newest.map(|newest| newest.path) else { return GivenUp::default() };
    let kept = data_dir::kept_history(&path).unwrap_or_default();
    let last = data_dir::described(&path).revision;
    GivenUp { path: path.display().to_string(), fork: kept.alone_revision, last, kept: kept.kept }
}

/// Records the process of an etcd that only podman has shown, so that the next observation finds it in `/proc`. The observation itself
/// records nothing, because an operator's command observes too. After a `podman restart`, also writes systemd's drop-in files again,
/// because the container's scopes are new.
fn remember(context: &Context, container: &Fact<Container>) {
    let Some(found) = container.known().and_then(|container| container.found.as_ref()) else { return };
    process::remember(&context.process_path, found.pid);
    if process::remembered(&context.process_path).is_some() {
        drop_in::write(context, &found.id);
    }
}

/// Logs that a node is added to the cluster although it is unknown whether OpenShift is deleting its Machine (see
/// `Evidence::machine_is_deleted`). Logs only at the addition, because every monitor would repeat the line.
fn warn_of_a_machine(evidence: &Evidence, plan: &Plan) {
    let adds = plan.effects.iter().any(|effect| matches!(effect, Effect::AddLearner { .. }));
    if let Fact::Unknown(why) = &evidence.local.machine_is_deleted
        && adds
    {
        log::warn!("a node is added to etcd although OpenShift may be deleting its Machine: {why}");
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a child to look at")]
mod tests {
    use super::*;
    use crate::decide::evidence::Found;

    /// Asserts that etcd's new process is recorded after another program has run `podman restart`.
    #[test]
    fn another_process_of_the_container_is_remembered_in_the_place_of_the_one_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let files = [("trusted_ca_file", "/c"), ("cert_file", "/c"), ("key_file", "/c"), ("image", "etcd:test")];
        let context = Context::of_test(dir.path(), &files);
        let child = || std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let (mut gone, mut now) = (child(), child());
        let pid = |child: &std::process::Child| i32::try_from(child.id()).unwrap();
        process::remember(&context.process_path, pid(&gone));
        gone.kill().unwrap();
        gone.wait().unwrap();
        let found = Some(Found { id: "c1".to_owned(), pid: pid(&now) });
        remember(&context, &Fact::Known(Container { running: true, found, ..Container::default() }));
        assert_eq!(process::remembered(&context.process_path), process::Process::of(pid(&now)));
        now.kill().unwrap();
        now.wait().unwrap();
    }
}
