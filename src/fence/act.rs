//! The execution of an action: it asks the plan for the next step, performs it, and reports the event to the plan.

mod contested;
mod contradiction;
mod list;
mod seen;

use std::time::Duration;

pub(super) use self::seen::{ActorSeen, Fenced};
use super::config::{Action, Config, Method, Timing};
use super::contest::Contest;
use super::fence_wait::FenceWait;
use super::limits;
use super::outage::Outage;
use super::plan::{self, Event, FenceStep, Goal, Limits, Moment, Plan, Reached};
use crate::adapters::redfish::bmc::{Bmc, Target};
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::quirks::{PowerWord, ResetGoal};
use crate::adapters::redfish::resource::Power;
use crate::adapters::redfish::select::{self, Candidate};
use crate::os::clock::Deadline;

/// The output and the exit code of an action that succeeded. A `status` that found the system off counts as a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub code: u8,
    /// The text for standard output. It may be empty.
    pub text: String,
}

impl Ending {
    pub(super) fn success(text: impl Into<String>) -> Self {
        Self { code: 0, text: text.into() }
    }
}

/// The exit code of the action `status` if the system is off.
const IS_OFF: u8 = 2;
/// The time limit of a `reboot` for powering a system on after it is proven off. The option `power_timeout` replaces it.
const ON_AFTER_OFF: Duration = Duration::from_secs(15);
/// The time for which a reboot with `method=cycle` waits for the BMC to power the system on again. After it, the agent sends a
/// reset that powers the system on.
const CYCLE_GRACE: Duration = Duration::from_secs(8);
/// The interval at which an agent reads the target's power state while it waits because its node has no vote in etcd.
const YIELD_POLL: Duration = Duration::from_secs(1);
/// The executor of one action: it asks the plan for each next step, and performs it through the BMC.
#[derive(Debug)]
pub struct Actor<'a> {
    config: &'a Config,
    bmc: &'a mut Bmc,
    deadline: Deadline,
    hosts: Vec<Target>,
    /// Every system behind the BMC. Empty unless the action is a monitor with `plug=dynamic`.
    listed: Vec<Candidate>,
    fenced: Fenced,
    /// The rule by which an attempt to fence ends without a reset after the BMC was unreachable (see [`Outage`]). `None` outside
    /// the fencer, and with the option `race_with`.
    outage: Option<Outage>,
    /// The race with the other node's agent for the right to reset; `None` without the option `race_with`.
    contest: Option<Contest>,
    /// The delay of a node that has no vote in etcd (see [`FenceWait`]); `None` if the action needs none, or if the fencer did
    /// not start the agent.
    wait: Option<FenceWait>,
}

impl<'a> Actor<'a> {
    pub(super) fn new(config: &'a Config, bmc: &'a mut Bmc, deadline: Deadline, contest: Option<Contest>) -> Self {
        let hosts = config.systems.iter().cloned().map(Target::new).collect();
        // A race is decided after the BMC is back, whenever the attempt began.
        let gives_way = config.environment.under_fencer && contest.is_none();
        let outage = gives_way.then(|| Outage::with(&config.address, deadline.elapsed()));
        let wait = config.wait_attribute.as_deref().map(FenceWait::of);
        Self { config, bmc, deadline, hosts, listed: Vec::new(), fenced: Fenced::default(), outage, contest, wait }
    }

    /// Returns the systems that this action has observed, and the times at which it fenced them. They are recorded in a file in
    /// `/run`.
    pub(super) fn into_seen(self) -> ActorSeen {
        ActorSeen { hosts: self.hosts, listed: self.listed, fenced: self.fenced }
    }

    /// Performs the configured action.
    pub fn run(&mut self) -> Result<Ending, Failure> {
        let ended = self.perform();
        self.end_contest();
        ended
    }

    fn perform(&mut self) -> Result<Ending, Failure> {
        match self.config.action {
            Action::Status => self.status(),
            Action::Monitor => self.monitor(),
            Action::List => self.list(false),
            Action::ListStatus => self.list(true),
            Action::On => self.on(),
            Action::Off => self.off(),
            Action::Reboot => self.reboot(),
            Action::Diag => self.diag(),
            Action::ValidateAll | Action::Metadata | Action::Manpage => Ok(Ending::success("")),
        }
    }

