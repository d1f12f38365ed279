//! Performs the steps on each node before there is a cluster: on this node first, then on the other one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use super::machines::Machines;
use super::{Drive, LOOK_AGAIN, Refusal, Shown, Talk};
use crate::operate::certs::pki::{self, Authority};
use crate::operate::setup::TOKEN;
use crate::operate::setup::action::Action;
use crate::operate::setup::certificates::{self, Kept};
use crate::operate::setup::description::Certificates;
use crate::operate::setup::found_file::Files;
use crate::operate::setup::local::{self, Found, Question, Secret, Wanted};
use crate::operate::setup::machine::{Machine, Request};
use crate::operate::setup::node::ports::{self, Port};
use crate::operate::setup::node::{Corosync, Facts};
use crate::operate::setup::step::{SetupStep, State};
use crate::os::clock::{self, Deadline};
use crate::os::wiped;

/// Largest size of a key or certificate file, in bytes.
const FILE: u64 = 1024 * 1024;
const TOKEN_BYTES: usize = 32;
const PCSD_STARTS: Duration = Duration::from_secs(180);

impl<T: Talk> Drive<'_, T> {
    /// Performs the steps on each node that precede the cluster. The other node is left out if it was not asked.
    pub(super) fn locals(&mut self, machines: &Machines, other: Option<&dyn Machine>) -> Result<(), Refusal> {
        let token = token()?;
        let question = local::question(&self.description, Some(&token));
        let there = other.map(|other| Ok::<_, String>((other, other.find(&question)?))).transpose()?;
        let authority = self.authority(there.as_ref().map(|(other, found)| (other.name(), found)))?;
        let is_ours = |at: usize| {
            let facts = machines.facts[at].as_ref();
            facts.is_some_and(|facts| facts.corosync == Corosync::Cluster(self.description.cluster.clone()))
        };
        let half_made = [0, 1].map(|at| is_ours(at) && other.is_some() && !is_ours(1 - at));
        let mut order: Vec<(usize, Option<&dyn Machine>)> = vec![(self.at, Some(self.here as &dyn Machine))];
        order.push((1 - self.at, other));
        for (at, machine) in order {
            let node = Local {
                at,
                passwords: machines.passwords.clone(),
                token: Some(token.clone()),
                keeps_token: at == self.at,
                is_half_made: half_made[at],
            };
            match (machine, &machines.facts[at]) {
                (Some(machine), Some(facts)) => {
                    let passed = self.node(&node, machine, facts, &question, authority.as_ref())?;
                    // A cluster must not be made while something differs.
                    if let Some(step) = passed.first() {
                        return Err(Refusal::from(differs(step)));
                    }
                }
                _ => self.not_asked(at),
            }
        }
        if self.wish.is_dry || other.is_none() { Ok(()) } else { self.await_pcsd() }
    }

    /// Waits until pcsd answers on both nodes. pcs itself does not wait for a pcsd that is starting.
    pub(super) fn await_pcsd(&self) -> Result<(), Refusal> {
        self.talk.progress("waits for pcsd on both nodes");
        let end = Deadline::after(PCSD_STARTS);
        for node in &self.description.nodes {
            while !ports::closed(node.address, &[Port::Pcsd], &[Port::Pcsd]).is_empty() {
                if end.has_passed() {
                    return Err(Refusal::from(format!(
                        "pcsd on {} does not answer at {}, port 2224: 'systemctl status pcsd' there",
                        node.name, node.address
                    )));
                }
                end.sleep(LOOK_AGAIN);
            }
        }
        Ok(())
    }

    /// Performs the node steps on this node, which is already in the cluster.
    pub(super) fn locals_of_a_member(&mut self, facts: &Facts) -> Result<(), Refusal> {
        let question = local::question(&self.description, None);
        let authority = match (&self.description.certificates, kept()) {
            (Certificates::Own, Kept::Nothing) => {
                return Err(Refusal::from(format!(
                    "{}: {} is gone, and the cluster continues with what etcd has of it: copy the directory from the other node",
                    self.name(),
                    pki::DIR
                )));
            }
            _ => self.authority(None)?,
        };
        let passwords = [0, 1].map(|at| self.password_here(at));
        let [Some(first), Some(second)] = passwords else {
            return Err(Refusal::from(format!(
                "{}: a password file of the BMCs is gone: write the password into it, and 'chmod 600' the file",
                self.name()
            )));
        };
        let node =
            Local { at: self.at, passwords: [first, second], token: None, keeps_token: false, is_half_made: false };
        let here = self.here;
        self.node(&node, here, facts, &question, authority.as_ref()).map(drop)
    }

    fn password_here(&self, at: usize) -> Option<Secret> {
        if let Some(asked) = &self.asked {
            return Some(asked.passwords[at].clone());
        }
        let bytes = wiped::read_at_most(&self.description.nodes[at].bmc.password_file, FILE).ok()?;
        Some(Secret(Zeroizing::new(std::str::from_utf8(&bytes).ok()?.to_owned())))
    }

    /// Performs the steps of one node, and observes the node again after each. Returns the steps that it left out although their
    /// result is not as described.
    pub(super) fn node(
        &mut self,
        node: &Local,
        machine: &dyn Machine,
        facts: &Facts,
        question: &Question,
        authority: Option<&Authority>,
    ) -> Result<Vec<SetupStep>, Refusal> {
        let mut passed: Vec<SetupStep> = Vec::new();
        let mut made: Vec<String> = Vec::new();
        let mut facts = facts.clone();
        loop {
            let found = machine.find(question)?;
            if let Some(why) = found.failures.first() {
                return Err(unseen(machine.name(), why));
            }
            let steps = self.steps_of(node, &facts, &found, authority)?;
            if self.wish.is_dry {
                self.shown.extend(steps.iter().map(Shown::of));
                return Ok(passed);
            }
            let Some(step) = self.next(&steps, &mut passed)? else {
                let is_made = |step: &&SetupStep| !made.contains(&step.id);
                self.shown.extend(steps.iter().filter(is_made).map(Shown::of));
                return Ok(passed);
            };
            if made.contains(&step.id) {
                return Err(Refusal::from(format!(
                    "{} is not as wanted after its commands: 'tandem setup --dry-run' shows what is left of it",
                    step.title
                )));
            }
            self.carry_out(machine, step)?;
            made.push(step.id.clone());
            self.shown.push(Shown::made(step));
            if step.id.starts_with("blank-") {
                facts = machine.look()?;
            }
        }
    }

    /// Runs the actions of a step on `machine`. An error has the step's title.
    pub(super) fn carry_out(&self, machine: &dyn Machine, step: &SetupStep) -> Result<(), Refusal> {
        self.talk.progress(&step.title);
        let actions: &[Action] = match &step.state {
            State::ToDo(actions) | State::Differs { actions, .. } => actions,
            State::Done | State::Refused(_) => &[],
        };
        for action in actions {
            let done = machine.done(Request::Apply(action.clone()));
            done.map_err(|why| {
                Refusal::from(format!("{}: {why}: put that right, and type 'tandem setup' again", step.title))
            })?;
        }
        Ok(())
    }

    fn steps_of(
        &self,
        node: &Local,
        facts: &Facts,
        found: &Found,
        authority: Option<&Authority>,
    ) -> Result<Vec<SetupStep>, Refusal> {
        let wanted = Wanted {
            description: &self.description,
            at: node.at,
            certificates: self.certificates(node.at, &found.files, authority)?,
            passwords: node.passwords.clone(),
            token: node.token.clone(),
            keeps_token: node.keeps_token,
            is_half_made: node.is_half_made,
        };
        Ok(local::steps(&wanted, facts, found))
    }

    fn certificates(&self, at: usize, files: &Files, authority: Option<&Authority>) -> Result<State, Refusal> {
        let (node, now) = (&self.description.nodes[at], clock::wall_seconds());
        match (&self.description.certificates, authority) {
            (Certificates::Given { ca, cert, key }, _) => Ok(certificates::given(node, [ca, cert, key], files, now)),
            (Certificates::Own, Some(authority)) => Ok(certificates::ours(authority, node, files, now)?),
            (Certificates::Own, None) | (Certificates::OfThePod, _) => Ok(State::Done),
        }
    }

    /// Adds a step to the report for everything that the other node may lack, because that node was not asked.
    fn not_asked(&mut self, at: usize) {
        let name = &self.description.nodes[at].name;
        self.shown.push(Shown {
            id: format!("node-{name}"),
            title: if self.asked.is_some() {
                format!("passwords, units and pcsd on {name}")
            } else {
                format!("certificates, passwords, image, units and pcsd on {name}")
            },
            on: name.clone(),
            state: super::Standing::ToDo,
            commands: vec!["tandem setup join FILE".to_owned()],
            differences: Vec::new(),
            why: Some(format!("{name} was not looked at: --ssh {name} does it")),
        });
    }

    /// Returns this node's CA, or a new one if neither node has one. Returns `None` if etcd's certificates are not of
    /// Tandem's own CA.
    pub(super) fn authority(&self, other: Option<(&str, &Found)>) -> Result<Option<Authority>, Refusal> {
        if self.description.certificates != Certificates::Own {
            return Ok(None);
        }
        let path = Path::new(pki::DIR).join(pki::CA_CERT);
        let other = other.map(|(name, found)| {
            (name, found.files.get(&path).map(|file| file.certificates.as_deref().unwrap_or_default()))
        });
        let now = clock::wall_seconds();
        let made = certificates::authority(&self.description.cluster, &kept(), self.name(), other, now)?;
        Ok(Some(made))
    }
}

