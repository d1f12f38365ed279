//! Sets up Two Node OpenShift with Fencing where its etcd operator does not, with that operator's names, options and
//! order.

use std::path::{Path, PathBuf};

use super::cluster::{
    self, Cib, ClusterFacts, Device, Etcd, Found, Kind, Wanted, Words, configuration, devices_run, enable, is_refused,
    membership_steps, pcs, property_steps, refused,
};
use super::description::{Certificates, Clone, Description};
use super::local::Secret;
use super::step::SetupStep;
use crate::adapters::command::Programs;
use crate::adapters::openshift::{machine, tnf};
use crate::base::Fact;
use crate::os::clock::Deadline;

/// Name of the cluster on OpenShift, whatever the description contains, because OpenShift's operator expects it.
pub const CLUSTER: &str = "TNF";
const ETCD_AGENT: &str = "ocf:heartbeat:podman-etcd";
const FENCE_AGENT: &str = "fence_redfish";
const KUBELET: &str = "kubelet";
const KUBELET_AGENT: &str = "systemd:kubelet";
/// Options of the start operation of kubelet's resource, with their values in milliseconds.
const START: [(&str, &str, u64); 2] = [("timeout", "180s", 180_000), ("start-delay", "15s", 15_000)];

const TITLES: [&str; 3] =
    ["the etcd operator's own set-up", "kubelet's resource", "etcd runs where kubelet runs, and after it"];

/// A kubeconfig for OpenShift's API, and the BMC passwords that `tandem setup` read from that API.
#[derive(Debug)]
pub struct Asked {
    pub kubeconfig: PathBuf,
    /// The passwords of the BMCs, in the order of the description's nodes.
    pub passwords: [Secret; 2],
}

/// Asks OpenShift's API whether its operator leaves the set-up to Tandem. Changes `description` to what the operator would use: its
/// cluster name, a plain clone, and the BMCs in its Secrets. The error has a sentence for each fault.
pub fn ask(kubeconfig: &Path, description: &mut Description) -> Result<Asked, Vec<String>> {
    is_left_to_us(&tnf::jobs(kubeconfig, machine::PATIENCE)).map_err(|why| vec![why])?;
    CLUSTER.clone_into(&mut description.cluster);
    (description.clone, description.certificates) = (Clone::Plain, Certificates::OfThePod);
    let mut faults = Vec::new();
    let passwords = description.nodes.each_mut().map(|node| {
        let told = tnf::credentials(kubeconfig, &node.name, machine::PATIENCE);
        let told = told.map_err(|why| faults.push(why)).ok()?;
        let options = &mut node.bmc.options;
        options.retain(|(name, _)| !told.options.iter().any(|(other, _)| other == name));
        options.extend(told.options);
        Some(Secret(told.password))
    });
    match passwords {
        [Some(first), Some(second)] => Ok(Asked { kubeconfig: kubeconfig.to_owned(), passwords: [first, second] }),
        _ => Err(faults),
    }
}

/// Observes the cluster as [`cluster::look`] does, and the operator's jobs through OpenShift's API. If the API does not answer, the jobs
/// count as none. The API does not answer while etcd moves to Pacemaker, and the jobs were checked before the set-up.
pub fn look(programs: &Programs, asked: &Asked, end: Deadline) -> ClusterFacts {
    let jobs = match tnf::jobs(&asked.kubeconfig, end.at_most(machine::PATIENCE)) {
        Fact::Unknown(_) => Fact::Known(Vec::new()),
        told => told,
    };
    ClusterFacts { jobs, ..cluster::look(programs, end) }
}

/// Returns the steps of the cluster as [`cluster::steps`] does, with the names, options and order of OpenShift's
/// operator.
pub fn steps(description: &Description, facts: &ClusterFacts, on: &str) -> Vec<SetupStep> {
    if let Err(why) = is_left_to_us(&facts.jobs) {
        return vec![refused("operator", TITLES[0], on, why)];
    }
    let words = Words { cluster: CLUSTER.to_owned(), token: None };
    let mut steps = membership_steps(description, &words, facts, on);
    let cib = match configuration(facts) {
        Ok(cib) => cib,
        Err(why) => {
            steps.push(refused("cib", cluster::CIB, on, why));
            return steps;
        }
    };
    let property = Wanted::new("start-failure-is-fatal", "false", Kind::Truth);
    steps.extend(property_steps(&cib, &[property], on));
    let kubelet = kubelet(&cib, on);
    if is_refused(&kubelet) {
        steps.extend(kubelet);
        return steps;
    }
    steps.extend(kubelet);
    steps.push(enable(KUBELET, &cib, on));
    let devices = Device::of(description).map(|device| Device {
        id: format!("{}_redfish", device.node),
        agent: FENCE_AGENT,
        avoids: false,
        password_may_be_in_cib: true,
        ..device
    });
    steps.extend(devices.iter().flat_map(|device| device.steps(&cib, on)));
    steps.push(devices_run(&devices, facts, on));
    let etcd = etcd(description).steps(&cib, on);
    let may_start = !is_refused(&etcd);
    steps.extend(etcd);
    if may_start {
        steps.extend(after_kubelet(&cib, on));
        steps.push(enable("etcd", &cib, on));
    }
    steps
}

