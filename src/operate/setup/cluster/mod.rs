//! What there is of the cluster, and which `pcs` commands are missing: Corosync, properties, fence devices, etcd.
//!
//! [`look`] asks and changes nothing, [`steps`] is pure. What an operator added (other resources, other properties, further
//! options) is left alone: only what the description says is compared.

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

/// How long the fencing of a voter waits at least where the other node has a learner.
const PRIORITY_DELAY: Duration = Duration::from_secs(15);

/// What a look from this node tells of the cluster. `Absent` was looked for, and is not there.
#[derive(Clone, Debug, Default)]
pub struct ClusterFacts {
    /// The version of pcs, such as `0.11.5`.
    pub pcs: Fact<String>,
    /// The hosts to which pcs on this node has a token, and where their pcsd is.
    pub hosts: Fact<BTreeMap<String, IpAddr>>,
    /// `/etc/corosync/corosync.conf`; `Absent` also where it is only the example that Debian's package brings.
    pub corosync: Fact<Corosync>,
    /// Whether systemd starts Corosync and Pacemaker at boot; empty where there is no systemd.
    pub enabled: BTreeMap<String, bool>,
    /// The CIB; where Pacemaker is stopped, the one on this node's disk.
    pub cib: Fact<Cib>,
    /// What crm_mon shows; `Absent` where Pacemaker is stopped on this node.
    pub pacemaker: Fact<Pacemaker>,
    /// The etcd operator's own jobs, on OpenShift.
    pub jobs: Fact<Vec<String>>,
}

/// The title of a step.
pub(super) const CIB: &str = "Pacemaker's configuration";

/// The steps from what there is to what is described, in their order; `on` is the node on which they are typed.
///
/// Each begins where those before it have ended. A step of which one part is missing and another one differs is there twice, with one
/// id: first what is to do, then what differs.
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
    // What somebody else made is not started either.
    let may_start = !is_refused(&etcd);
    steps.extend(etcd);
    steps.extend(may_start.then(|| enable("etcd", &cib, on)));
    steps
}

/// What there is in Pacemaker's configuration; nothing where there is none.
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
        // Above Pacemaker's own 80 % of the processors it does one thing at a time, in the whole cluster: a blank node's start then waits
        // for its peer's, which does not begin before the first has failed, again and again.
        Wanted::new("load-threshold", "1000%", Kind::Text),
    ];
    if description.clone == Clone::Promotable {
        // It has to outweigh the difference of the devices' own delays.
        let delay = (description.fencing_delay * 3 / 2).max(PRIORITY_DELAY).as_secs();
        wanted.push(Wanted::new("priority-fencing-delay", format!("{delay}s"), Kind::Time));
    }
    wanted
}
