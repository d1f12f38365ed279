//! The rounds of one action: observe, decide, act, until the plan says that the action is answered.

use std::time::Duration;

use crate::adapters::ocf::exit::{Answered, Code};
use crate::adapters::podman::process;
use crate::agent::act;
use crate::agent::act::drop_in;
use crate::agent::contract;
use crate::agent::observe;
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::Container;
use crate::decide::reason::{Health, Step, Wait};
use crate::decide::{self, Effect, Evidence, Exit, Next, Phase, Plan, Progress, Reason, Request};
use crate::records::decision_log::{self, Entry};
use crate::records::events::own;

/// How many rounds in a row may fail before the action does. A membership change meets a leader election now and then.
const FAILURES_ALLOWED: u32 = 3;
/// The pause after a round that failed, and where many will.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);
const PAUSE_AFTER_MANY: Duration = Duration::from_secs(2);
/// An action that the next one can go on from looks again as long as so many times the last look are left: what a look shows is done
/// or published then, which asks the same programs, and the answer must be there in time.
const LOOKS_LEFT: u32 = 2;

/// Runs `request` to its answer.
pub(super) fn run(context: &Context, request: Request) -> Answered {
    if request == Request::Notify && !context.notify.as_ref().is_some_and(decide::is_heeded) {
        return Code::Success.into();
    }
    let mut rounds = Rounds {
        context,
        request,
        progress: Progress::default(),
        last_because: None,
        failures: 0,
        spent: Spent::default(),
    };
    loop {
        if let Some(answered) = rounds.next() {
            return answered;
        }
    }
}

struct Rounds<'a> {
    context: &'a Context,
    request: Request,
    progress: Progress,
    /// The reason that was logged last: a wait of many rounds is one line.
    last_because: Option<Reason>,
    failures: u32,
    spent: Spent,
}

/// Where the time of a recovery went, since it was announced.
#[derive(Default)]
struct Spent {
    looking: Duration,
    acting: Duration,
    waiting: Duration,
}

