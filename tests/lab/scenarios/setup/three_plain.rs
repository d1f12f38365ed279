//! Three plain etcds become a pair: `tandem member remove` removes two of them, and `tandem setup` keeps the data of
//! the last one.

use std::time::Duration;

use etcd_client::Client;

use super::seeded::{DATA, Seed, write};
use super::typed::{self, HERE, THERE};
use crate::cluster::etcd;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::programs::image;
use crate::sh::{self, Result};

/// The three members of an etcd cluster outside of Pacemaker. The third member has no machine of its own: it is a
/// second process on the second member's host.
const PLACES: [Place; 3] = [
    Place { name: "first", node: HERE, ports: [2379, 2380], data: DATA },
    Place { name: "second", node: THERE, ports: [2379, 2380], data: DATA },
    Place { name: "third", node: THERE, ports: [2479, 2480], data: "/var/lib/etcd-third" },
];

#[derive(Clone, Copy)]
struct Place {
    name: &'static str,
    node: Node,
    /// The client port and the peer port of the member.
    ports: [u16; 2],
    data: &'static str,
}

impl Place {
    fn url(self, of: usize) -> String {
        format!("http://{}:{}", self.node.ip(), self.ports[of])
    }

    fn start(self, lab: &Lab) -> Result<()> {
        let image = image::name(&lab.setting("etcd").unwrap_or_default());
        let (volume, name) = (format!("{0}:{0}", self.data), self.name);
        host::must(lab, self.node, &["sh", "-c", &format!("mkdir -p {0} && chmod 700 {0}", self.data)])?;
        let cluster = PLACES.map(|place| format!("{}={}", place.name, place.url(1))).join(",");
        let (client, peer) = (self.url(0), self.url(1));
        let words = format!(
            "podman run --detach --name {name} --net host --volume {volume} {image} etcd --name {name} --data-dir {} \
             --listen-client-urls {client} --advertise-client-urls {client} --listen-peer-urls {peer} \
             --initial-advertise-peer-urls {peer} --initial-cluster {cluster}",
            self.data
        );
        let words: Vec<&str> = words.split(' ').collect();
        host::must(lab, self.node, &words).map(drop)
    }

    fn end(self, lab: &Lab) -> Result<()> {
        host::must(lab, self.node, &["podman", "rm", "--force", "--time", "10", self.name]).map(drop)
    }
}

/// Reduces a cluster of three plain etcds to one stopped etcd on the first node, as the guide describes. Writes
/// follow each removal, and must not be lost either. Returns what was written.
pub fn begin(lab: &Lab) -> Result<Vec<Seed>> {
    PLACES.into_iter().try_for_each(|place| place.start(lab))?;
    let mut seeds = vec![written(lab, "three")?];
    let endpoints = PLACES.map(|place| place.url(0)).join(",");
    for place in [PLACES[2], PLACES[1]] {
        let remove = format!("tandem member remove {} --yes --endpoints {endpoints}", place.name);
        let kept = typed::typed(lab, HERE, &remove)?;
        kept.must_be(3)?;
        let done = typed::typed(lab, HERE, &format!("{remove} --allow-fewer-voters"))?;
        println!("   {}", done.said.trim().replace('\n', "\n   "));
        done.must_be(0)?;
        // The same command, typed again, succeeds, whether the removed etcd still runs or not.
        typed::typed(lab, HERE, &remove)?.must_be(0)?;
        place.end(lab)?;
        seeds.push(written(lab, place.name)?);
    }
    host::must(lab, THERE, &["mv", DATA, "/root/etcd.old"])?;
    known_at_its_place(lab)?;
    PLACES[0].end(lab)?;
    Ok(seeds)
}

fn written(lab: &Lab, when: &str) -> Result<Seed> {
    let seed = Seed { prefix: format!("seed/{when}") };
    sh::wait_for("the writes to plain etcds", Duration::from_secs(30), Duration::from_millis(300), || {
        write(lab, &PLACES[0].url(0), &seed.prefix).ok()
    })?;
    Ok(seed)
}

/// Gives the remaining member the peer URL at which the pair's other node will expect it, as the guide requires.
fn known_at_its_place(lab: &Lab) -> Result<()> {
    let url = PLACES[0].url(0);
    etcd::as_client(lab, move || {
        etcd::runtime()?.block_on(async {
            let mut client = Client::connect([url], None).await?;
            let listed = client.member_list().await?;
            let [only] = listed.members() else { return Err(format!("{} members", listed.members().len()).into()) };
            client.member_update(only.id(), [format!("https://{}:2380", HERE.ip())]).await?;
            Ok(())
        })
    })
}
