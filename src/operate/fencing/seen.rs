//! The cluster, as these commands look at it.

use super::copies;
use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::operate::cluster::{self, Cluster};

/// All that is known of it from here, now. `resource` is the one that is meant where there are several. What this node knows of
/// itself needs no collector.
pub fn look(resource: Option<&str>) -> Cluster {
    let mut cluster = cluster::look(&Programs::default(), resource, &Limits::patient());
    cluster::take_own(&mut cluster);
    copies::take_own(&mut cluster);
    cluster
}