/// Returns the error for a node on which something could not be read.
pub(super) fn unseen(node: &str, why: &str) -> Refusal {
    Refusal::from(format!("{node}: {why}: put that right, and type this again"))
}

pub(super) fn kept() -> Kept {
    let read = |name: &str| -> Option<Zeroizing<String>> {
        let bytes = wiped::read_at_most(&Path::new(pki::DIR).join(name), FILE).ok()?;
        Some(Zeroizing::new(std::str::from_utf8(&bytes).ok()?.to_owned()))
    };
    match (read(pki::CA_CERT), read(pki::CA_KEY)) {
        (Some(certificate), Some(key)) => Kept::Whole { certificate: certificate.to_string(), key },
        // The key is written first, so an interrupted run has issued nothing yet that is trusted.
        (None, _) => Kept::Nothing,
        (Some(_), None) => Kept::Half,
    }
}

/// Returns pcsd's token from the file of an interrupted run, or draws a new one.
pub(super) fn token() -> Result<Secret, Refusal> {
    if let Ok(bytes) = wiped::read_at_most(&PathBuf::from(TOKEN), FILE)
        && let Ok(text) = std::str::from_utf8(&bytes)
        && text.len() >= TOKEN_BYTES
    {
        return Ok(Secret(Zeroizing::new(text.to_owned())));
    }
    let mut bytes = Zeroizing::new([0_u8; TOKEN_BYTES]);
    SystemRandom::new()
        .fill(&mut *bytes)
        .map_err(|_| Refusal::from("the kernel gives no random numbers: type this again".to_owned()))?;
    Ok(Secret(Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes))))
}

pub(super) fn differs(step: &SetupStep) -> String {
    let what = match &step.state {
        State::Differs { differences, .. } => differences
            .iter()
            .map(|one| format!("{} is {}, not {}", one.what, one.there, one.described))
            .collect::<Vec<_>>()
            .join("; "),
        _ => step.title.clone(),
    };
    format!("{what}: 'tandem setup --change' changes it, or move it away there")
}

/// The wanted state of one node, without its certificates. [`Wanted`] explains the fields.
pub(super) struct Local {
    pub(super) at: usize,
    pub(super) passwords: [Secret; 2],
    pub(super) token: Option<Secret>,
    pub(super) keeps_token: bool,
    pub(super) is_half_made: bool,
}
