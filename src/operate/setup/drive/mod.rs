//! The first node's part: looks at both, judges, and does what is missing, one step after the other.
//!
//! Nothing is changed before both machines and both BMCs are known to be as they should be. What is done on a node alone comes
//! before anything of the cluster: where the cluster is there, so is all of that, and the other node need not be asked again.

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

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub is_dry: bool,
    /// Also what differs.
    pub changes: bool,
}

/// Whoever typed the command.
pub trait Talk {
    /// What is being done now.
    fn progress(&self, text: &str);
    /// Something that is no fault.
    fn warn(&self, text: &str);
    /// Whether the certificate with this fingerprint, of the BMC of `node`, is that BMC's own.
    fn confirm(&self, node: &str, fingerprint: &str) -> Result<bool, String>;
}

/// Why it ended: a sentence for each fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub Vec<String>);

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self(vec![why])
    }
}

/// What was found on this node before anything else.
#[derive(Debug)]
pub struct Begun {
    pub facts: Facts,
    /// The cluster is there, with this node in it.
    pub is_formed: bool,
}

/// Everything that the steps need.
#[derive(Debug)]
pub struct Drive<'a, T> {
    pub programs: &'a Programs,
    pub description: Description,
    /// Which of the two nodes this is.
    pub at: usize,
    pub here: &'a Here,
    pub wish: Wish,
    pub talk: &'a T,
    /// What OpenShift's API has told, where the cluster is made in its operator's words.
    asked: Option<Asked>,
    shown: Vec<Shown>,
}

/// Looks at this node alone.
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

    /// The same, in the words of OpenShift's operator where its API was asked.
    #[must_use]
    pub fn of_openshift(self, asked: Option<Asked>) -> Self {
        Self { asked, ..self }
    }

    /// All steps up to the one that waits for two voters. `other` is the other node, where it is asked at all.
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

    /// Does the first of `steps` that is not done, where that may be; `None` where all are done, or passed over.
    ///
    /// What was done is shown once, when it was.
    fn next<'s>(
        &mut self,
        steps: &'s [SetupStep],
        passed: &mut Vec<SetupStep>,
    ) -> Result<Option<&'s SetupStep>, Refusal> {
        shown::next(steps, passed, self.wish.changes).map_err(Refusal::from)
    }
}

/// How long a step may take to show once its commands have ended; longer on a slow machine.
const SETTLES: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_secs(1);

const ALERT_AGENT: &str = "/usr/libexec/tandem/alert";

/// The alert agent that the package has.
fn alert_agent() -> Option<&'static str> {
    Path::new(ALERT_AGENT).exists().then_some(ALERT_AGENT)
}

fn is_alert_agent(path: &str) -> bool {
    path == ALERT_AGENT
}
