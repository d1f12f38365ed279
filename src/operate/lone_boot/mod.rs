//! The boot of a node without its peer: the observations that show whether it may serve, and the steps that let it serve. The rules are
//! in `decide`, and `docs/design/lone-boot.md` gives the argument.

mod act;
mod bmc;
mod off;

use std::path::Path;
use std::time::Duration;

use self::off::OffRow;
use crate::adapters::corosync::{members, quorum};
use crate::adapters::data_dir;
use crate::adapters::ocf::env::Env;
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::{attributes, configuration};
use crate::adapters::podman;
use crate::agent::observe;
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::{Done, LoneBoot, PeerBmc, PeerNode, Version};
use crate::decide::reason::{NoLoneBoot, Reason, Refusal};
use crate::decide::{self, Evidence, Next, Plan, Progress, Request};
use crate::operate::failure::Failure;
use crate::operate::node;
use crate::os::clock::{self, Deadline};
use crate::os::{dmi, proc};
use crate::records::decision_log::{self, Entry};
use crate::records::lone_boot::FirstCorosync;
use crate::records::{image_versions, state_file};

/// Time limit for a BMC's answer. The next observation queries a slower BMC again.
const BMC: Duration = Duration::from_secs(20);
/// Time between two observations.
const EACH: Duration = Duration::from_secs(10);
/// Time between two observations while the machine boots. It is shorter than [`EACH`], because Corosync, Pacemaker and its first probe
/// start within seconds of each other.
const EACH_AT_BOOT: Duration = Duration::from_secs(2);
const BOOTS: Duration = Duration::from_secs(60);
const COROSYNC: &str = "corosync";

/// One observation of a node without its peer, and the plan that follows from it.
#[derive(Debug)]
pub struct Look {
    pub node: String,
    pub resource: String,
    pub evidence: Evidence,
    pub plan: Plan,
}

/// A run of `tandem lone-boot` on this node: its findings and its finished steps.
#[derive(Debug, Default)]
pub struct LoneBooter {
    resource: Option<String>,
    /// True for the service, which stores its findings and changes the cluster. False for an observation that an operator asked for.
    acts: bool,
    off: OffRow,
    /// The value that this run wrote to the cluster property `etcd_lone_boot`; `None` if it has written none.
    announced: Option<String>,
    held_off: bool,
    last_because: Option<Reason>,
    last_failure: Option<String>,
}

impl LoneBooter {
    pub fn new(resource: Option<&str>, acts: bool) -> Self {
        Self { resource: resource.map(str::to_owned), acts, ..Self::default() }
    }

    /// Observes, acts and logs repeatedly until there is quorum. Returns the last observation.
    pub fn run(&mut self) -> Look {
        let since_start = Deadline::after(BOOTS);
        loop {
            let round = Deadline::after(EACH);
            let each = if since_start.has_passed() { EACH } else { EACH_AT_BOOT };
            let pause = match self.round() {
                Ok((look, None)) => return look,
                Ok((_, Some(pause))) => pause.min(round.left()),
                Err(Failure(why)) => {
                    self.log_failure(&why);
                    each
                }
            };
            clock::sleep(if self.is_refused() { pause.min(each) } else { pause });
        }
    }

    fn is_refused(&self) -> bool {
        matches!(self.last_because, Some(Reason::Refused { .. }))
    }

    /// Observes once and performs the plan. Returns the pause before the next observation, or `None` once there is quorum.
    fn round(&mut self) -> Result<(Look, Option<Duration>), Failure> {
        let (context, look) = self.look()?;
        self.last_failure = None;
        self.log(&look.plan.because);
        let outcome = self.perform(&context, &look);
        if !look.plan.effects.is_empty() {
            record(&context, &look, &outcome);
        }
        outcome?;
        let pause = match look.plan.next {
            Next::Exit(decide::Exit::Success) => None,
            Next::Exit(_) => Some(EACH),
            Next::Reobserve { after_ms, .. } => Some(self.next_look(&context, Duration::from_millis(after_ms))),
        };
        Ok((look, pause))
    }

    /// Returns the pause before the next observation. It is shorter than `pause` if the peer's time off reaches the
    /// required time before `pause` is over.
    fn next_look(&self, context: &Context, pause: Duration) -> Duration {
        let wait = Duration::from_secs(context.params.lone_boot.wait_s);
        let lasted = self.off.lasted(now()).map(|(lasted, age)| lasted + age);
        let left = lasted.map(|lasted| wait.saturating_sub(lasted)).filter(|left| !left.is_zero());
        left.map_or(pause, |left| left.min(pause))
    }