    fn status(&mut self) -> Result<Ending, Failure> {
        let mut words = Vec::new();
        for at in 0..self.hosts.len() {
            words.push(self.know_for_status(at)?);
        }
        // As in the fencing library, one plug that is on makes the whole on.
        Ok(match words.iter().find(|power| !power.is(PowerWord::Off)) {
            Some(power) if power.is(PowerWord::On) => Ending::success("Status: ON"),
            Some(power) => Ending::success(format!("Status: ON ({power})")),
            None => Ending { code: IS_OFF, text: "Status: OFF".to_owned() },
        })
    }

    /// Checks for every system that its BMC answers and that the agent could fence it. Changes nothing. Any known power state is
    /// a success.
    fn monitor(&mut self) -> Result<Ending, Failure> {
        if self.config.dynamic {
            self.listed = self.candidates()?;
            let systems: Vec<_> = select::resettable(&self.listed).collect();
            if let Some((at, system)) = systems.iter().find(|(_, system)| matches!(system.power, Power::Unclear(_))) {
                let uri = self.listed.get(*at).map_or("", |candidate| candidate.uri.as_str());
                return Err(Failure::new(
                    FailureKind::Garbled,
                    format!("{uri} does not say whether it is on: {}", system.power),
                ));
            }
            return if systems.is_empty() { Err(none_to_reset()) } else { Ok(Ending::success("")) };
        }
        for at in 0..self.hosts.len() {
            self.know_and_note(at)?;
            let Some(host) = self.hosts.get_mut(at) else { continue };
            let Some(path) = host.path().map(str::to_owned) else { continue };
            if host.system().is_some_and(|system| system.reset.is_none()) {
                return Err(Failure::new(FailureKind::WrongSystem, no_reset_action(&path)));
            }
            if let Some(allowed) = self.bmc.allowed(host).filter(|allowed| !allowed.iter().any(|one| one == "ForceOff"))
            {
                log::warn!(
                    "{path} lists the reset types {}, and not ForceOff, which fencing needs",
                    allowed.join(", ")
                );
            }
        }
        Ok(Ending::success(""))
    }

    fn on(&mut self) -> Result<Ending, Failure> {
        let mut reached = Reached::Already;
        for at in 0..self.hosts.len() {
            reached = worked(reached, self.pursue(at, Goal::On, self.limits(Goal::On))?);
        }
        Ok(if reached == Reached::Already { Ending::already_on() } else { Ending::success("Success: Powered ON") })
    }

    fn off(&mut self) -> Result<Ending, Failure> {
        let reached = self.all_off()?;
        self.settle_contest();
        Ok(Ending::success(if reached == Reached::Already { "Success: Already OFF" } else { "Success: Powered OFF" }))
    }

    /// Switches every system off, and proves that each is off. Fails at the first system that is not proven off.
    fn all_off(&mut self) -> Result<Reached, Failure> {
        let mut reached = Reached::Already;
        for at in 0..self.hosts.len() {
            reached = worked(reached, self.pursue(at, Goal::Off, self.limits(Goal::Off))?);
        }
        Ok(reached)
    }

    fn cycle(&mut self) -> Result<Reached, Failure> {
        let mut reached = Reached::Already;
        for at in 0..self.hosts.len() {
            let by_whom = self.pursue(at, Goal::Cycle, self.limits(Goal::Cycle))?;
            if by_whom == Reached::Already {
                // There is nothing to cycle, so Off must be proven as always.
                self.pursue(at, Goal::Off, self.limits(Goal::Off))?;
            }
            reached = worked(reached, by_whom);
        }
        Ok(reached)
    }

    fn reboot(&mut self) -> Result<Ending, Failure> {
        let reached = match self.config.method {
            Method::OnOff => self.all_off()?,
            Method::Cycle => self.cycle()?,
        };
        self.settle_contest();
        let mut limits = self.on_after_off();
        if self.config.method == Method::Cycle && reached == Reached::ByUs {
            limits.grace = CYCLE_GRACE;
        }
        // From here on the node is fenced, whatever happens to the second half.
        let mut trouble = None;
        for at in 0..self.hosts.len() {
            let proof = self.reading_of_proof(at);
            if let Err(failure) = self.pursue_after(proof, at, Goal::On, limits) {
                log::warn!("the node is fenced and could not be powered on again: {failure}");
                trouble = Some(failure);
            }
        }
        Ok(Ending::success(match trouble {
            None => "Success: Rebooted".to_owned(),
            Some(failure) => format!("Success: Rebooted (OFF is proven; powering ON failed: {failure})"),
        }))
    }