impl Rounds<'_> {
    /// One round; the answer once there is one.
    fn next(&mut self) -> Option<Answered> {
        let began = self.context.deadline.elapsed();
        // Before all else: from here on no other action changes what is seen.
        let launching = self.context.turn.take();
        let evidence = observe::observe(self.context, launching);
        let looked = self.context.deadline.elapsed();
        remember(self.context, &evidence.container);
        if self.last_because.is_none() {
            contract::say(self.context, self.request, &evidence);
        }
        let plan = decide::decide(self.request, &evidence, &self.progress);
        let is_news = self.log(&plan) || !plan.effects.is_empty();
        let mut done = 0;
        let performed = plan.effects.iter().try_for_each(|effect| {
            log::debug!("effect: {effect}");
            act::perform(self.context, effect).inspect(|()| done += 1)
        });
        self.count(&plan, looked.saturating_sub(began), self.context.deadline.elapsed().saturating_sub(looked));
        warn_of_a_machine(&evidence, &plan);
        let upkeep_exit = decide::after_failed_upkeep(&evidence);
        let may_fail = decide::may_fail(self.request, &evidence);
        let when_over = decide::out_of_time(self.request, &evidence, &plan);
        self.tell(&evidence, &plan, done);
        if is_news {
            self.record(evidence, &plan, &performed);
        }
        if let Err(error) = performed {
            return match self.request {
                Request::Monitor if self.progress.phase == Phase::Begin => {
                    Some(self.left_to_the_next_one(upkeep_exit, &error.to_string()))
                }
                _ => self.failed(&error, may_fail, when_over),
            };
        }
        self.failures = 0;
        match plan.next {
            Next::Exit(exit) => {
                self.count_postponed(&plan.because);
                Some(finish(exit, &plan.because))
            }
            Next::Reobserve { after_ms, progress } => {
                self.progress = progress;
                self.spent.waiting += Duration::from_millis(after_ms);
                let needed =
                    if when_over.is_some() { LOOKS_LEFT * looked.saturating_sub(began) } else { Duration::ZERO };
                self.look_again_after(Duration::from_millis(after_ms), needed, when_over)
            }
        }
    }

    /// Counts from the announcement on, and tells it at the end: fencing and what was waited for before it are not the agent's.
    fn count(&mut self, plan: &Plan, looking: Duration, acting: Duration) {
        if matches!(plan.because, Reason::Step(Step::AnnounceGoingOnAlone { .. })) {
            self.spent = Spent::default();
        }
        self.spent.looking += looking;
        self.spent.acting += acting;
        if matches!(plan.because, Reason::Step(Step::TookOver { .. })) {
            let [looking, acting, waiting] =
                [self.spent.looking, self.spent.acting, self.spent.waiting].map(|time| time.as_secs_f64());
            log::info!(
                "since the announcement: {looking:.3} s of looks, {acting:.3} s of acts, {waiting:.3} s of pauses"
            );
        }
    }

    /// A recovery that each action leaves to the next one would never be begun. A notification that is about something else says
    /// nothing of it.
    fn count_postponed(&self, because: &Reason) {
        let is_postponed = *because == Reason::Waiting(Wait::MoreTime);
        if is_postponed || self.request == Request::Monitor {
            self.context.programs.pace().note_postponed(is_postponed);
        }
    }

    /// A recovery that is over in the middle is left to the next action, too: each of them would announce it, and none go on.
    fn left_to_the_next_one(&self, exit: Exit, why: &str) -> Answered {
        let recovers = matches!(
            self.progress.phase,
            Phase::Announced | Phase::Barrier { .. } | Phase::StandIn { .. } | Phase::StoodIn
        );
        if recovers {
            self.context.programs.pace().note_postponed(true);
        }
        log::warn!("{why}; the next monitor goes on");
        answered(exit, || why.to_owned())
    }

    /// The same decision is taken again from what is found then: every effect can be repeated.
    fn failed(&mut self, error: &act::Error, may_fail: bool, when_over: Option<Exit>) -> Option<Answered> {
        self.failures += 1;
        if let Some(pause) = after_failure(self.request, self.failures, may_fail) {
            log::warn!("{error}; looking again");
            self.context.deadline.sleep(pause);
            if !self.context.deadline.has_passed() {
                return None;
            }
        }
        if self.context.deadline.has_passed()
            && let Some(exit) = when_over
        {
            return Some(self.left_to_the_next_one(exit, &error.to_string()));
        }
        log::error!("{error}");
        Some(Answered::failed(Code::Generic, error.to_string()))
    }

    fn look_again_after(&self, pause: Duration, needed: Duration, when_over: Option<Exit>) -> Option<Answered> {
        self.context.deadline.sleep(pause);
        if self.context.deadline.left() > needed {
            return None;
        }
        if let Some(exit) = when_over {
            let so_far = self.last_because.as_ref().map_or_else(String::new, |because| format!(" ({because})"));
            return Some(self.left_to_the_next_one(exit, &format!("this action has no time for another look{so_far}")));
        }
        let why = out_of_time(self.context.budget, self.last_because.as_ref());
        self.last_because.iter().for_each(|because| self.tell_refusal(because));
        Some(Answered::failed(Code::Generic, why))
    }

    /// A record that cannot be kept must not keep etcd from being kept.
    fn record(&self, evidence: Evidence, plan: &Plan, performed: &Result<(), act::Error>) {
        let outcome = performed.as_ref().map_or_else(ToString::to_string, |()| "done".to_owned());
        let Some(directory) = &self.context.decisions else { return };
        let entry = Entry::new(self.request, self.progress.clone(), evidence, plan.clone(), outcome);
        if let Err(error) = decision_log::append(directory, &self.context.resource, &entry) {
            log::debug!("this decision is not kept: {error}");
        }
    }

    /// What was changed by the first `done` effects of a plan, and whether it refuses, becomes an event.
    fn tell(&self, evidence: &Evidence, plan: &Plan, done: usize) {
        let Some(directory) = &self.context.events else { return };
        let node = &self.context.me.name;
        for effect in plan.effects.iter().take(done) {
            own::tell(directory, own::of_effect(node, effect, &plan.because));
        }
        // Who was alone has something to write down where there are two voters again: that it remembers it.
        if done > 0 {
            let was_sole = evidence.memory().and_then(|memory| memory.voter.as_ref()).is_some_and(|voter| voter.sole);
            own::tell(directory, own::of_two_voters(node, evidence.own_etcd.known(), was_sole));
        }
        if plan.next == Next::Exit(Exit::Retriable) {
            self.tell_refusal(&plan.because);
        }
    }

    fn tell_refusal(&self, because: &Reason) {
        if let Some(directory) = &self.context.events {
            own::tell(directory, own::of_refusal(&self.context.me.name, &self.context.resource, because));
        }
    }

    /// What changes is told once. A monitor that finds what it found before has nothing to tell. Answers whether there
    /// was something to tell.
    fn log(&mut self, plan: &Plan) -> bool {
        if self.last_because.as_ref() == Some(&plan.because) {
            return false;
        }
        let quiet = plan.effects.is_empty()
            && match &plan.because {
                // That a notification changes nothing is to be read where etcd lacks a leader.
                Reason::Running(Health::LeaderlessPeerNotConfirmed { .. }) => self.request != Request::Notify,
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

/// Whoever is found by podman alone is looked for in /proc from now on. The observer changes nothing, as people look, too.
/// Where somebody restarted it behind Pacemaker, its scopes are new.
fn remember(context: &Context, container: &Fact<Container>) {
    let Some(found) = container.known().and_then(|container| container.found.as_ref()) else { return };
    process::remember(&context.process_path, found.pid);
    if process::remembered(&context.process_path).is_some() {
        drop_in::write(context, &found.id);
    }
}

/// A node that may be on its way out is added all the same, see `Evidence::machine_is_deleted`; told when it is added, as
/// what cannot be asked is asked with every monitor.
fn warn_of_a_machine(evidence: &Evidence, plan: &Plan) {
    let adds = plan.effects.iter().any(|effect| matches!(effect, Effect::AddLearner { .. }));
    if let Fact::Unknown(why) = &evidence.local.machine_is_deleted
        && adds
    {
        log::warn!("{why}; its node is added to etcd as if it were not");
    }
}

/// The pause after a round that failed, `failures` in a row; none where the action fails with it.
fn after_failure(request: Request, failures: u32, may_fail: bool) -> Option<Duration> {
    // A stop goes on to its deadline: what cannot be done first (leaving, say) gives way in time.
    if failures < FAILURES_ALLOWED || request == Request::Stop {
        return Some(PAUSE_AFTER_FAILURE);
    }
    (!may_fail).then_some(PAUSE_AFTER_MANY)
}

/// Why an action is at the end of its time. What stood in the way is told as if the action had failed for it at once: a
/// frame around it would leave no room for what to type.
fn out_of_time(budget: Duration, waited_for: Option<&Reason>) -> String {
    if let Some(because @ (Reason::Refused { .. } | Reason::Waiting(Wait::BeforeFailing { .. }))) = waited_for {
        return because.short();
    }
    let waited = waited_for.map_or_else(String::new, |because| format!(": {because}"));
    format!("the action's time of {} s is over{waited}", budget.as_secs())
}

fn finish(exit: Exit, because: &Reason) -> Answered {
    answered(exit, || because.short())
}

/// The exit code, and the exit reason of a failure.
fn answered(exit: Exit, why: impl FnOnce() -> String) -> Answered {
    match exit {
        Exit::Success => Code::Success.into(),
        Exit::Promoted => Code::RunningPromoted.into(),
        Exit::NotRunning => Code::NotRunning.into(),
        Exit::Retriable => Answered::failed(Code::Generic, why()),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a child to look at")]
mod tests {
    use super::*;
    use crate::adapters::command::stand_in;
    use crate::decide::evidence::{Found, Moment, Notify, Operation};
    use crate::decide::reason::Refusal;

    fn context(state_dir: &std::path::Path) -> Context {
        let files = [("trusted_ca_file", "/c"), ("cert_file", "/c"), ("key_file", "/c")];
        Context::of_test(state_dir, &[&files[..], &[("image", "etcd:test")]].concat())
    }

    fn rounds(context: &Context, request: Request, last_because: Option<Reason>) -> Rounds<'_> {
        Rounds { context, request, progress: Progress::default(), last_because, failures: 0, spent: Spent::default() }
    }

    /// As after somebody else's `podman restart`.
    #[test]
    fn another_process_of_the_container_is_remembered_in_the_place_of_the_one_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let context = context(dir.path());
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

    /// As the notification that follows fencing comes between two monitors, and others are about something else.
    #[test]
    fn actions_that_leave_a_recovery_to_the_next_one_are_counted_until_a_monitor_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let context = context(dir.path());
        let after = |request, because: Reason| {
            rounds(&context, request, None).count_postponed(&because);
            context.programs.pace().postponed()
        };
        let later = || Reason::Waiting(Wait::MoreTime);
        assert_eq!([after(Request::Monitor, later()), after(Request::Notify, later())], [1, 2]);
        assert_eq!(after(Request::Notify, Reason::NothingToDo), 2);
        assert_eq!(after(Request::Monitor, Reason::Running(Health::SoleVoter)), 0);
    }

    /// Before the notification that follows fencing there are two of a promotable clone's that prove nothing.
    #[test]
    fn a_notification_from_which_nothing_follows_is_answered_without_a_look() {
        let looks = |moment, operation| {
            let dir = tempfile::tempdir().unwrap();
            let asked = dir.path().join("asked");
            let programs = stand_in(dir.path(), "cibadmin", &format!("touch {}", asked.display()));
            let notify = Notify { moment, operation, ..Notify::default() };
            let context = Context { programs, notify: Some(notify), ..context(dir.path()) };
            assert_eq!(run(&context, Request::Notify).code, Code::Success);
            asked.exists()
        };
        for operation in [Operation::Demote, Operation::Promote, Operation::None] {
            assert!(!looks(Moment::Pre, operation) && !looks(Moment::Post, operation), "{operation:?}");
        }
        assert!(!looks(Moment::Pre, Operation::Stop));
        assert!(looks(Moment::Post, Operation::Stop) && looks(Moment::Pre, Operation::Start));
    }

    /// On a machine where a look takes seconds, the answer would come after Pacemaker has ended the action.
    #[test]
    fn an_action_that_the_next_one_goes_on_from_does_not_look_again_without_the_time_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let context = context(dir.path());
        let left = context.deadline.left();
        let rounds = rounds(&context, Request::Monitor, Some(Reason::Waiting(Wait::OwnLeader)));
        let looks_again = |needed, when_over| rounds.look_again_after(Duration::ZERO, needed, when_over).is_none();
        assert!(looks_again(left / 2, Some(Exit::Success)));
        assert!(looks_again(Duration::ZERO, None));
        let answered = rounds.look_again_after(Duration::ZERO, left * 2, Some(Exit::Success)).unwrap();
        assert_eq!(answered.code, Code::Success);
        assert_eq!(context.programs.pace().postponed(), 0);
    }

    #[test]
    fn a_recovery_that_is_announced_and_over_before_the_next_look_counts_as_left_to_the_next_action() {
        let dir = tempfile::tempdir().unwrap();
        let context = context(dir.path());
        for (phase, count) in [
            (Phase::Begin, 0),
            (Phase::Announced, 1),
            (Phase::Barrier { nonce: 1 }, 2),
            (Phase::StandIn { nonce: 1, term: 1 }, 3),
            (Phase::StoodIn, 4),
        ] {
            let progress = Progress::enter(phase, 0);
            let rounds = Rounds { progress, ..rounds(&context, Request::Monitor, None) };
            let needed = context.deadline.left() * 2;
            assert!(rounds.look_again_after(Duration::ZERO, needed, Some(Exit::Success)).is_some());
            assert_eq!(context.programs.pace().postponed(), count);
        }
    }

    #[test]
    fn at_the_end_of_its_time_an_action_tells_what_to_type_first() {
        let in_the_way = Wait::BeforeFailing { refusal: Refusal::BlankAlone, peer: "node2".to_owned() };
        let told = out_of_time(Duration::from_secs(600), Some(&Reason::Waiting(in_the_way)));
        assert!(told.starts_with("start node2, or "), "{told}");
        let told = out_of_time(Duration::from_secs(600), Some(&Reason::Waiting(Wait::OwnLeader)));
        assert_eq!(told, "the action's time of 600 s is over: waiting for our etcd to have a leader");
    }

    #[test]
    fn an_action_fails_after_some_rounds_a_stop_never_and_a_start_not_too_soon() {
        assert!(after_failure(Request::Start, 2, true).is_some());
        assert!(after_failure(Request::Start, 3, true).is_none());
        assert!(after_failure(Request::Notify, 3, true).is_none());
        assert!(after_failure(Request::Stop, 100, true).is_some());
        assert!(after_failure(Request::Start, 3, false).is_some());
    }
}
