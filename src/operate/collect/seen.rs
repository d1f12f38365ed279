//! One observation and its assessment, and what the collector passes on: to the other node, and to Prometheus.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::secrets;
use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::base::Fact;
use crate::operate::cluster::{self, Cluster, NotPublished};
use crate::operate::fencing::copies;
use crate::operate::fencing::record::tests_of_this_node;
use crate::operate::health::conditions::{self, Conditions};
use crate::operate::health::pacemaker_cluster::{self, PacemakerCluster};
use crate::operate::health::{self, Health};
use crate::operate::members::under_way::UnderWay;
use crate::operate::metrics::{self, Disruptions, Extras, disruptions};

/// One observation of the cluster by the collector, and its assessment.
#[derive(Debug)]
pub struct CollectSeen {
    pub cluster: Cluster,
    pub health: Health,
    conditions: Conditions,
    pub pacemakercluster: PacemakerCluster,
    pub member_change: Option<UnderWay>,
}

impl CollectSeen {
    /// Assesses `cluster`. `object` and `change` are the `PacemakerCluster` and the member change of the previous observation.
    pub fn of(cluster: Cluster, object: Option<&PacemakerCluster>, change: Option<&UnderWay>) -> Self {
        let conditions = conditions::of(&cluster);
        let pacemakercluster = pacemaker_cluster::render(&conditions, cluster.at, object);
        let member_change = UnderWay::of(&cluster, change);
        Self { health: health::assess(&cluster), conditions, pacemakercluster, member_change, cluster }
    }

    /// Returns OpenShift's `PacemakerCluster` for this observation. Conditions that are the same in `before` keep their transition times.
    pub(super) fn object(&self, before: &PacemakerCluster) -> PacemakerCluster {
        pacemaker_cluster::render(&self.conditions, self.cluster.at, Some(before))
    }

    /// Returns the verdict on the cluster's health in one word, such as `redundant`.
    pub fn verdict(&self) -> String {
        let word = serde_json::to_value(self.health.verdict).unwrap_or_default();
        word.as_str().unwrap_or_default().to_owned()
    }

    /// Replaces the metrics file in the directory `textfile` for Prometheus. `events` is the number of events by reason. Returns the
    /// file's path.
    pub fn tell_prometheus(
        &self,
        events: BTreeMap<String, u64>,
        textfile: Option<&Path>,
    ) -> io::Result<Option<PathBuf>> {
        let disruptions = Disruptions::keep(Path::new(disruptions::PATH), &self.conditions)?;
        let member_change = self.member_change.clone();
        let extras = Extras { events, disruptions, fencing_tests: tests_of_this_node(), member_change };
        let page = metrics::render(&self.cluster, &self.health, &self.conditions, &extras);
        metrics::textfile::write(textfile, &page)
    }
}

/// Observes the cluster, and publishes this node's own facts for the other node. Returns the observation, and whether publishing
/// succeeded.
pub fn look(programs: &Programs, resource: Option<&str>) -> (Cluster, Result<(), NotPublished>) {
    let mut cluster = cluster::look(programs, resource, &Limits::patient());
    let mut own = cluster::take_own(&mut cluster);
    copies::take_own(&mut cluster);
    secrets::compare(programs, &mut cluster);
    if let Some(Fact::Known(collected)) = cluster.collected.get(&cluster.here) {
        own.clone_from(collected);
    }
    let published = if cluster.pacemaker.is_absent() { Ok(()) } else { cluster::publish(programs, &own) };
    (cluster, published)
}