    /// Sends a non-maskable interrupt to every system. The agent cannot observe the effect of an interrupt.
    fn diag(&mut self) -> Result<Ending, Failure> {
        for at in 0..self.hosts.len() {
            self.know(at)?;
            let types = self.types(at, ResetGoal::Diag);
            let Some(host) = self.hosts.get_mut(at) else { continue };
            for reset_type in &types {
                let answer = self.bmc.reset(host, reset_type)?;
                log::info!("{}: {reset_type} was accepted ({})", host.path().unwrap_or_default(), answer.status);
            }
        }
        Ok(Ending::success("Success: Diagnostic interrupt sent"))
    }

    fn know(&mut self, at: usize) -> Result<Power, Failure> {
        match self.pursue(at, Goal::Know, self.limits(Goal::Know))? {
            Reached::State(power) => Ok(power),
            Reached::Already | Reached::ByUs => Err(Failure::new(FailureKind::Garbled, "the power state is not known")),
        }
    }

    fn types(&mut self, at: usize, wish: ResetGoal) -> Vec<String> {
        self.hosts.get_mut(at).map(|host| self.bmc.reset_types(host, wish)).unwrap_or_default()
    }

    fn plan(&self, goal: Goal, types: Vec<String>) -> Plan {
        Plan { goal, types, limits: self.limits(goal) }
    }

    fn limits(&self, goal: Goal) -> Limits {
        let may_give_way = self.outage.as_ref().is_some_and(Outage::may_give_way);
        Limits { may_give_way, ..limits::of(goal, &self.config.timing, self.deadline.left()) }
    }

    fn on_after_off(&self) -> Limits {
        let timing = Timing { retry_on: self.config.timing.retry_on.saturating_sub(1), ..self.config.timing };
        let mut limits = limits::of(Goal::On, &timing, self.deadline.left());
        if timing.power.is_none() {
            limits.end = limits.end.min(ON_AFTER_OFF);
        }
        limits
    }

    /// Brings the system at the index `at` into the power state `goal`, step by step.
    fn pursue(&mut self, at: usize, goal: Goal, limits: Limits) -> Result<Reached, Failure> {
        self.pursue_after(Vec::new(), at, goal, limits)
    }

    /// Brings the system at the index `at` into the power state `goal`. `history` has the events from before this part of the
    /// action.
    fn pursue_after(
        &mut self,
        mut history: Vec<Moment>,
        at: usize,
        goal: Goal,
        limits: Limits,
    ) -> Result<Reached, Failure> {
        let types = if history.is_empty() { Vec::new() } else { self.types_for(at, goal) };
        let mut plan = Plan { goal, types, limits };
        let began = self.deadline.elapsed();
        loop {
            let now = self.deadline.elapsed().saturating_sub(began);
            let event = match plan.next(&history, now) {
                FenceStep::Read { not_before } => {
                    self.pause(goal, began, not_before.min(plan.limits.end));
                    match self.failed_task(at, &history) {
                        Some(failure) => Event::Undone(failure),
                        None => self.observe(at, goal),
                    }
                }
                FenceStep::Post { .. } if self.yields(goal, &history) => {
                    self.pause(goal, began, now + YIELD_POLL);
                    self.observe(at, goal)
                }
                FenceStep::Post { reset_type } => self.post_if_won(at, &reset_type, goal)?,
                FenceStep::AskChassis => self.ask_chassis(at),
                FenceStep::Done(reached) => {
                    self.fenced.note(goal, &reached, &history);
                    conclude(goal, self.hosts.get(at).and_then(Target::path), &history);
                    return Ok(reached);
                }
                FenceStep::GiveWay => {
                    if let Some(given_way) = self.outage.as_mut().and_then(Outage::give_way) {
                        return Err(given_way);
                    }
                    plan.limits.may_give_way = false;
                    continue;
                }
                FenceStep::Fail(failure) => return Err(failure),
            };
            history.extend(self.missed(&history, &event).map(|event| Moment { at: now, event }));
            if plan.types.is_empty() && matches!(event, Event::Read { .. }) {
                plan.types = self.types_for(at, goal);
            }
            history.push(Moment { at: self.deadline.elapsed().saturating_sub(began), event });
        }
    }

    /// Returns a failed connection, which the caller adds to `history` before `event`, if the BMC was unreachable until then (see
    /// [`Outage::missed`]). Returns `None` if `history` already shows the outage, or if there was none.
    fn missed(&mut self, history: &[Moment], event: &Event) -> Option<Event> {
        let bmc = &self.bmc;
        self.outage.as_mut()?.missed(history, event, || bmc.has_just_come_back())
    }

