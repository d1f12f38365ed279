//! OpenShift's `PacemakerCluster` object. If the operator asks for it, the collector of the designated controller writes the object's
//! status. It writes nothing while the collector of OpenShift's own etcd operator does.

use std::time::UNIX_EPOCH;

use super::seen::CollectSeen;
use crate::adapters::openshift::machine::PATIENCE;
use crate::adapters::openshift::pacemaker_cluster::Object;
use crate::base::{Fact, json};
use crate::operate::health::pacemaker_cluster::PacemakerCluster;

/// Seconds for which this node does not overwrite a `PacemakerCluster` status that another writer wrote.
const ANOTHERS: u64 = 120;

/// The outcome of writing the status of OpenShift's `PacemakerCluster`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This node wrote the status of the `PacemakerCluster`. The text is the `lastUpdated` in it.
    Written(String),
    /// Nothing was written, because another program wrote the status of the `PacemakerCluster` a moment ago, or is writing it now.
    Another,
    /// Nothing was written, because this node is not the designated controller (DC). The DC's collector writes the status of the
    /// `PacemakerCluster`.
    NotHere,
}

/// Writes the status of OpenShift's `PacemakerCluster`, if this node is the designated controller. `own` is the `lastUpdated` that this
/// node wrote last.
pub fn write(seen: &CollectSeen, own: Option<&str>) -> Result<Outcome, String> {
    let here = seen.cluster.here.as_str();
    let dc = seen.cluster.pacemaker.known().and_then(|pacemaker| pacemaker.dc.as_deref());
    if here.is_empty() || dc != Some(here) {
        return Ok(Outcome::NotHere);
    }
    let Fact::Known(configuration) = &seen.cluster.configuration else { return Ok(Outcome::NotHere) };
    let missing = |why: &str| {
        format!("{why}: type 'oc get pacemakerclusters.etcd.openshift.io', or collect without --pacemakercluster")
    };
    let kubeconfig = super::kubeconfig(configuration);
    if !kubeconfig.exists() {
        return Err(missing(&format!("there is no access to OpenShift's API at {}", kubeconfig.display())));
    }
    let object = Object::read(&kubeconfig, PATIENCE)
        .map_err(|why| missing(&format!("OpenShift's PacemakerCluster is not written: {why}")))?;
    let object = object.ok_or_else(|| missing("OpenShift has no PacemakerCluster 'cluster'"))?;
    if is_anothers(object.last_updated(), own, seen.cluster.at) {
        return Ok(Outcome::Another);
    }
    // Unchanged conditions keep their transition times, and `lastUpdated` never decreases.
    let before = json::from_value::<PacemakerCluster>(object.value()).ok();
    let written = before.map_or_else(|| seen.pacemakercluster.clone(), |before| seen.object(&before));
    let status = serde_json::to_value(&written.status).map_err(|error| error.to_string())?;
    let is_written =
        object.write(&status).map_err(|why| missing(&format!("OpenShift's PacemakerCluster is not written: {why}")))?;
    Ok(if is_written { Outcome::Written(written.status.last_updated) } else { Outcome::Another })
}

/// Returns whether another program wrote the `PacemakerCluster` status at `last`, less than [`ANOTHERS`] seconds ago. A time that is
/// unreadable or in the future counts as recent. `own` is the time at which this node last wrote the status.
fn is_anothers(last: Option<&str>, own: Option<&str>, now: u64) -> bool {
    let Some(last) = last else { return false };
    if own == Some(last) {
        return false;
    }
    let at = humantime::parse_rfc3339(last).ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    at.is_none_or(|at| now.saturating_sub(at.as_secs()) < ANOTHERS)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::adapters::kubernetes::kubeconfig::for_server;
    use crate::adapters::openshift::machines::fake_api::FakeApi;
    use crate::adapters::openshift::pacemaker_cluster::OBJECT;
    use crate::operate::cluster::Cluster;
    use crate::operate::health::samples;

    /// Returns an observation by the designated controller, with a kubeconfig for the fake API `api`.
    fn seen(dir: &tempfile::TempDir, api: &FakeApi) -> CollectSeen {
        CollectSeen::of(cluster(dir, api), None, None)
    }

    fn cluster(dir: &tempfile::TempDir, api: &FakeApi) -> Cluster {
        let mut cluster = samples::read("healthy");
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!() };
        let etcd = configuration.etcd.as_mut().unwrap();
        etcd.parameters.insert("kubeconfig".to_owned(), for_server(dir, &api.server).display().to_string());
        cluster
    }

    fn status(api: &FakeApi) -> Value {
        api.get(OBJECT).unwrap()["status"].clone()
    }

    fn at(ago: u64) -> String {
        crate::operate::health::words::rfc3339(samples::read("healthy").at - ago)
    }

    #[test]
    fn the_designated_controller_writes_the_status_again_and_again() {
        let (dir, api) = (tempfile::tempdir().unwrap(), FakeApi::start(true));
        api.make(OBJECT, json!({"spec": {}}));
        let Ok(Outcome::Written(first)) = write(&seen(&dir, &api), None) else { panic!() };
        assert_eq!(first, at(0));
        assert_eq!(status(&api)["nodes"].as_array().map(Vec::len), Some(2));
        assert_eq!(write(&seen(&dir, &api), Some(&first)), Ok(Outcome::Written(first.clone())), "it is its own");
        assert_eq!(write(&seen(&dir, &api), None), Ok(Outcome::Another), "and would be another's");
    }

    #[test]
    fn a_status_of_another_writer_is_left_alone_for_two_minutes() {
        let (dir, api) = (tempfile::tempdir().unwrap(), FakeApi::start(true));
        for (last, expected) in [(at(119), true), (at(120), false), ("soon".to_owned(), true)] {
            api.make(OBJECT, json!({"status": {"lastUpdated": last, "conditions": [], "nodes": []}}));
            let found = write(&seen(&dir, &api), Some("2026-01-01T00:00:00Z")).unwrap();
            assert_eq!(found == Outcome::Another, expected, "{last}");
            assert_eq!(status(&api)["lastUpdated"] == json!(last), expected);
        }
        let yet_to_come = crate::operate::health::words::rfc3339(samples::read("healthy").at + 600);
        assert!(is_anothers(Some(&yet_to_come), None, samples::read("healthy").at));
        api.writes_before(1);
        api.make(OBJECT, json!({}));
        assert_eq!(write(&seen(&dir, &api), None), Ok(Outcome::Another), "it writes at this very moment");
    }

    #[test]
    fn no_other_node_writes_and_what_is_not_there_is_a_sentence() {
        let (dir, api) = (tempfile::tempdir().unwrap(), FakeApi::start(true));
        let why = write(&seen(&dir, &api), None).unwrap_err();
        assert!(why.starts_with("OpenShift has no PacemakerCluster 'cluster': type 'oc get"), "{why}");
        api.fail(1, "503 Service Unavailable");
        assert!(write(&seen(&dir, &api), None).unwrap_err().contains("the API answers 503"));
        let mut other = cluster(&dir, &api);
        let Fact::Known(pacemaker) = &mut other.pacemaker else { panic!() };
        pacemaker.dc = Some("node2".to_owned());
        assert_eq!(write(&CollectSeen::of(other, None, None), None), Ok(Outcome::NotHere));
        assert_eq!(api.patches(), 0);
    }
}
