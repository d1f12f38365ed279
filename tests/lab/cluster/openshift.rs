//! The files that OpenShift's operators put on the two hosts: etcd's certificates and the pod manifest.

use serde_json::json;

use crate::host::node::Node;
use crate::host::state::Lab;
use crate::host::tls;
use crate::programs::image;
use crate::sh::{self, Result};

/// The directory of OpenShift's etcd certificates below `/etc` of a host. Its path in the etcd container is
/// [`IN_CONTAINER`].
const CERTS: &str = "kubernetes/static-pod-resources/etcd-certs";
const IN_CONTAINER: &str = "/etc/kubernetes/static-pod-certs";
const MANIFEST: &str = "configmaps/external-etcd-pod/pod.yaml";
const BUNDLE: &str = "configmaps/etcd-all-bundles/server-ca-bundle.crt";

/// Writes OpenShift's manifest and etcd certificates to a host's disk, before the first boot.
pub fn install(lab: &Lab, node: Node) -> Result<()> {
    let certs = lab.disk(node, "etc").join(CERTS);
    let secrets = certs.join("secrets/etcd-all-certs");
    for dir in [&secrets, &certs.join("configmaps/external-etcd-pod"), &certs.join("configmaps/etcd-all-bundles")] {
        sh::make_dir(dir)?;
    }
    let from = |extension: &str| std::fs::read(lab.pki().join(format!("{}.{extension}", tls::etcd_name(node))));
    for role in ["serving", "peer"] {
        sh::write(&secrets.join(format!("etcd-{role}-{node}.crt")), from("crt")?)?;
        tls::write_secret(&secrets.join(format!("etcd-{role}-{node}.key")), &from("key")?)?;
    }
    sh::write(&certs.join(BUNDLE), std::fs::read(lab.pki().join("ca.crt"))?)?;
    // The file has YAML in its name, and contains JSON.
    sh::write(&certs.join(MANIFEST), manifest(lab, node))?;
    let kubelet = lab.disk(node, "var-lib").join("kubelet");
    sh::make_dir(&kubelet)?;
    sh::write(&kubelet.join("config.json"), "{\"auths\":{}}\n")
}

/// Returns the parts of cluster-etcd-operator's pod manifest that the shell agent reads.
fn manifest(lab: &Lab, node: Node) -> String {
    let peer = |extension: &str| format!("{IN_CONTAINER}/secrets/etcd-all-certs/etcd-peer-{node}.{extension}");
    let env = [
        ("ETCDCTL_CACERT", format!("{IN_CONTAINER}/{BUNDLE}")),
        ("ETCDCTL_CERT", peer("crt")),
        ("ETCDCTL_KEY", peer("key")),
        ("ETCD_CIPHER_SUITES", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".into()),
        ("ETCD_DATA_DIR", "/var/lib/etcd".into()),
        ("ETCD_ELECTION_TIMEOUT", "1000".into()),
        ("ETCD_ENABLE_PPROF", "true".into()),
        ("ETCD_HEARTBEAT_INTERVAL", "100".into()),
        ("ETCD_QUOTA_BACKEND_BYTES", "8589934592".into()),
        ("ETCD_SOCKET_REUSE_ADDRESS", "true".into()),
        ("ETCD_STATIC_POD_VERSION", "7".into()),
        ("ETCD_WARNING_APPLY_DURATION", "200ms".into()),
        ("ETCD_WATCH_PROGRESS_NOTIFY_INTERVAL", "5s".into()),
    ];
    let env: Vec<_> = env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let image = image::name(&lab.setting("etcd").unwrap_or_default());
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "etcd", "namespace": "openshift-etcd", "labels": { "app": "etcd", "revision": "7" } },
        "spec": {
            "containers": [{ "name": "etcd", "image": image, "env": env }],
            "volumes": [{ "name": "resource-dir", "hostPath": { "path": "/etc/kubernetes/static-pod-resources/etcd-pod-7" } }],
        },
    });
    format!("{pod:#}\n")
}
