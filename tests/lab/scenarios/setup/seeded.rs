//! A node that has an etcd's data before the cluster is set up.

use std::time::Duration;

use etcd_client::Client;

use crate::cluster::etcd;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check;
use crate::programs::image;
use crate::sh::{self, Result};

const KEYS: usize = 100;
pub(super) const DATA: &str = "/var/lib/etcd";

/// The keys that the lab wrote to a separate etcd before the set-up. The pair must still have them afterwards.
#[derive(Debug)]
pub struct Seed {
    pub(super) prefix: String,
}

/// Runs an etcd outside of the cluster on a node, writes keys to it, and ends it.
pub fn begin(lab: &Lab, node: Node) -> Result<Seed> {
    let image = image::name(&lab.setting("etcd").unwrap_or_default());
    let client = format!("http://{}:2379", node.ip());
    let peer = format!("http://{}:2380", node.ip());
    // The guide requires this peer URL before the etcd gets a peer. No program listens there yet.
    let known_at = format!("https://{}:2380", node.ip());
    let volume = format!("{DATA}:{DATA}");
    host::must(lab, node, &["sh", "-c", &format!("mkdir -p {DATA} && chmod 700 {DATA}")])?;
    let run = ["podman", "run", "--detach", "--name", "seed", "--net", "host", "--volume", &volume, &image, "etcd"];
    let cluster = format!("{node}={known_at}");
    let options = [
        "--name",
        node.name(),
        "--data-dir",
        DATA,
        "--listen-client-urls",
        &client,
        "--advertise-client-urls",
        &client,
        "--listen-peer-urls",
        &peer,
        "--initial-advertise-peer-urls",
        &known_at,
        "--initial-cluster",
        &cluster,
    ];
    host::must(lab, node, &[&run[..], &options[..]].concat())?;
    let seed = Seed { prefix: format!("seed/{node}") };
    let written =
        sh::wait_for("the writes to a lone etcd", Duration::from_secs(30), Duration::from_millis(300), || {
            write(lab, &client, &seed.prefix).ok()
        });
    host::must(lab, node, &["podman", "rm", "--force", "--time", "10", "seed"])?;
    written.map(|()| seed)
}

pub(super) fn write(lab: &Lab, client: &str, prefix: &str) -> Result<()> {
    let (client, prefix) = (client.to_owned(), prefix.to_owned());
    etcd::as_client(lab, move || {
        etcd::runtime()?.block_on(async {
            let mut client = Client::connect([client], None).await?;
            for number in 0..KEYS {
                client.put(format!("{prefix}/{number}"), format!("value {number}"), None).await?;
            }
            Ok(())
        })
    })
}

/// Checks that both members have all keys of `seed`.
pub fn must_be_there(lab: &Lab, seed: &Seed) -> Result<()> {
    for node in NODES {
        let tls = etcd::tls(lab)?;
        let prefix = seed.prefix.clone();
        let found = etcd::as_client(lab, move || {
            etcd::runtime()?.block_on(async {
                let mut client = etcd::connect(&tls, node).await?;
                let mut found = 0;
                for number in 0..KEYS {
                    let got = client.get(format!("{prefix}/{number}"), None).await?;
                    let value = got.kvs().first().map(|pair| pair.value().to_vec());
                    found += usize::from(value == Some(format!("value {number}").into_bytes()));
                }
                Ok(found)
            })
        })?;
        check::must(&format!("{node} has what was written before"), found, |found| *found == KEYS)?;
    }
    Ok(())
}
