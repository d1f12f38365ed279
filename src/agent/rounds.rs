//! The rounds of one action: observe, decide, act, until the plan answers the action.

mod watch;

use std::time::Duration;

use self::watch::Watch;
use crate::adapters::ocf::exit::{Answered, Code};
use crate::agent::act;
use crate::agent::observe;
use crate::agent::resource::context::Context;
use crate::decide::reason::{Health, Wait};
use crate::decide::{self, Decision, Evidence, Exit, Next, OnFailure, Phase, Plan, Progress, Reason, Request};

/// Number of consecutive rounds (observe, decide, act) that must fail before an action may fail. Earlier failures are retried, because a
/// change of the member list can fail during a leader election.
const FAILURES_ALLOWED: u32 = 3;
/// Pause after each of the first failed rounds of an action. A round observes, decides and acts.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);
/// Pause after each further failed round of an action that may not fail yet. A round observes, decides and acts.
const PAUSE_AFTER_MANY: Duration = Duration::from_secs(2);
/// Time that an action must have left to observe again, as a multiple of an observation's duration. One part is for the observation, and
/// one for acting on its result. Without that time the action ends, and the next action continues.
const LOOKS_LEFT: u32 = 2;

/// Result of an action.
pub(super) struct Ended {
    pub answered: Answered,
    /// True if the action's first observation found an etcd that votes and has a leader, and the action changed nothing. False while the
    /// peer may soon hand leadership to this node, because the next monitor then has to observe etcd.
    pub all_well: bool,
}

/// Performs `request` in rounds (observe, decide, act) until it has a result.
pub(super) fn run(context: &Context, request: Request) -> Ended {
    if request == Request::Notify && !context.notify.as_ref().is_some_and(decide::is_heeded) {
        return Ended { answered: Code::Success.into(), all_well: false };
    }
    let watch = Watch::new(context, request);
    let mut rounds = Rounds { context, request, progress: Progress::default(), failures: 0, watch };
    let first = rounds.look_and_decide();
    let all_well = finds_all_well(&first.evidence, &first.decision.plan);
    let mut answered = rounds.carry_out(first);
    loop {
        if let Some(answered) = answered {
            return Ended { answered, all_well };
        }
        answered = rounds.next();
    }
}

fn finds_all_well(evidence: &Evidence, plan: &Plan) -> bool {
    let votes =
        matches!(plan.because, Reason::Running(Health::VoterOfTwo | Health::VoterAmong { .. } | Health::SoleVoter));
    votes
        && !decide::may_be_handed_leadership(evidence)
        && plan.effects.is_empty()
        && matches!(plan.next, Next::Exit(_))
}

struct Rounds<'a> {
    context: &'a Context,
    request: Request,
    progress: Progress,
    failures: u32,
    watch: Watch<'a>,
}

/// One round of an action: observing, deciding, and performing the plan's effects.
struct Round {
    /// Progress of the action at the beginning of this round.
    progress: Progress,
    evidence: Evidence,
    looking: Duration,
    decision: Decision,
    /// Number of the plan's effects that were performed.
    done: usize,
    /// Time that performing the plan's effects took.
    acting: Duration,
    /// Result of performing the plan's effects: the error of the first one that failed.
    performed: Result<(), act::Error>,
}

