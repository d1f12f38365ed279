//! The rounds of one action: observe, decide, act, until the plan says that the action is answered.

use std::path::Path;
use std::time::Duration;

use super::context::Context;
use crate::act;
use crate::decide::{self, Effect, Exit, Next, Phase, Plan, Progress, Reason, Request, Snapshot};
use crate::observe;
use crate::ocf::exit::{Code, print_reason};
use crate::record::{self, Entry};

/// How many rounds in a row may fail before the action does. A membership change meets a leader election now and then.
const FAILURES_ALLOWED: u32 = 3;
/// The pause after a round that failed, and where many will.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);
const PAUSE_AFTER_MANY: Duration = Duration::from_secs(2);

/// Runs `request` to its answer.
pub(super) fn run(context: &Context, request: Request) -> Code {
    let mut rounds = Rounds { context, request, progress: Progress::default(), last_because: None, failures: 0 };
    loop {
        if let Some(code) = rounds.next() {
            return code;
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
}

impl Rounds<'_> {
    /// One round; the code once the action is answered.
    fn next(&mut self) -> Option<Code> {
        let snapshot = observe::observe(self.context);
        let plan = decide::decide(self.request, &snapshot, &self.progress);
        let is_news = self.log(&plan) || !plan.effects.is_empty();
        let performed = plan.effects.iter().try_for_each(|effect| {
            log::debug!("effect: {effect:?}");
            act::perform(self.context, effect)
        });
        let upkeep_exit = decide::after_failed_upkeep(&snapshot);
        let may_fail = decide::may_fail(self.request, &snapshot);
        if is_news {
            self.record(snapshot, &plan, &performed);
        }
        if let Err(error) = performed {
            return match self.request {
                Request::Monitor if self.progress.phase == Phase::Begin => Some(failed_upkeep(upkeep_exit, &error)),
                _ => self.failed(&error, may_fail),
            };
        }
        self.failures = 0;
        match plan.next {
            Next::Exit(exit) => Some(finish(exit, &plan.because)),
            Next::Reobserve { after_ms, progress } => {
                self.progress = progress;
                self.look_again_after(Duration::from_millis(after_ms))
            }
        }
    }

    /// The same decision is taken again from what is found then: every effect can be repeated.
    fn failed(&mut self, error: &act::Error, may_fail: bool) -> Option<Code> {
        self.failures += 1;
        if let Some(pause) = after_failure(self.request, self.failures, may_fail) {
            log::warn!("{error}; looking again");
            self.context.deadline.sleep(pause);
            if !self.context.deadline.has_passed() {
                return None;
            }
        }
        log::error!("{error}");
        print_reason(&error.to_string());
        Some(Code::Generic)
    }

    fn look_again_after(&self, pause: Duration) -> Option<Code> {
        self.context.deadline.sleep(pause);
        if !self.context.deadline.has_passed() {
            return None;
        }
        let waited = self.last_because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
        print_reason(&format!("the action's time of {} s is over{waited}", self.context.budget.as_secs()));
        Some(Code::Generic)
    }

    /// A record that cannot be kept must not keep etcd from being kept.
    fn record(&self, snapshot: Snapshot, plan: &Plan, performed: &Result<(), act::Error>) {
        let outcome = performed.as_ref().map_or_else(ToString::to_string, |()| "done".to_owned());
        let entry = Entry::new(self.request, self.progress.clone(), snapshot, plan.clone(), outcome);
        if let Err(error) = record::append(Path::new(record::DIRECTORY), &self.context.resource, &entry) {
            log::debug!("this decision is not kept: {error}");
        }
    }

    /// What changes is told once. A monitor that finds what it found before has nothing to tell. Answers whether there
    /// was something to tell.
    fn log(&mut self, plan: &Plan) -> bool {
        if self.last_because.as_ref() == Some(&plan.because) {
            return false;
        }
        let quiet = plan.effects.is_empty() && matches!(plan.because, Reason::Running(_) | Reason::NothingToDo);
        let level = match plan.next {
            Next::Exit(Exit::Retriable) => log::Level::Error,
            _ if plan.effects.iter().any(|effect| matches!(effect, Effect::SetAlarm(Some(_)))) => log::Level::Warn,
            _ if quiet && (self.last_because.is_none() || plan.because == Reason::NothingToDo) => log::Level::Debug,
            _ => log::Level::Info,
        };
        log::log!(level, "{}: {}", name(self.request), plan.because);
        self.last_because = Some(plan.because.clone());
        level != log::Level::Debug
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

fn failed_upkeep(exit: Exit, error: &act::Error) -> Code {
    log::warn!("{error}; the next monitor tries again");
    match exit {
        Exit::Retriable => {
            print_reason(&error.to_string());
            Code::Generic
        }
        Exit::Promoted => Code::RunningPromoted,
        Exit::NotRunning => Code::NotRunning,
        Exit::Success => Code::Success,
    }
}

fn finish(exit: Exit, because: &Reason) -> Code {
    match exit {
        Exit::Success => Code::Success,
        Exit::Promoted => Code::RunningPromoted,
        Exit::NotRunning => Code::NotRunning,
        Exit::Retriable => {
            print_reason(&because.short());
            Code::Generic
        }
    }
}

fn name(request: Request) -> &'static str {
    match request {
        Request::Start => "start",
        Request::Stop => "stop",
        Request::Monitor => "monitor",
        Request::Probe => "probe",
        Request::Notify => "notify",
        Request::Promote => "promote",
        Request::Demote => "demote",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_fails_after_some_rounds_a_stop_never_and_a_start_not_too_soon() {
        assert!(after_failure(Request::Start, 2, true).is_some());
        assert!(after_failure(Request::Start, 3, true).is_none());
        assert!(after_failure(Request::Notify, 3, true).is_none());
        assert!(after_failure(Request::Stop, 100, true).is_some());
        assert!(after_failure(Request::Start, 3, false).is_some());
    }
}
