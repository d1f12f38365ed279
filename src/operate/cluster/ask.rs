//! Observes the cluster for a command, or fails with a message that names what to type first.

use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::base::Fact;
use crate::operate::cluster::{self, Cluster};
use crate::operate::failure::Failure;
use crate::operate::node;

/// Observes the cluster for a command. `wanted` is the id of the etcd resource that the operator typed.
pub fn ask(wanted: Option<&str>) -> Result<Cluster, Failure> {
    cluster::must_be_root()?;
    let cluster = cluster::look(&Programs::default(), wanted, &Limits::default());
    usable(cluster, wanted)
}

/// Returns `cluster`. Fails if this machine belongs to no cluster, or if `wanted` does not select one etcd resource.
fn usable(cluster: Cluster, wanted: Option<&str>) -> Result<Cluster, Failure> {
    match &cluster.configuration {
        Fact::Known(known) if known.etcd.is_none() => {
            node::which(&known.etcd_resources, wanted)?;
        }
        Fact::Absent if cluster.pacemaker.is_absent() => {
            return Err(node::no_cluster());
        }
        _ => {}
    }
    Ok(cluster)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::health::samples;

    fn refused(cluster: Cluster, wanted: Option<&str>) -> String {
        usable(cluster, wanted).unwrap_err().0
    }

    #[test]
    fn what_cannot_be_told_of_has_its_sentence() {
        let mut cluster = samples::read("healthy");
        assert!(usable(cluster.clone(), None).is_ok());
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!("no CIB") };
        configuration.etcd = None;
        configuration.etcd_resources = vec!["etcd".to_owned(), "other".to_owned()];
        assert!(refused(cluster.clone(), None).contains("--resource etcd or other"));
        assert!(refused(cluster.clone(), Some("else")).contains("there are: etcd, other"));
        let nowhere = Cluster { pacemaker: Fact::Absent, configuration: Fact::Absent, ..Cluster::default() };
        assert!(refused(nowhere, None).contains("tandem setup --example"));
        assert!(usable(samples::read("nothing-answers"), None).is_ok());
    }
}
