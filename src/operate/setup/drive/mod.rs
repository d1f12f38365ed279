//! Drives a setup from the first node: observes both nodes, judges them, and performs the missing steps one by one.
//!
//! Nothing is changed before both machines and both BMCs have passed all checks. The steps on a single node come before
//! those of the cluster. So an existing cluster implies that they are done, and the other node need not be asked again.

mod alone;
mod clusters;
mod locals;
mod machines;
mod newcomer;
mod relay;
mod shown;

use std::path::Path;
use std::time::Duration;

use super::description::Description;
use super::machine::{Here, Machine};
use super::node::{Cib, Corosync, Facts, judge};
use super::openshift::Asked;
use super::step::SetupStep;
use crate::adapters::command::Programs;
use crate::adapters::corosync::quorum;
use crate::adapters::pace::limits::Limits;

pub use self::alone::{Alone, alone};
pub use self::clusters::CLUSTER_PATIENCE;
pub use self::machines::{faults_here, password_of};
pub use self::relay::Relay;
pub use self::shown::{Shown, Standing};

/// The options of a setup run.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub is_dry: bool,
    /// True if `--change` was typed, so that objects that differ from the description are changed.
    pub changes: bool,
}

/// The messages and questions of a setup for the operator.
pub trait Talk {
    /// Shows what the setup does now.
    fn progress(&self, text: &str);
    /// Shows a warning, which does not end the setup.
    fn warn(&self, text: &str);
    /// Asks the operator whether the certificate with this SHA-256 fingerprint belongs to the BMC of `node`. Returns
    /// the answer.
    fn confirm(&self, node: &str, fingerprint: &str) -> Result<bool, String>;
}

/// The reasons why a setup run ended: a sentence for each fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub Vec<String>);

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self(vec![why])
    }
}

/// The result of the first observation of this node in a setup run.
#[derive(Debug)]
pub struct Begun {
    pub facts: Facts,
    /// True if the described cluster exists, and has resources or both nodes.
    pub is_formed: bool,
}

/// A running setup on the node that drives it: the description, the options and the report.
#[derive(Debug)]
pub struct Drive<'a, T> {
    pub programs: &'a Programs,
    pub description: Description,
    /// Index of this node in the description's nodes.
    pub at: usize,
    pub here: &'a Here,
    pub wish: Wish,
    pub talk: &'a T,
    /// The answer of OpenShift's API, if the setup follows OpenShift's operator; `None` otherwise.
    asked: Option<Asked>,
    shown: Vec<Shown>,
}

/// Makes the first observation of a setup run, on this node only.
pub fn begin(programs: &Programs, description: &Description, here: &Here) -> Result<Begun, Refusal> {
    let facts = here.look()?;
    let is_ours = facts.corosync == Corosync::Cluster(description.cluster.clone());
    let has_resources = matches!(facts.cib, Cib::Known { resources: 1.., .. });
    let has_both = || {
        let quorum = quorum::ask(programs, &Limits::default());
        quorum.known().is_some_and(|quorum| quorum.members.len() == description.nodes.len())
    };
    let is_formed = is_ours && (has_resources || has_both());
    Ok(Begun { facts, is_formed })
}

impl<'a, T: Talk> Drive<'a, T> {
    pub fn new(
        programs: &'a Programs,
        description: Description,
        at: usize,
        here: &'a Here,
        wish: Wish,
        talk: &'a T,
    ) -> Self {
        Self { programs, description, at, here, wish, talk, asked: None, shown: Vec::new() }
    }

    /// Lets the setup follow the names and options of OpenShift's operator, if its API was asked.
    #[must_use]
    pub fn of_openshift(self, asked: Option<Asked>) -> Self {
        Self { asked, ..self }
    }

    /// Performs all steps of the setup except the last, which waits for two voters. `other` is the other node, or
    /// `None` if it is not asked. Returns the report, also with an error.
    pub fn run(mut self, begun: &Begun, other: Option<&dyn Machine>) -> Result<Vec<Shown>, (Refusal, Vec<Shown>)> {
        match self.all(begun, other) {
            Ok(()) => Ok(self.shown),
            Err(refusal) => Err((refusal, self.shown)),
        }
    }

    fn all(&mut self, begun: &Begun, other: Option<&dyn Machine>) -> Result<(), Refusal> {
        if begun.is_formed {
            let judged = judge::one(&self.description, self.at, &begun.facts, true);
            judged.warnings.iter().for_each(|warning| self.talk.warn(warning));
            if !judged.faults.is_empty() {
                return Err(Refusal(judged.faults));
            }
            let known = self.complete_from_the_cib();
            self.bmcs_of_a_member(&begun.facts, known)?;
            self.locals_of_a_member(&begun.facts)?;
        } else {
            let found = self.machines(&begun.facts, other)?;
            self.locals(&found, other)?;
        }
        self.clusters()?;
        self.alerts()?;
        self.forget_token()
    }

    fn name(&self) -> &str {
        &self.description.nodes[self.at].name
    }

    /// Returns the first of `steps` that must be performed now; `None` if all are done or skipped. A step that differs
    /// and must not be changed is added to `passed`.
    fn next<'s>(
        &mut self,
        steps: &'s [SetupStep],
        passed: &mut Vec<SetupStep>,
    ) -> Result<Option<&'s SetupStep>, Refusal> {
        shown::next(steps, passed, self.wish.changes).map_err(Refusal::from)
    }
}

/// Shortest time limit for the effect of a step's commands to show. The limit is longer on a slow machine.
const SETTLES: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_secs(1);

const ALERT_AGENT: &str = "/usr/libexec/tandem/alert";

/// Returns the path of Tandem's alert agent; `None` if the package did not install it.
fn alert_agent() -> Option<&'static str> {
    Path::new(ALERT_AGENT).exists().then_some(ALERT_AGENT)
}

fn is_alert_agent(path: &str) -> bool {
    path == ALERT_AGENT
}