/// Fails if OpenShift's operator has jobs, because two set-ups of one cluster would undo each other's work.
fn is_left_to_us(jobs: &Fact<Vec<String>>) -> Result<(), String> {
    match jobs {
        Fact::Known(jobs) if jobs.is_empty() => Ok(()),
        Fact::Known(jobs) => Err(format!(
            "the etcd operator sets this cluster up itself, by its jobs {}: leave it to that, see 'oc --namespace openshift-etcd \
             get jobs'",
            jobs.join(", ")
        )),
        unknown => Err(format!(
            "whether the etcd operator sets this cluster up itself is not known ({}): see 'oc --namespace openshift-etcd get \
             jobs', and type this again",
            unknown.why_unknown()
        )),
    }
}

fn kubelet(cib: &Cib, on: &str) -> Vec<SetupStep> {
    let title = TITLES[1];
    let mut found = Found::default();
    let meta = [Wanted::new("interleave", "true", Kind::Truth), Wanted::new("migration-threshold", "60", Kind::Text)];
    let start = START.map(|(name, value, _)| format!("{name}={value}"));
    let there = cib.resource(KUBELET);
    if let Some(there) = there {
        if there.agent != KUBELET_AGENT {
            let why = format!(
                "there is a resource {KUBELET} of {} already: if it is not needed, type 'pcs resource delete {KUBELET}' and this \
                 again",
                there.agent
            );
            return vec![refused(KUBELET, title, on, why)];
        }
        let timeout = there.operations.iter().find(|(name, ..)| name == "start").map(|(_, _, timeout)| *timeout);
        let values = [timeout, cib.start_delay(KUBELET)];
        let wrong = START.iter().zip(values).filter(|((.., wanted), there)| *there != Some(*wanted));
        let mut is_wrong = false;
        for ((name, value, _), there) in wrong {
            let there = there.map(|millis| format!("{millis}ms")).unwrap_or_default();
            found.differ(format!("{KUBELET}: start {name}"), &there, value);
            is_wrong = true;
        }
        if is_wrong {
            let words = ["resource", "update", KUBELET, "op", "start"].map(str::to_owned);
            found.change(pcs(words.into_iter().chain(start)));
        }
        // pcs applies these options to the resource or to its clone, depending on its release.
        found.compare_and_change(&["resource", "meta", KUBELET], KUBELET, &meta, &there.meta);
    } else {
        let words = ["resource", "create", KUBELET, KUBELET_AGENT, "op", "start"].map(str::to_owned).into_iter();
        let meta = std::iter::once("meta".to_owned()).chain(meta.iter().map(Wanted::word));
        found.miss(pcs(words.chain(start).chain(meta).chain(["--disabled".to_owned()])));
    }
    if there.is_none_or(|there| there.clone.is_none()) {
        found.miss(pcs(["resource", "clone", KUBELET]));
    }
    found.steps(KUBELET, title, on)
}

/// Returns the wanted etcd resource on OpenShift. It has no image, certificates or settings, because the pod's manifest
/// has them.
fn etcd(description: &Description) -> Etcd {
    let drop_in = Wanted::new("drop_in_dependency", "true", Kind::Truth);
    Etcd {
        agent: ETCD_AGENT,
        options: vec![cluster::node_ip_map(&description.nodes), drop_in],
        meta: vec![cluster::migration_threshold()],
        clone: Clone::Plain,
    }
}

fn after_kubelet(cib: &Cib, on: &str) -> Vec<SetupStep> {
    let clone = |id: &str| {
        cib.resource(id).and_then(|resource| resource.clone.clone()).unwrap_or_else(|| format!("{id}-clone"))
    };
    let (kubelet, etcd) = (clone(KUBELET), clone("etcd"));
    let mut found = Found::default();
    if !cib.is_ordered(&kubelet, &etcd) {
        found.miss(pcs(["constraint", "order", &kubelet, "then", &etcd]));
    }
    if !cib.is_colocated(&etcd, &kubelet) {
        found.miss(pcs(["constraint", "colocation", "add", &etcd, "with", &kubelet]));
    }
    found.steps("etcd-after-kubelet", TITLES[2], on)
}