    fn types_for(&mut self, at: usize, goal: Goal) -> Vec<String> {
        match goal {
            Goal::Know => Vec::new(),
            Goal::Off => self.types(at, ResetGoal::Off),
            Goal::On => self.types(at, ResetGoal::On),
            Goal::Cycle => self.types(at, ResetGoal::Cycle),
        }
    }

    fn observe(&mut self, at: usize, goal: Goal) -> Event {
        let Some(host) = self.hosts.get_mut(at) else {
            return Event::Unread(Failure::new(FailureKind::WrongSystem, "there is no such system"));
        };
        match self.bmc.observe(host) {
            // A machine that could be off has a reset action. Without one the resource is a chassis, a board, or a service that
            // is starting.
            Ok(system) if system.reset.is_none() && matches!(goal, Goal::Off | Goal::Cycle) => {
                Event::Unread(Failure::new(FailureKind::Garbled, no_reset_action(host.path().unwrap_or_default())))
            }
            Ok(system) => Event::Read { power: system.power, last_reset: system.last_reset, is_there: true },
            Err(missing) if missing.kind == FailureKind::NoSuchSystem && self.config.missing_as_off => {
                log::info!("the system counts as off, because missing_as_off is set: {missing}");
                let power = Power::Known(PowerWord::Off, "Off".to_owned());
                Event::Read { power, last_reset: None, is_there: false }
            }
            Err(failure) => Event::Unread(failure),
        }
    }

    /// Returns the failure of the Redfish task that the BMC started for an accepted reset. Queries the BMC only directly after a
    /// reading of the power state. Makes no query once the system has changed to Off.
    fn failed_task(&mut self, at: usize, history: &[Moment]) -> Option<Failure> {
        match &history.last()?.event {
            Event::Read { power, .. } if !power.is(PowerWord::Off) || !plan::said_otherwise(history) => {
                self.bmc.failed_task(self.hosts.get_mut(at)?)
            }
            _ => None,
        }
    }

    fn ask_chassis(&mut self, at: usize) -> Event {
        let on = self.hosts.get(at).map_or(Ok(None), |host| self.bmc.chassis_that_is_on(host));
        // A late chassis may still report On.
        on.map_or_else(Event::ChassisUnread, |on| Event::Chassis { on })
    }

    fn post(&mut self, at: usize, reset_type: &str) -> Event {
        let Some(host) = self.hosts.get_mut(at) else {
            return Event::Refused(Failure::new(FailureKind::WrongSystem, "there is no such system"));
        };
        match self.bmc.reset(host, reset_type) {
            Ok(answer) => {
                log::info!("{}: {reset_type} was accepted ({})", host.path().unwrap_or_default(), answer.status);
                Event::Posted
            }
            Err(mut failure) => {
                if failure.kind == FailureKind::ValueRefused {
                    let allowed =
                        self.bmc.allowed(host).map_or_else(|| "not listed".to_owned(), |list| list.join(", "));
                    failure.text =
                        format!("{failure}; the reset type was {reset_type}, the allowed ones are {allowed}");
                }
                log::info!("{}: {reset_type} was not accepted: {failure}", host.path().unwrap_or_default());
                Event::Refused(failure)
            }
        }
    }
}

fn no_reset_action(path: &str) -> String {
    format!("{path} offers no Reset action, so it cannot be fenced; check systems_uri and plug")
}

fn none_to_reset() -> Failure {
    Failure::new(FailureKind::NoSuchSystem, "the BMC has no system that can be reset")
}

/// Logs when and how the system reached `goal`, for a later analysis.
fn conclude(goal: Goal, path: Option<&str>, history: &[Moment]) {
    if goal == Goal::Know {
        return;
    }
    let resets = history.iter().filter(|moment| matches!(moment.event, Event::Posted | Event::Refused(_))).count();
    let readings = history.iter().filter(|moment| matches!(moment.event, Event::Read { .. })).count();
    let took = history.last().map_or(0.0, |moment| moment.at.as_secs_f64());
    let path = path.unwrap_or("a system that is not there");
    log::info!("system={path}: {goal:?} is proven: seconds={took:.1} resets={resets} readings={readings}");
    if plan::came_back(history) && goal == Goal::Off {
        log::warn!("system={path}: the system was off and came back by itself (is there a power restore policy?)");
    }
}

fn worked(before: Reached, now: Reached) -> Reached {
    if before == Reached::ByUs { before } else { now }
}
