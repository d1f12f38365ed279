//! The state of the cluster, and the `pcs` commands that are missing: Corosync, properties, fence devices, etcd.
//!
//! [`look`] observes and changes nothing; [`steps`] is pure. Only what the description contains is compared. Other
//! resources, properties and options of the operator stay untouched.

mod corosync;
mod etcd;
mod fencing;
mod found;
mod hosts;
mod look;
mod membership;
mod newcomer;
mod properties;
mod value;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

pub use crate::adapters::pacemaker::layout::{Cib, parse as parse_cib};
pub use corosync::{Corosync, Member, parse as parse_corosync};
pub use look::look;
pub use newcomer::device_steps;

pub(super) use etcd::{Etcd, enable, migration_threshold, node_ip_map};
pub(crate) use fencing::DELAYS;
pub(super) use fencing::{Device, running as devices_run};
pub(super) use found::{Found, pcs, refused};
pub(super) use membership::{Words, steps as membership_steps};
pub(super) use properties::steps as property_steps;
pub(super) use value::{Kind, Wanted};

use super::description::{Clone, Description};
use super::step::{SetupStep, State};
use crate::adapters::pacemaker::seen::Pacemaker;
use crate::base::Fact;

/// Smallest value of `priority-fencing-delay`. By this delay a node with a voter is fenced later than a node with a learner.
const PRIORITY_DELAY: Duration = Duration::from_secs(15);

/// The state of the cluster as this node observes it. A fact is `Absent` if the object does not exist.
#[derive(Clone, Debug, Default)]
pub struct ClusterFacts {
    /// Version of pcs, such as `0.11.5`; `Absent` if pcs is not installed.
    pub pcs: Fact<String>,
    /// The hosts to which pcs on this node has a token, each with the address of its pcsd.
    pub hosts: Fact<BTreeMap<String, IpAddr>>,
    /// Content of `/etc/corosync/corosync.conf`. It is `Absent` also if the file is only the example of Debian's
    /// package.
    pub corosync: Fact<Corosync>,
    /// Whether systemd starts each unit, Corosync's and Pacemaker's, at boot, by unit. The map is empty without systemd.
    pub enabled: BTreeMap<String, bool>,
    /// The CIB; while Pacemaker is stopped, the copy on this node's disk.
    pub cib: Fact<Cib>,
    /// Output of `crm_mon`. It is `Absent` if Pacemaker is stopped on this node.
    pub pacemaker: Fact<Pacemaker>,
    /// Names of the jobs of OpenShift's etcd operator.
    pub jobs: Fact<Vec<String>>,
}

pub(super) const CIB: &str = "Pacemaker's configuration";

/// Returns the steps from the present state of the cluster to the described one, in their order. They run on the node
/// `on`.
///
/// Each step begins after the previous ones have ended. If one part of a step is missing and another differs, the step
/// appears twice with one id: first the missing part, then the difference.
pub fn steps(description: &Description, facts: &ClusterFacts, on: &str) -> Vec<SetupStep> {
    let mut steps = membership_steps(description, &Words::of(description), facts, on);
    let cib = match configuration(facts) {
        Ok(cib) => cib,
        Err(why) => {
            steps.push(refused("cib", CIB, on, why));
            return steps;
        }
    };
    steps.extend(property_steps(&cib, &wanted_properties(description), on));
    let devices = Device::of(description);
    steps.extend(devices.iter().flat_map(|device| device.steps(&cib, on)));
    steps.push(devices_run(&devices, facts, on));
    let etcd = Etcd::of(description).steps(&cib, on);
    // A resource that setup did not make is not started.
    let may_start = !is_refused(&etcd);
    steps.extend(etcd);
    steps.extend(may_start.then(|| enable("etcd", &cib, on)));
    steps
}

/// Returns Pacemaker's configuration, which is empty if there is no CIB. Fails if the CIB is unreadable.
pub(super) fn configuration(facts: &ClusterFacts) -> Result<Cib, String> {
    match &facts.cib {
        Fact::Known(cib) => Ok(cib.clone()),
        Fact::Absent => Ok(Cib::default()),
        unknown => {
            Err(format!("the CIB cannot be read ({}): see 'pcs status', and type this again", unknown.why_unknown()))
        }
    }
}

pub(super) fn is_refused(steps: &[SetupStep]) -> bool {
    steps.iter().any(|step| matches!(step.state, State::Refused(_)))
}

fn wanted_properties(description: &Description) -> Vec<Wanted> {
    let mut wanted = vec![
        Wanted::new("stonith-enabled", "true", Kind::Truth),
        Wanted::new("start-failure-is-fatal", "false", Kind::Truth),
        // Above 80 % load Pacemaker's default limits the whole cluster to one job at a time. A blank node's start then
        // waits for its peer's start, which cannot begin before the first has failed, again and again.
        Wanted::new("load-threshold", "1000%", Kind::Text),
    ];
    if description.clone == Clone::Promotable {
        // The delay must exceed the difference between the delays of the two devices.
        let delay = (description.fencing_delay * 3 / 2).max(PRIORITY_DELAY).as_secs();
        wanted.push(Wanted::new("priority-fencing-delay", format!("{delay}s"), Kind::Time));
    }
    wanted
}
