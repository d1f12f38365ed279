//! The check that each node could be fenced now, and that it would be the right machine. Pure rules judge the cluster and the answers of
//! the BMCs. A source that could not be asked is unknown, never fine.
//!
//! Only a reset proves that a reset works. Without one, the evidence is the reset types that the BMC lists, the account's role and the
//! last test.

mod bmc;
mod cluster;
mod device;
mod primary;
mod race;
mod remediation;
mod timing;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::cluster::voters_of;
pub(super) use self::timing::longest;
use super::problems::{self, Found, stack};
use super::{Problem, Severity};
use crate::adapters::openshift::remediation::Remediation;
use crate::adapters::pacemaker::seen::{Configuration, FenceDevice};
use crate::adapters::redfish::flag::Flag;
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::cluster::Cluster;
pub use crate::operate::health::bmc::is_ours;
use crate::records::bmc_note::BmcNote;

/// The result of the check of fencing in one word, which is that of the worst problem. The variants are in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    #[default]
    Ok,
    /// Fencing works. A problem may interest the operator.
    Notice,
    /// Fencing works now. But it is slow or weak, or something must be done soon.
    Warning,
    /// It is unknown whether fencing would work.
    Unknown,
    /// At present a fencing might fail, or switch off another machine instead of the node.
    Failure,
}

impl Level {
    /// Returns the level of a check in which `problem` is the worst problem.
    pub fn of(problem: &Problem) -> Self {
        match problem.severity {
            Severity::Notice => Self::Notice,
            _ if problems::is_unasked(problem.id) => Self::Unknown,
            Severity::Warning => Self::Warning,
            Severity::Critical => Self::Failure,
        }
    }
}

/// The answer of a BMC to this node, for one fence device and one node that the device fences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    pub device: String,
    /// The node that the device fences; empty if the device names none.
    pub target: String,
    pub note: BmcNote,
    /// The role of the account with which the device logs in. `role` and `may_reset` are `None` if the BMC does not report them.
    pub role: Option<String>,
    pub may_reset: Option<bool>,
    pub locked: bool,
    /// The kind of [`Flag`] by which the fence agents of two nodes see each other on this BMC; `None` if it was not tested.
    pub flag: Option<Flag>,
    /// True if the device's options are invalid. If so, the BMC was not queried.
    pub misconfigured: bool,
}

/// The answers of BMCs and of OpenShift's API, which the observation of the cluster does not contain.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub answers: Vec<Answer>,
    /// The reason why a device's options could not be read as Pacemaker's fencer reads them, by device.
    pub unread: BTreeMap<String, String>,
    /// The names of the nodes' BareMetalHosts that are not detached; `Absent` outside of OpenShift.
    pub attached_hosts: Fact<Vec<String>>,
    /// Objects of other Kubernetes operators that reset the nodes, or may reset them; `Absent` outside of OpenShift.
    pub remediations: Fact<Vec<Remediation>>,
}

/// The summary for a node or a fence device: its worst problem, or the evidence that it is in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    pub level: Level,
    pub text: String,
}

/// The result of the check of fencing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Checked {
    pub level: Level,
    pub nodes: BTreeMap<String, Standing>,
    pub devices: BTreeMap<String, Standing>,
    /// The kind of flag by which agents of two nodes see each other on a BMC, by fence device. Devices without a test are missing.
    pub flags: BTreeMap<String, String>,
    /// A sentence about the node that is fenced later in a split, by that node's name. It contains the delay that decides the split, and
    /// the shortest safe delay.
    pub delays: BTreeMap<String, String>,
    /// All problems, sorted with the worst first.
    pub findings: Vec<Problem>,
}

/// A check of fencing in progress: what the rules need, and the problems so far.
struct Case<'a> {
    cluster: &'a Cluster,
    configuration: &'a Configuration,
    asked: &'a Asked,
    /// The device that the operator named, or all devices.
    devices: Vec<&'a FenceDevice>,
    found: Found,
}

impl<'a> Case<'a> {
    /// Returns the first device that fences `node`.
    fn device_of(&self, node: &str) -> Option<&'a FenceDevice> {
        self.devices.iter().copied().find(|device| device.targets.iter().any(|target| target == node))
    }

    fn add(&mut self, id: &'static str, severity: Severity, about: About<'_>, text: String, command: Option<String>) {
        let (node, device) = match about {
            About::Cluster => (None, None),
            About::Node(node) => (Some(node), None),
            About::Device(device) => (None, Some(device)),
            About::Both(device, node) => (Some(node).filter(|node| !node.is_empty()), Some(device)),
        };
        let problem = Problem::new(id, severity, node, text);
        self.put(Problem { device: device.map(str::to_owned), command, ..problem });
    }

    fn put(&mut self, problem: Problem) {
        if !self.found.problems.contains(&problem) {
            self.found.add(problem);
        }
    }

    /// Adds the problems that `find` finds. They are problems that `tandem status` reports as well. If a problem's command is this check,
    /// replaces it by another command, because the operator has just typed this check.
    fn take(&mut self, find: impl FnOnce(&mut Found)) {
        let mut found = Found::default();
        find(&mut found);
        for problem in found.problems {
            let command = instead(&problem).or_else(|| problem.command.clone());
            self.put(Problem { command, ..problem });
        }
    }

    /// Returns the cluster's nodes except `node`.
    fn others(&self, node: &'a str) -> impl Iterator<Item = &'a String> + use<'a> {
        self.configuration.nodes.iter().filter(move |other| *other != node)
    }
}