    /// Observes once and decides. The peer's BMC is queried last, and only if all other conditions for a lone boot hold.
    pub fn look(&mut self) -> Result<(Context, Look), Failure> {
        let context = node::context(self.resource.as_deref())?;
        let mut evidence = observe::observe(&context, context.container_lock.is_anothers());
        let mut facts = self.facts(&context, &evidence);
        let mut plan = decided(&mut evidence, &facts);
        if asks_the_bmc(&plan) {
            facts.peer_bmc = self.ask_the_bmc(&context, &evidence);
            facts.done = self.done(&context, &evidence);
            plan = decided(&mut evidence, &facts);
        }
        let (node, resource) = (context.me.name.clone(), context.resource.clone());
        Ok((context, Look { node, resource, evidence, plan }))
    }

    /// Returns the facts that decide about a lone boot, without the report of the peer's BMC.
    fn facts(&self, context: &Context, evidence: &Evidence) -> LoneBoot {
        let params = context.params.lone_boot;
        let facts = LoneBoot { is_wanted: params.is_wanted, wait_s: params.wait_s, ..LoneBoot::default() };
        let (programs, limits) = (&context.programs, Limits::patient());
        let quorum = match quorum::ask(programs, &limits) {
            Fact::Absent => Fact::Unknown("Corosync does not run here".to_owned()),
            asked => asked,
        };
        let has_quorum = quorum.as_ref().map(|known| known.quorate);
        let waits_for_all = quorum.as_ref().map(|known| known.waits_for_all);
        if !params.is_wanted || has_quorum == Fact::Known(true) {
            return LoneBoot { quorum: has_quorum, waits_for_all, ..facts };
        }
        let joined = match &quorum {
            Fact::Known(known) => members::another_joined(programs, known.node_id, limits.quorum),
            _ => Fact::Unknown("Corosync does not name this node".to_owned()),
        };
        LoneBoot {
            quorum: has_quorum,
            waits_for_all,
            peer_was_seen: self.peer_was_seen(context, evidence, joined),
            voters_are_committed: match data_dir::voters_are_committed(context.data_dir()) {
                Ok(are_committed) => Fact::Known(are_committed),
                Err(error) => Fact::Unknown(error.to_string()),
            },
            release: release(context),
            own_uuid: dmi::system_uuid().map_or(Fact::Absent, Fact::Known),
            ..facts
        }
    }

    /// Returns whether the peer was a Corosync member in this boot. Returns true after a restart of Corosync, because Corosync has
    /// forgotten the members. Returns true if etcd ran in this boot, because the node had quorum at that time.
    fn peer_was_seen(&self, context: &Context, evidence: &Evidence, joined: Fact<bool>) -> Fact<bool> {
        let Some(started) = proc::started_last(&[COROSYNC]) else {
            return Fact::Unknown("no process of Corosync is found".to_owned());
        };
        let now = FirstCorosync { boot_id: context.boot_id.clone(), started };
        let path = state_file::lone_boot_path(&Env::from_pairs([]).volatile_dir(), &context.resource);
        let first = match state_file::read::<FirstCorosync>(&path) {
            Fact::Known(first) if first.boot_id == now.boot_id => Some(first),
            Fact::Unknown(why) => return Fact::Unknown(why),
            _ => None,
        };
        if first.is_none()
            && self.acts
            && let Err(error) = state_file::write(&path, &now)
        {
            return Fact::Unknown(error.to_string());
        }
        let etcd_ran = evidence.boot_state().is_some_and(|memory| memory.voter.is_some());
        seen(first.as_ref(), &now, etcd_ran, joined)
    }

    fn ask_the_bmc(&mut self, context: &Context, evidence: &Evidence) -> Fact<PeerBmc> {
        let asked = bmc::ask(&context.programs, &context.resource, evidence.peer_name(), BMC);
        let is_unbroken = self.off.take(asked.known(), now());
        if !is_unbroken {
            (self.announced, self.held_off) = (None, false);
        }
        asked.map(|answered| answered.fact(self.off.lasted(now())))
    }

    /// Returns the steps of a lone boot that this run has finished and that the CIB confirms.
    fn done(&self, context: &Context, evidence: &Evidence) -> Done {
        let Some(announced) = &self.announced else { return Done::default() };
        let read = configuration::ask(&context.programs, Some(&context.resource), &Limits::patient());
        let property = read.known().and_then(|read| read.configuration.properties.get(attributes::LONE_BOOT));
        let is_down = evidence.cib.known().is_some_and(|cib| cib.peer_machine() == PeerNode::Down);
        let is_announced = property == Some(announced);
        Done { is_announced, is_held_off: is_announced && self.held_off && is_down }
    }

