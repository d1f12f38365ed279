//! Upkeep of the voters' Machines: their hooks, and a replacement that is due. Only the collector of the leader's node does it.

use std::path::Path;

use crate::agent::resource::params;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::health::view;
use crate::operate::members::watch::{self, Kept};
use crate::operate::node;

/// Period of the queries to OpenShift's API about Machines if `machine_hooks` is off, in seconds. The collector runs every 30 s. It
/// queries only in the first [`SLOT`] seconds of each period, which is once or twice per period.
const EVERY: u64 = 300;
const SLOT: u64 = 45;

/// Maintains the deletion hooks on the two voters' Machines in OpenShift, if this node's etcd leads and the kubeconfig exists.
/// Otherwise does nothing, and returns an empty result.
pub fn keep(cluster: &Cluster, resource: Option<&str>) -> Result<Kept, Failure> {
    let Some(writes) = is_due(cluster) else { return Ok(Kept::default()) };
    let kept = node::context(resource).and_then(|context| watch::of_pair(&context, Path::new(watch::PATH), writes));
    // Without hooks to write, an unreachable API is no problem of this node.
    if writes { kept } else { Ok(Kept { problems: Vec::new(), ..kept.unwrap_or_default() }) }
}

/// Returns whether the deletion hooks on the Machines are to be written. Returns `None` if etcd on this node does not lead, or if
/// OpenShift's API need not be queried now.
fn is_due(cluster: &Cluster) -> Option<bool> {
    let leads = cluster.etcd.get(&cluster.here)?.known().is_some_and(view::leads);
    let configuration = cluster.configuration.known()?;
    let hooks = configuration.etcd.as_ref()?.parameters.get("machine_hooks");
    let writes = params::keeps_machine_hooks(hooks.map(String::as_str));
    // A missing kubeconfig is a problem only if `machine_hooks` asks for hooks.
    let asks = writes || cluster.at % EVERY < SLOT && super::kubeconfig(configuration).exists();
    (leads && asks).then_some(writes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Fact;
    use crate::operate::health::samples;

    fn with(parameters: &[(&str, &str)], here: &str) -> Cluster {
        let mut cluster = Cluster { here: here.to_owned(), at: 10 * EVERY, ..samples::read("healthy") };
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!("it is known") };
        let etcd = configuration.etcd.as_mut().unwrap();
        for (name, value) in parameters {
            etcd.parameters.insert((*name).to_owned(), (*value).to_owned());
        }
        cluster
    }

    #[test]
    fn only_the_leaders_node_looks_after_machines_and_only_where_an_api_has_some() {
        let leads = |node: &str| with(&[], node).etcd[node].known().is_some_and(view::leads);
        let (leader, other) = if leads("node1") { ("node1", "node2") } else { ("node2", "node1") };
        let dir = tempfile::tempdir().unwrap();
        let (file, none) = (dir.path().join("kubeconfig"), dir.path().join("none"));
        std::fs::write(&file, "").unwrap();
        let due = |hooks: &str, path: &Path, here: &str| {
            is_due(&with(&[("machine_hooks", hooks), ("kubeconfig", path.to_str().unwrap())], here))
        };
        assert_eq!((due("yes", &file, leader), due("yes", &file, other)), (Some(true), None));
        assert_eq!((due("no", &file, leader), due("no", &none, leader)), (Some(false), None));
        assert_eq!((due("", &file, leader), due("perhaps", &file, leader)), (Some(false), Some(false)));
        assert_eq!(due("yes", &none, leader), Some(true), "what is wanted and cannot be done is a problem");
        let later = |hooks: &str| {
            let cluster = with(&[("machine_hooks", hooks), ("kubeconfig", file.to_str().unwrap())], leader);
            is_due(&Cluster { at: cluster.at + 60, ..cluster })
        };
        assert_eq!((later("yes"), later("no")), (Some(true), None), "without hooks the API is asked each five minutes");
    }
}
