//! An address for an API server, by the commands that `docs/operate/address.md` prints: it is colocated with a clone that runs on both nodes.

use std::time::Duration;

use super::address::{LOST, blocks, holders, survives_a_cut, survives_a_partition, watched};
use super::table::{Scenario, scenario};
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::{must, within};
use crate::judge::figures;
use crate::load::writer::Writers;
use crate::sh::Result;

const PAGE: &str = include_str!("../../../docs/operate/address.md");
/// The address in the commands of the guide, which the lab replaces with [`ADDRESS`].
const OF_THE_PAGE: &str = "192.0.2.11";
const ADDRESS: &str = "10.99.0.51";

pub(super) const SCENARIOS: &[Scenario] = &[scenario(
    "api_address",
    "an API server's address is on one node with etcd: a power cut, the peer's return, a partition",
    run,
)
.nightly()];

fn run(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    for block in blocks(PAGE).filter(|block| block.contains("api-address")) {
        let commands = block.replace(OF_THE_PAGE, ADDRESS);
        host::must(lab, Node::One, &["bash", "-e", "-c", &commands])?;
    }
    within(LOST, "the address is on a host", || holders(lab, ADDRESS), |on| on.len() == 1)?;
    let mut writers = super::writing(lab)?;
    let watched = watched(lab, ADDRESS, || survives(lab, &writers))?;
    figures::print(format!("{} looks at both hosts: on both {} times", watched.looks, watched.on_both));
    must("the address is never on both hosts", watched.on_both, |times| *times == 0)?;
    pcs::run(lab, Node::One, &["resource", "delete", "api-address"])?;
    super::ends_well(lab, &mut writers)
}

fn survives(lab: &Lab, writers: &Writers) -> Result<()> {
    let [victim] = holders(lab, ADDRESS)[..] else { return Err("the address is not on one host".into()) };
    survives_a_cut(lab, writers, ADDRESS, victim)?;
    must("the address stays when its former host returns", holders(lab, ADDRESS), |on| on[..] == [victim.other()])?;
    survives_a_partition(lab, writers, ADDRESS)
}