impl Rounds<'_> {
    /// Runs one round (observe, decide, act). Returns the action's result; `None` if another round follows.
    fn next(&mut self) -> Option<Answered> {
        let round = self.look_and_decide();
        self.carry_out(round)
    }

    fn carry_out(&mut self, mut round: Round) -> Option<Answered> {
        self.watch.decided(&round);
        self.act(&mut round);
        self.watch.finished(&round);
        let Round { looking, decision: Decision { plan, on_failure, when_over }, performed, .. } = round;
        if let Err(error) = performed {
            return match on_failure {
                OnFailure::Answer(exit) => Some(self.left_to_the_next_one(exit, &error.to_string())),
                OnFailure::FailInTime => self.failed(&error, true, when_over),
                OnFailure::TryOn => self.failed(&error, false, when_over),
            };
        }
        self.failures = 0;
        match plan.next {
            Next::Exit(exit) => {
                self.watch.answered(&plan.because);
                Some(finish(exit, &plan.because))
            }
            Next::Reobserve { after_ms, progress } => {
                self.progress = progress;
                let needed = if when_over.is_some() { LOOKS_LEFT * looking } else { Duration::ZERO };
                self.look_again_after(Duration::from_millis(after_ms), needed, when_over)
            }
        }
    }

    fn look_and_decide(&self) -> Round {
        let began = self.context.deadline.elapsed();
        // The lock comes first, so that no other action changes what is observed from here on.
        let launching = self.context.container_lock.take();
        let evidence = observe::observe(self.context, launching);
        let looking = self.context.deadline.elapsed().saturating_sub(began);
        let decision = decide::decide(self.request, &evidence, &self.progress);
        let progress = self.progress.clone();
        Round { progress, evidence, looking, decision, done: 0, acting: Duration::ZERO, performed: Ok(()) }
    }

    fn act(&self, round: &mut Round) {
        let began = self.context.deadline.elapsed();
        let Round { decision, done, .. } = round;
        round.performed = decision.plan.effects.iter().try_for_each(|effect| {
            log::debug!("effect: {effect}");
            act::perform(self.context, effect).inspect(|()| *done += 1)
        });
        round.acting = self.context.deadline.elapsed().saturating_sub(began);
    }

    /// Ends an action that leaves the rest of its work to the next action. In a recovery, counts such actions. After several of them, an
    /// action continues the recovery only with enough time left to finish it.
    fn left_to_the_next_one(&self, exit: Exit, why: &str) -> Answered {
        let recovers = matches!(
            self.progress.phase,
            Phase::Announced | Phase::Barrier { .. } | Phase::VoteProxy { .. } | Phase::StoodIn
        );
        if recovers {
            self.context.programs.pace().note_postponed(true);
        }
        log::warn!("{why}; the next monitor continues");
        answered(exit, || why.to_owned())
    }

    /// Handles an effect that failed. Returns the action's result; `None` if the action observes and decides again, which is possible
    /// because every effect can be repeated.
    fn failed(&mut self, error: &act::Error, may_fail: bool, when_over: Option<Exit>) -> Option<Answered> {
        self.failures += 1;
        if let Some(pause) = after_failure(self.request, self.failures, may_fail) {
            log::warn!("{}: an effect failed and is retried at the next observation: {error}", self.request);
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
        log::error!("{}: an effect failed: {error}", self.request);
        Some(Answered::failed(Code::Generic, error.to_string()))
    }

    fn look_again_after(&self, pause: Duration, needed: Duration, when_over: Option<Exit>) -> Option<Answered> {
        self.context.deadline.sleep(pause);
        if self.context.deadline.left() > needed {
            return None;
        }
        if let Some(exit) = when_over {
            let so_far = self.watch.last_because.as_ref().map_or_else(String::new, |because| format!(" ({because})"));
            return Some(
                self.left_to_the_next_one(exit, &format!("this action has no time for another observation{so_far}")),
            );
        }
        let why = out_of_time(self.context.budget, self.watch.last_because.as_ref());
        self.watch.failed_for_want_of_time();
        Some(Answered::failed(Code::Generic, why))
    }
}

/// Returns the pause after the `failures`th consecutive round (observe, decide, act) that failed; `None` if the action fails now.
fn after_failure(request: Request, failures: u32, may_fail: bool) -> Option<Duration> {
    // A stop continues to its deadline, because preliminary steps that fail, such as leaving, are skipped in time.
    if failures < FAILURES_ALLOWED || request == Request::Stop {
        return Some(PAUSE_AFTER_FAILURE);
    }
    (!may_fail).then_some(PAUSE_AFTER_MANY)
}

