//! OpenShift's own power control. The bare-metal operator switches a BareMetalHost on and off unless it is detached.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::adapters::kubernetes::api::{connect, list};
use crate::base::Fact;

pub(super) const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts";
/// The annotation that detaches a BareMetalHost from the bare-metal operator, whatever its value is.
const DETACHED: &str = "baremetalhost.metal3.io/detached";

/// Returns the names of the BareMetalHosts that belong to `nodes` and are not detached; `Absent` where there is no kubeconfig.
pub fn attached(kubeconfig: &Path, nodes: &[String], patience: Duration) -> Fact<Vec<String>> {
    if !kubeconfig.exists() {
        return Fact::Absent;
    }
    match connect(kubeconfig, patience).and_then(|(agent, access)| list(&agent, &access, HOSTS)) {
        Ok(hosts) => {
            Fact::Known(hosts.iter().filter(|host| is_of(host, nodes) && !is_detached(host)).filter_map(name).collect())
        }
        Err(why) => Fact::Unknown(why),
    }
}

fn name(host: &Value) -> Option<String> {
    Some(host.pointer("/metadata/name")?.as_str()?.to_owned())
}

fn is_detached(host: &Value) -> bool {
    host.pointer("/metadata/annotations").is_some_and(|all| all.get(DETACHED).is_some())
}

/// Returns whether the BareMetalHost `host` belongs to one of `nodes`, by the host's own name or by the hostname that its machine has
/// reported.
pub(super) fn is_of(host: &Value, nodes: &[String]) -> bool {
    let names = [host.pointer("/metadata/name"), host.pointer("/status/hardware/hostname")];
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let mut names = names.into_iter().flatten().filter_map(Value::as_str);
    names.any(|name| nodes.iter().any(|node| node == name || short(node) == short(name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::adapters::kubernetes::kubeconfig::for_server;
    use crate::adapters::openshift::machines::fake_api::FakeApi;

    #[test]
    fn who_is_not_known_to_be_detached_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let fake_api = FakeApi::start(true);
        for (name, annotations) in [("node1", json!({})), ("node2", json!({ DETACHED: "" })), ("node3", json!({}))] {
            fake_api.make(&format!("{HOSTS}/{name}"), json!({"metadata": {"annotations": annotations}}));
        }
        let nodes = ["node1".to_owned(), "node2".to_owned()];
        let ask = || attached(&for_server(&dir, &fake_api.server), &nodes, Duration::from_secs(5));
        assert_eq!(ask(), Fact::Known(vec!["node1".to_owned()]));
        fake_api.fail(1, "403 Forbidden");
        assert_eq!(ask(), Fact::Unknown("the API answers 403".to_owned()));
    }

    #[test]
    fn only_these_nodes_hosts_count_and_only_while_they_are_attached() {
        let nodes = ["node1.example".to_owned(), "node2.example".to_owned()];
        let host = |name: &str, hostname: &str| json!({"metadata": {"name": name}, "status": {"hardware": {"hostname": hostname}}});
        assert!(is_of(&host("node1", ""), &nodes) && is_of(&host("rack3-u7", "node2.example"), &nodes));
        assert!(!is_of(&host("node10", "node3.example"), &nodes));
        let mut one = host("node1", "");
        assert!(!is_detached(&one));
        one["metadata"]["annotations"] = json!({ "another": "" });
        assert!(!is_detached(&one));
        one["metadata"]["annotations"] = json!({ DETACHED: "" });
        assert!(is_detached(&one));
    }

    #[test]
    fn without_openshift_there_is_nothing_to_detach() {
        assert!(attached(Path::new("/nonexistent/kubeconfig"), &[], Duration::from_secs(1)).is_absent());
    }
}