/// Returns the command to type after the check of `problem`; `None` if the problem does not send the operator to this check.
fn instead(problem: &Problem) -> Option<String> {
    problem.command.as_deref().filter(|command| command.starts_with("tandem fencing check"))?;
    match (&problem.device, &problem.node) {
        (Some(device), _) => Some(command!("pcs stonith cleanup {}", device)),
        (None, node) => Some(command!("pcs stonith history show {}", node.as_deref()?)),
    }
}

/// The subject of a problem: the whole cluster, a node, a fence device, or a device for one node.
#[derive(Clone, Copy)]
enum About<'a> {
    Cluster,
    Node(&'a str),
    Device(&'a str),
    Both(&'a str, &'a str),
}

/// Checks fencing of the whole cluster, or only the device with the id `device`.
pub fn check(cluster: &Cluster, asked: &Asked, device: Option<&str>) -> Checked {
    let Some(configuration) = cluster.configuration.known() else {
        let mut found = Found::default();
        stack::find_of_fencing(cluster, &mut found);
        return only(found.problems);
    };
    let devices: Vec<_> = configuration
        .fence_devices
        .iter()
        .filter(|one| device.is_none_or(|wanted| one.resource.id == wanted))
        .collect();
    let mut case = Case { cluster, configuration, asked, devices, found: Found::default() };
    if device.is_none() {
        cluster::check(&mut case);
        remediation::check(&mut case);
    }
    device::check(&mut case);
    bmc::check(&mut case);
    timing::check(&mut case, device.is_none());
    if device.is_none() {
        primary::check(&mut case);
    }
    let delays = if device.is_none() { timing::preference(&case) } else { None };
    Checked { delays: delays.into_iter().collect(), ..conclude(case) }
}

/// Returns the result of a check of a machine that belongs to no cluster. `why` is the reason, and `command` is the command to type.
pub fn unknown(why: String, command: &str) -> Checked {
    only(vec![Problem { command: Some(command.to_owned()), ..Problem::nothing_known(why) }])
}

/// Returns the result of a check that found `problems`, without a summary for any node or device.
fn only(mut problems: Vec<Problem>) -> Checked {
    problems.sort_by_key(|problem| Reverse(Level::of(problem)));
    let level = problems.first().map(Level::of).unwrap_or_default();
    Checked { level, findings: problems, ..Checked::default() }
}

fn conclude(case: Case<'_>) -> Checked {
    let Case { configuration, asked, devices, found, .. } = case;
    let mut checked = only(found.problems);
    let worst = |is_its: &dyn Fn(&Problem) -> bool| checked.findings.iter().find(|problem| is_its(problem));
    let standing = |found: Option<&Problem>, good: String| match found {
        Some(found) => Standing { level: Level::of(found), text: found.text.clone() },
        None => Standing { level: Level::Ok, text: good },
    };
    let mut of_devices = BTreeMap::new();
    let mut of_nodes = BTreeMap::new();
    for device in &devices {
        let id = &device.resource.id;
        let answered = asked.answers.iter().find(|answer| answer.device == *id);
        let found = worst(&|problem| problem.device.as_ref() == Some(id));
        of_devices.insert(id.clone(), standing(found, answered.map(good).unwrap_or_default()));
    }
    let is_whole = devices.len() == configuration.fence_devices.len();
    for node in
        configuration.nodes.iter().filter(|node| is_whole || devices.iter().any(|one| one.targets.contains(node)))
    {
        let by: Vec<&str> = devices
            .iter()
            .filter(|device| device.targets.contains(node))
            .map(|device| device.resource.id.as_str())
            .collect();
        // A device that may fence none of its nodes is a problem of each.
        let is_its_devices = |problem: &Problem| {
            let device = problem.device.as_deref().filter(|_| problem.node.is_none());
            Level::of(problem) == Level::Failure && device.is_some_and(|device| by.contains(&device))
        };
        let found = worst(&|problem| problem.node.as_ref() == Some(node) || is_its_devices(problem));
        of_nodes.insert(node.clone(), standing(found, format!("can be fenced by {}", by.join(" and "))));
    }
    let flags =
        asked.answers.iter().filter_map(|answer| Some((answer.device.clone(), answer.flag.as_ref()?.to_string())));
    checked.flags = flags.filter(|(id, _)| of_devices.contains_key(id)).collect();
    (checked.devices, checked.nodes) = (of_devices, of_nodes);
    checked
}

/// Describes the answer of a BMC without a fault, in words.
fn good(answer: &Answer) -> String {
    let BmcNote { address, millis, millis_to_off, power, chassis_on, .. } = &answer.note;
    let off = millis_to_off.map(|to_off| format!("; {} s to Off when it was last measured", seconds(to_off)));
    let power = power.as_deref().unwrap_or("nothing of its power");
    let but = chassis_on.as_ref().map(|chassis| format!(", but its chassis {chassis} says On")).unwrap_or_default();
    format!("{address} answered in {millis} ms and says {power}{but}{}", off.unwrap_or_default())
}

/// Formats milliseconds as seconds with one decimal place.
fn seconds(millis: u64) -> String {
    format!("{}.{}", millis / 1_000, millis % 1_000 / 100)
}

#[cfg(test)]
pub(crate) mod tests;
