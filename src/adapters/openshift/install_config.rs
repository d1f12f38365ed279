//! The number of nodes that the control plane of an OpenShift cluster was installed with. Asked over the Kubernetes API, within a bound.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::adapters::kubernetes::api::{body, connect};
use crate::adapters::kubernetes::kubeconfig::yaml;
use crate::base::json;

const CONFIG_MAP: &str = "/api/v1/namespaces/kube-system/configmaps/cluster-config-v1";

/// Reads `controlPlane.replicas` from the install config in the Kubernetes API; `None` on a cluster that has no install config.
pub fn control_plane_replicas(kubeconfig: &Path, patience: Duration) -> Result<Option<usize>, String> {
    let (agent, access) = connect(kubeconfig, patience)?;
    let Some(answer) = body(&agent, &access, CONFIG_MAP)? else { return Ok(None) };
    let map: Value = json::from_text(&answer).map_err(|error| error.to_string())?;
    let text = map.pointer("/data/install-config").and_then(Value::as_str).unwrap_or_default();
    let config = yaml(text).unwrap_or_default();
    let replicas = config.pointer("/controlPlane/replicas").and_then(Value::as_str);
    let number = replicas.and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| "the install config has no number as controlPlane.replicas".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::kubernetes::kubeconfig::for_server;
    use crate::adapters::openshift::machine::PATIENCE;
    use crate::adapters::openshift::machines::fake_api::FakeApi;

    const INSTALL_CONFIG: &str = "apiVersion: v1\nbaseDomain: example.com\ncontrolPlane:\n  name: master\n  platform: {}\n  replicas: 3\ncompute:\n- replicas: 5\n";

    #[test]
    fn the_control_planes_number_is_read_from_the_install_config() {
        let dir = tempfile::tempdir().unwrap();
        let fake_api = FakeApi::start(true);
        let read = || control_plane_replicas(&for_server(&dir, &fake_api.server), PATIENCE);
        assert_eq!(read(), Ok(None), "a cluster that OpenShift's installer did not make");
        fake_api.add_install_config(INSTALL_CONFIG);
        assert_eq!(read(), Ok(Some(3)));
        for wrong in ["", "controlPlane: {}", "controlPlane:\n  replicas: some", "controlPlane:\n  replicas: 0", "{"] {
            fake_api.add_install_config(wrong);
            let why = read().unwrap_err();
            assert_eq!(why, "the install config has no number as controlPlane.replicas", "{wrong}");
        }
        fake_api.fail(1, "403 Forbidden");
        assert_eq!(read(), Err("the API answers 403".to_owned()), "what was not answered is not absent");
    }
}
