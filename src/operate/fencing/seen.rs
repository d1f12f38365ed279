//! The observation of the cluster for the commands about fencing.

use super::copies;
use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::operate::cluster::{self, Cluster};

/// Observes the whole cluster from this node. `resource` chooses one of several etcd resources. Facts about this node
/// are collected here and now, so they need no collector.
pub fn look(resource: Option<&str>) -> Cluster {
    let mut cluster = cluster::look(&Programs::default(), resource, &Limits::patient());
    cluster::take_own(&mut cluster);
    copies::take_own(&mut cluster);
    cluster
}
