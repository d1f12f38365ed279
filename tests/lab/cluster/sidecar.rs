//! OpenShift's `etcd-rev` container next to each etcd. Every ten seconds it writes the highest Raft index that either
//! member reports, for the shell agent to compare.

use std::path::Path;
use std::time::Duration;

use etcd_client::{Certificate, Identity, TlsOptions};

use crate::cluster::etcd;
use crate::host::node::{NODES, Node};
use crate::host::state::{self, Lab};
use crate::sh::{self, Result};

const EVERY: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(2);
const FILE: &str = "revision.json";
/// The pod manifest on OpenShift's hosts. Only a host with this file runs a replacement of OpenShift's `etcd-rev` container. On OpenShift,
/// the same operator creates the manifest and the container.
const MARK: &str = "/etc/kubernetes/static-pod-resources/etcd-certs/configmaps/external-etcd-pod/pod.yaml";

/// Writes etcd's highest Raft index to `revision.json` every ten seconds, as OpenShift's `etcd-rev` container does.
/// It returns at once on a host without OpenShift's manifest.
pub fn run(node: Node) {
    if !Path::new(MARK).exists() {
        return;
    }
    // Two of them that began at the same moment would always agree, so each begins at a phase of its own.
    std::thread::sleep(Duration::from_millis(u64::from(state::since_epoch().subsec_nanos()) % 10_000));
    loop {
        if let Ok(text) = credentials(node).and_then(|tls| etcd::runtime()?.block_on(ask(&tls))) {
            let _ = replace(Path::new("/var/lib/etcd"), &text);
        }
        std::thread::sleep(EVERY);
    }
}

fn credentials(node: Node) -> Result<TlsOptions> {
    let certs = Path::new("/etc/tandem");
    let read = |name: &str| std::fs::read(certs.join(name)).map_err(|error| format!("{node}: {name}: {error}"));
    Ok(TlsOptions::new()
        .ca_certificate(Certificate::from_pem(read("ca.crt")?))
        .identity(Identity::from_pem(read("etcd.crt")?, read("etcd.key")?)))
}

async fn ask(tls: &TlsOptions) -> Result<String> {
    let mut highest = None;
    for node in NODES {
        let status = async { Ok::<_, sh::Error>(etcd::connect(tls, node).await?.status().await?) };
        let Ok(Ok(status)) = tokio::time::timeout(PATIENCE, status).await else { continue };
        let cluster = status.header().map_or(0, etcd_client::ResponseHeader::cluster_id);
        highest = highest.max(Some((status.raft_index(), cluster)));
    }
    let (index, cluster) = highest.ok_or("neither member answers")?;
    Ok(format!("{{\"clusterId\":\"{cluster}\",\"maxRaftIndex\":{index}}}\n"))
}

fn replace(dir: &Path, text: &str) -> Result<()> {
    let unfinished = dir.join(format!("{FILE}.tmp"));
    sh::write(&unfinished, text)?;
    Ok(std::fs::rename(unfinished, dir.join(FILE))?)
}

/// Writes `revision.json` with the present Raft index to both hosts.
pub fn write_both(lab: &Lab) -> Result<()> {
    let tls = etcd::tls(lab)?;
    let text = etcd::as_client(lab, move || etcd::runtime()?.block_on(ask(&tls)))?;
    NODES.into_iter().try_for_each(|node| replace(&lab.disk(node, "var-lib").join("etcd"), &text))
}