/// Returns the exit reason of an action that is out of time. If the last decision was a refusal, the reason is only the refusal's short
/// form, which begins with the command to type. Pacemaker keeps only the first 127 bytes of a reason.
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

/// Returns the exit code, and for a failure the exit reason `why`.
fn answered(exit: Exit, why: impl FnOnce() -> String) -> Answered {
    match exit {
        Exit::Success => Code::Success.into(),
        Exit::Promoted => Code::RunningPromoted.into(),
        Exit::NotRunning => Code::NotRunning.into(),
        Exit::Retriable => Answered::failed(Code::Generic, why()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;
    use crate::base::Fact;
    use crate::decide::Effect;
    use crate::decide::evidence::{Etcd, Leading, Moment, Notify, Operation};
    use crate::decide::reason::{Refusal, Rule};
    use crate::records::decision_log;
    use crate::records::events::{read, reason};

    fn context(state_dir: &std::path::Path) -> Context {
        let files = [("trusted_ca_file", "/c"), ("cert_file", "/c"), ("key_file", "/c")];
        Context::of_test(state_dir, &[&files[..], &[("image", "etcd:test")]].concat())
    }

    fn rounds(context: &Context, request: Request, last_because: Option<Reason>) -> Rounds<'_> {
        let mut watch = Watch::new(context, request);
        watch.last_because = last_because;
        Rounds { context, request, progress: Progress::default(), failures: 0, watch }
    }

    /// Asserts that only a monitor resets the number of consecutive actions that each left a recovery to the next action. A
    /// notification must not reset it, because a notification may come between two monitors of the same recovery.
    #[test]
    fn actions_that_leave_a_recovery_to_the_next_one_are_counted_until_a_monitor_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let context = context(dir.path());
        let after = |request, because: Reason| {
            Watch::new(&context, request).answered(&because);
            context.programs.pace().postponed()
        };
        let later = || Reason::Waiting(Wait::MoreTime);
        assert_eq!([after(Request::Monitor, later()), after(Request::Notify, later())], [1, 2]);
        assert_eq!(after(Request::Notify, Reason::NothingToDo), 2);
        assert_eq!(after(Request::Monitor, Reason::Running(Health::SoleVoter)), 0);
    }

    fn recorded() -> decision_log::Entry {
        serde_json::from_str(include_str!("../../tests/data/fixtures/decisions/one.jsonl")).unwrap()
    }

    #[test]
    fn all_is_well_where_etcd_votes_with_a_leader_and_nothing_is_to_be_changed() {
        let evidence = recorded().evidence;
        let running = |health| Plan::exit(Vec::new(), Exit::Success, Reason::Running(health));
        let peer = "node2".to_owned();
        assert!(
            [Health::VoterOfTwo, Health::SoleVoter, Health::VoterAmong { voters: 3 }]
                .map(running)
                .iter()
                .all(|plan| finds_all_well(&evidence, plan))
        );
        let others = [
            running(Health::Learner),
            running(Health::Alarm { alarms: "NOSPACE".to_owned() }),
            running(Health::LeaderlessPeerNotConfirmed { peer: peer.clone() }),
            running(Health::LeaderlessPeerKeepsItsClaim { peer }),
            running(Health::WithoutMajority { others: "node3".to_owned() }),
            running(Health::NotRunning),
            Plan::exit(vec![Effect::RestoreRecord], Exit::Success, Reason::Running(Health::VoterOfTwo)),
            Plan::then_look(Vec::new(), 1, Progress::default(), Reason::Running(Health::VoterOfTwo)),
        ];
        assert!(!others.iter().any(|plan| finds_all_well(&evidence, plan)));
    }

    /// Asserts that a monitor of the configured primary observes etcd while the peer leads, so that `etcd_leader` follows a hand-over.
    #[test]
    fn all_is_not_well_while_the_peer_is_to_hand_leadership_over() {
        let plan = Plan::exit(Vec::new(), Exit::Success, Reason::Running(Health::VoterOfTwo));
        let mut evidence = recorded().evidence;
        evidence.own_etcd = Fact::Known(Etcd::of_test(1, Some(2), &[1, 2], &[]));
        assert!(finds_all_well(&evidence, &plan));
        let primary = Some(evidence.me.name.clone());
        evidence.leading = Some(Box::new(Leading { primary, failback: true, ..Leading::default() }));
        assert!(!finds_all_well(&evidence, &plan));
    }

    /// Asserts that the agent answers an irrelevant notification without an observation. After fencing, a promotable clone gets two
    /// irrelevant notifications before the relevant one.
    #[test]
    fn a_notification_from_which_nothing_follows_is_answered_without_a_look() {
        let looks = |moment, operation| {
            let dir = tempfile::tempdir().unwrap();
            let asked = dir.path().join("asked");
            let programs = fake_program(dir.path(), "cibadmin", &format!("touch {}", asked.display()));
            let notify = Notify { moment, operation, ..Notify::default() };
            let context = Context { programs, notify: Some(notify), ..context(dir.path()) };
            assert_eq!(run(&context, Request::Notify).answered.code, Code::Success);
            asked.exists()
        };
        for operation in [Operation::Demote, Operation::Promote, Operation::None] {
            assert!(!looks(Moment::Pre, operation) && !looks(Moment::Post, operation), "{operation:?}");
        }
        assert!(!looks(Moment::Pre, Operation::Stop));
        assert!(looks(Moment::Post, Operation::Stop) && looks(Moment::Pre, Operation::Start));
    }

    /// Asserts that an action that records events succeeds whatever the file of events contains. Every member of Pacemaker's group can
    /// write to that file.
    #[test]
    fn a_round_with_news_ends_as_it_should_behind_any_line_of_the_events() {
        let recorded = recorded();
        let numbers = [u64::MAX, u64::MAX - 1, 1 << 53, (1 << 53) - 1, 0];
        for name in numbers.iter().flat_map(|number| ["events.jsonl", "events.jsonl.1"].map(|name| (name, number))) {
            let (name, number) = name;
            let dir = tempfile::tempdir().unwrap();
            let events = dir.path().join("events");
            std::fs::create_dir(&events).unwrap();
            let line = format!(
                "{{\"number\":{number},\"time\":\"2026-11-28T12:00:00Z\",\"type\":\"Normal\",\"reason\":\"Test\",\
                 \"node\":\"n\",\"message\":\"m\",\"cause\":\"x\"}}\n"
            );
            std::fs::write(events.join(name), line).unwrap();
            let programs = fake_program(dir.path(), "crm_attribute", "exit 0");
            let context = Context { programs, events: Some(events.clone()), ..context(dir.path()) };
            let because = Reason::Rule { rule: Rule::SurvivorGoesOnAlone, peer: "node2".to_owned() };
            let effects = vec![Effect::SetStandalone(Some("node1".to_owned()))];
            let plan = Plan { effects, next: Next::Exit(Exit::Success), because };
            let round = Round {
                progress: Progress::default(),
                evidence: recorded.evidence.clone(),
                looking: Duration::ZERO,
                decision: Decision { plan, on_failure: OnFailure::FailInTime, when_over: None },
                done: 0,
                acting: Duration::ZERO,
                performed: Ok(()),
            };
            let answered = rounds(&context, Request::Monitor, None).carry_out(round);
            assert_eq!(answered, Some(Code::Success.into()), "{name} {number}");
            let told = read::all(&events).unwrap();
            assert_eq!(told.last().unwrap().reason, reason::ALONE, "{name} {number}: {told:?}");
        }
    }

    /// Asserts that an action ends without another observation if it lacks the time for one. On a slow machine, Pacemaker would otherwise
    /// kill the action before it returns a result.
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
            (Phase::VoteProxy { nonce: 1, term: 1 }, 3),
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
