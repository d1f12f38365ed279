//! The observation of the cluster for the commands about fencing.

use super::copies;
use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::operate::cluster::{self, Cluster};

/// Observes the whole cluster. `resource` selects an etcd resource where the cluster has several. The facts about this node are collected
/// immediately, so that they need no collector.
pub fn look(resource: Option<&str>) -> Cluster {
    let mut cluster = cluster::look(&Programs::default(), resource, &Limits::patient());
    cluster::take_own(&mut cluster);
    copies::take_own(&mut cluster);
    cluster
}
