//! Performs the steps of the cluster from this node with pcs, then adds the alert agent.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Drive, LOOK_AGAIN, Refusal, SETTLES, Shown, Talk, alert_agent, is_alert_agent};
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::alerts;
use crate::adapters::pacemaker::seen::Configuration;
use crate::operate::cluster;
use crate::operate::setup::action::Action;
use crate::operate::setup::machine::{Machine as _, Request};
use crate::operate::setup::step::{SetupStep, State};
use crate::operate::setup::{TOKEN, cluster as steps, openshift};
use crate::os::clock::Deadline;

/// Longest time for all cluster steps of one setup together.
pub const CLUSTER_PATIENCE: Duration = Duration::from_secs(1_800);
/// Longest time for one observation of the cluster.
const LOOK: Duration = Duration::from_secs(240);
/// Number of observations that must fit into the time until a step's effect shows. Each observation runs pcs once and
/// queries Pacemaker twice.
const LOOKS: u32 = 60;
/// Options that setup reads from a BMC itself and adds to the BMC's fence device.
const FOUND_OUT: [&str; 2] = ["system_uuid", "ssl_fingerprint"];
const ALERT: &str = "tandem";

impl<T: Talk> Drive<'_, T> {
    fn cluster_steps(&self) -> Vec<SetupStep> {
        let end = Deadline::after(LOOK);
        match &self.asked {
            None => steps::steps(&self.description, &steps::look(self.programs, end), self.name()),
            Some(asked) => {
                openshift::steps(&self.description, &openshift::look(self.programs, asked, end), self.name())
            }
        }
    }

    /// Performs the cluster steps one by one. After each step, observes the cluster until the step's effect shows.
    pub(super) fn clusters(&mut self) -> Result<(), Refusal> {
        let end = Deadline::after(CLUSTER_PATIENCE);
        let (mut passed, mut made): (Vec<SetupStep>, Vec<String>) = (Vec::new(), Vec::new());
        let mut settles: Option<(SetupStep, Deadline)> = None;
        let mut overtaken: Vec<String> = Vec::new();
        let mut slowest = Duration::ZERO;
        loop {
            let began = Instant::now();
            let found = self.cluster_steps();
            slowest = slowest.max(began.elapsed());
            if self.wish.is_dry {
                self.shown.extend(found.iter().map(Shown::of));
                return Ok(());
            }
            let Some(step) = self.next(&found, &mut passed)? else {
                let is_new =
                    |step: &&SetupStep| !made.contains(&step.id) || matches!(step.state, State::Differs { .. });
                self.shown.extend(found.iter().filter(is_new).map(Shown::of));
                return Ok(());
            };
            if end.has_passed() {
                return Err(Refusal::from(format!(
                    "{} is not as wanted within {} minutes: 'pcs status' says how the cluster is; then type 'tandem setup' again",
                    step.title,
                    CLUSTER_PATIENCE.as_secs() / 60
                )));
            }
            let is_settling = settles.as_ref().is_some_and(|(last, _)| last.id == step.id && last.state == step.state);
            if let Some((_, until)) = settles.as_ref().filter(|_| is_settling) {
                if until.has_passed() {
                    return Err(Refusal::from(format!(
                        "{} is not as wanted after its commands: 'pcs status' and 'tandem status' say how the cluster is; then type 'tandem setup' again",
                        step.title
                    )));
                }
                until.sleep(LOOK_AGAIN);
                continue;
            }
            if let Err(refusal) = self.carry_out(self.here, step) {
                if overtaken.contains(&step.id) || !is_overtaken(step, &self.cluster_steps()) {
                    return Err(refusal);
                }
                overtaken.push(step.id.clone());
                continue;
            }
            made.push(step.id.clone());
            self.shown.push(Shown::made(step));
            settles = Some((step.clone(), Deadline::after(settles_within(slowest))));
        }
    }

    fn configuration(&self) -> Option<Configuration> {
        let found = cluster::look(self.programs, None, &Limits::patient());
        found.configuration.known().cloned()
    }

    /// Adds to the description the BMC options that an earlier run found and stored in the CIB's fence devices. Returns
    /// for each node whether it has a device.
    pub(super) fn complete_from_the_cib(&mut self) -> [bool; 2] {
        let mut known = [false; 2];
        let Some(configuration) = self.configuration() else { return known };
        for (at, node) in self.description.nodes.iter_mut().enumerate() {
            let devices = &configuration.fence_devices;
            let Some(device) = devices.iter().find(|device| device.targets.contains(&node.name)) else { continue };
            known[at] = true;
            for name in FOUND_OUT {
                let is_described = node.bmc.options.iter().any(|(known, _)| known == name);
                if let Some(value) = device.resource.parameters.get(name).filter(|_| !is_described) {
                    node.bmc.options.push((name.to_owned(), value.clone()));
                }
            }
        }
        known
    }

    /// Adds Tandem's alert agent to Pacemaker if the package installed it. On OpenShift the operator adds its own.
    pub(super) fn alerts(&mut self) -> Result<(), Refusal> {
        let Some(path) = alert_agent().filter(|_| self.asked.is_none()) else { return Ok(()) };
        let typed = |words: &str| Action::Command(words.split(' ').map(str::to_owned).collect());
        let there = alerts::recipients(self.programs, is_alert_agent);
        let mut missing = Vec::new();
        match &there {
            Ok(Some(recipients)) if !recipients.is_empty() => {}
            // An earlier run was killed between the two commands.
            Ok(Some(_)) => missing.push(typed(&format!("pcs alert recipient add {ALERT} value=journal"))),
            Err(error) if !self.wish.is_dry => {
                return Err(Refusal::from(format!(
                    "whether the alert agent is there is not known ({error}): see 'pcs status', and type this again"
                )));
            }
            Ok(None) | Err(_) => {
                missing.push(typed(&format!("pcs alert create id={ALERT} path={path}")));
                missing.push(typed(&format!("pcs alert recipient add {ALERT} value=journal")));
            }
        }
        let state = if missing.is_empty() { State::Done } else { State::ToDo(missing) };
        self.last(&SetupStep {
            id: "alerts".to_owned(),
            title: "the alert agent".to_owned(),
            on: self.name().to_owned(),
            state,
        })
    }

    /// Deletes the file with pcsd's token, because the two pcsds have tokens of their own now.
    pub(super) fn forget_token(&mut self) -> Result<(), Refusal> {
        if !Path::new(TOKEN).exists() {
            return Ok(());
        }
        let words = ["rm", "-f", TOKEN].map(str::to_owned).to_vec();
        self.last(&SetupStep {
            id: "token".to_owned(),
            title: "the token is forgotten".to_owned(),
            on: self.name().to_owned(),
            state: State::ToDo(vec![Action::Command(words)]),
        })
    }

    /// Performs the step if it is still to be done and this is no dry run. Adds it to the report.
    fn last(&mut self, step: &SetupStep) -> Result<(), Refusal> {
        let is_made = step.state != State::Done && !self.wish.is_dry;
        if is_made {
            if let State::ToDo(actions) = &step.state {
                self.talk.progress(&step.title);
                for action in actions {
                    let done = self.here.done(Request::Apply(action.clone()));
                    done.map_err(|why| Refusal::from(format!("{}: {why}: type 'tandem setup' again", step.title)))?;
                }
            }
            self.shown.push(Shown::made(step));
        } else {
            self.shown.push(Shown::of(step));
        }
        Ok(())
    }
}

