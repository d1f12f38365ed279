//! An address for an API server, by the commands that `docs/operate/address.md` prints: it is colocated with a clone that runs on both nodes.

use std::time::Duration;

use super::address::{arrives, blocks, holders, watched};
use super::steps;
use super::table::{Scenario, scenario};
use crate::check::{must, within};
use crate::etcd;
use crate::host;
use crate::net;
use crate::node::{NODES, Node};
use crate::pcs;
use crate::power;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;
use crate::writer::Writers;

const PAGE: &str = include_str!("../../../docs/operate/address.md");
/// The address of the page, and the lab's.
const OF_THE_PAGE: &str = "192.0.2.11";
const ADDRESS: &str = "10.99.0.51";
/// From the survivor's first write.
const SURVIVES: Duration = Duration::from_secs(5);
const LOST: Duration = Duration::from_secs(60);

pub(super) const SCENARIOS: &[Scenario] = &[scenario(
    "api_address",
    "an API server's address is on one node with etcd: a power cut, the peer's return, a partition",
    run,
)];

fn run(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    for block in blocks(PAGE).filter(|block| block.contains("api-address")) {
        let commands = block.replace(OF_THE_PAGE, ADDRESS);
        host::must(lab, Node::One, &["bash", "-e", "-c", &commands])?;
    }
    within(LOST, "the address is on a host", || holders(lab, ADDRESS), |on| on.len() == 1)?;
    let mut writers = super::writing(lab)?;
    let watched = watched(lab, ADDRESS, || survives(lab, &writers))?;
    println!("   {} looks at both hosts: on both {} times", watched.looks, watched.on_both);
    must("the address is never on both hosts", watched.on_both, |times| *times == 0)?;
    pcs::run(lab, Node::One, &["resource", "delete", "api-address"])?;
    super::ends_well(lab, &mut writers)
}

fn survives(lab: &Lab, writers: &Writers) -> Result<()> {
    let [victim] = holders(lab, ADDRESS)[..] else { return Err("the address is not on one host".into()) };
    let survivor = victim.other();
    steps::cut(lab, victim)?;
    must("the survivor writes", steps::wait_write(writers, LOST)?, |node| *node == survivor)?;
    arrives(lab, ADDRESS, "after a power cut", survivor, SURVIVES)?;
    if !power::is_on(lab, victim) {
        power::on(lab, victim)?;
    }
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    crate::redundant::wait(lab)?;
    must("the address stays when its former host returns", holders(lab, ADDRESS), |on| on[..] == [survivor])?;

    net::set_partition(lab, true)?;
    let reset = sh::wait_for("one node to be reset", LOST, Duration::from_millis(100), || {
        NODES.into_iter().find(|node| !power::is_on(lab, *node))
    });
    let followed = reset.and_then(|reset| {
        must("the survivor writes", steps::wait_write(writers, LOST)?, |node| *node == reset.other())?;
        arrives(lab, ADDRESS, "in a partition", reset.other(), SURVIVES)
    });
    // Mended also after a failure, so that the logs show what follows.
    net::set_partition(lab, false)?;
    followed?;
    etcd::wait_two_voters(lab, Duration::from_secs(180)).map(drop)
}