    /// Logs the reason for a plan, unless it equals the last logged one. Another count of seconds does not make a reason different.
    fn log(&mut self, because: &Reason) {
        if self.last_because.as_ref().is_some_and(|last| says_the_same(last, because)) {
            return;
        }
        match because {
            Reason::Refused { .. } => log::warn!("{because}"),
            _ => log::info!("{because}"),
        }
        self.last_because = Some(because.clone());
    }

    fn log_failure(&mut self, why: &str) {
        if self.last_failure.as_deref() != Some(why) {
            log::warn!("{why}");
            self.last_failure = Some(why.to_owned());
        }
        self.last_because = None;
    }
}

fn now() -> Duration {
    Duration::from_nanos(clock::boot_nanoseconds())
}

fn decided(evidence: &mut Evidence, facts: &LoneBoot) -> Plan {
    evidence.lone_boot = Some(Box::new(facts.clone()));
    decide::decide(Request::LoneBoot, evidence, &Progress::default()).plan
}

/// Returns whether the decision about a lone boot only needs the report of the peer's BMC.
fn asks_the_bmc(plan: &Plan) -> bool {
    let unasked = |why: &NoLoneBoot| matches!(why, NoLoneBoot::DeviceUnknown { .. });
    matches!(&plan.because, Reason::Refused { refusal: Refusal::LoneBoot { why }, .. } if unasked(why))
}

fn seen(first: Option<&FirstCorosync>, now: &FirstCorosync, etcd_ran: bool, joined: Fact<bool>) -> Fact<bool> {
    if etcd_ran || first.is_some_and(|first| first != now) { Fact::Known(true) } else { joined }
}

/// Returns whether two reasons differ at most in a count of seconds, so that the second one is not logged.
fn says_the_same(last: &Reason, because: &Reason) -> bool {
    use crate::decide::reason::LoneBootStep::Waits;
    match (last, because) {
        (Reason::LoneBoot { step: Waits { .. }, .. }, Reason::LoneBoot { step: Waits { .. }, .. }) => true,
        _ => last == because,
    }
}

/// Returns the release of the etcd that last wrote the data, from that etcd's container. The container exists even
/// while etcd is stopped. Returns `Absent` if there is no container.
fn release(context: &Context) -> Fact<Version> {
    match podman::inspect(&context.programs, &context.params.name) {
        Ok(Some(container)) => image_versions::read(&container.image).map_or_else(
            || Fact::Unknown(format!("no version is written down of the image {}", container.image)),
            Fact::Known,
        ),
        Ok(None) => Fact::Absent,
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

/// Appends a decision that had an effect to the decision log, which `tandem replay` reads.
fn record(context: &Context, look: &Look, outcome: &Result<(), Failure>) {
    let outcome = outcome.as_ref().map_or_else(|Failure(why)| why.clone(), |()| "done".to_owned());
    let entry = Entry::new(Request::LoneBoot, Progress::default(), look.evidence.clone(), look.plan.clone(), outcome);
    if let Err(error) = decision_log::append(Path::new(decision_log::DIRECTORY), &context.resource, &entry) {
        log::debug!("this decision cannot be recorded: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corosync(started: u64) -> FirstCorosync {
        FirstCorosync { boot_id: "b1".to_owned(), started }
    }

    /// Asserts that the peer counts as seen after a restart of Corosync, because the restart loses the record of the
    /// nodes that had joined.
    #[test]
    fn the_peer_counts_as_seen_where_nobody_could_know() {
        let unseen = || Fact::Known(false);
        assert_eq!(seen(None, &corosync(7), false, unseen()), unseen());
        assert_eq!(seen(Some(&corosync(7)), &corosync(7), false, unseen()), unseen());
        assert_eq!(seen(Some(&corosync(7)), &corosync(9), false, unseen()), Fact::Known(true));
        assert_eq!(seen(None, &corosync(7), true, unseen()), Fact::Known(true), "etcd ran in this boot");
        assert_eq!(seen(None, &corosync(7), false, Fact::Known(true)), Fact::Known(true));
        assert!(matches!(seen(None, &corosync(7), false, Fact::Unknown("late".to_owned())), Fact::Unknown(_)));
    }
}