/// Returns how long a step's effect may take to show. The time grows with the slowest observation, because an emulated
/// machine is many times slower.
fn settles_within(slowest_look: Duration) -> Duration {
    SETTLES.max(slowest_look * LOOKS)
}

/// Returns whether a failed step has since been done, changed or dropped, as the new steps `again` show. The effect of
/// an earlier run can appear late: a node that was off gets its peer's CIB only after it has joined.
fn is_overtaken(step: &SetupStep, again: &[SetupStep]) -> bool {
    !again.iter().any(|one| one.id == step.id && one.state == step.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_machine_is_given_longer_and_a_quick_one_not() {
        assert_eq!(settles_within(Duration::from_millis(800)), SETTLES);
        assert_eq!(settles_within(Duration::from_secs(12)), Duration::from_secs(720));
    }

    #[test]
    fn a_step_that_failed_is_over_only_where_a_new_look_says_so() {
        let step = |words: &[&str]| SetupStep {
            id: "fence-node1".to_owned(),
            title: String::new(),
            on: "node1".to_owned(),
            state: State::ToDo(vec![Action::Command(words.iter().map(|word| (*word).to_owned()).collect())]),
        };
        let create = step(&["pcs", "stonith", "create", "fence-node1"]);
        let other = SetupStep { id: "fence-node2".to_owned(), ..create.clone() };
        assert!(!is_overtaken(&create, &[other.clone(), create.clone()]), "it is to do as before");
        assert!(is_overtaken(&create, &[other.clone(), SetupStep { state: State::Done, ..create.clone() }]));
        assert!(is_overtaken(&create, &[step(&["pcs", "constraint", "location", "fence-node1", "avoids", "node1"])]));
        assert!(is_overtaken(&create, &[other]), "it is not asked for any more");
    }
}
