//! Only etcd's network parts, and a primary is configured. The other node yields, the primary runs standalone, and both
//! vote again once the network is whole. Each node is the primary once, whichever leads before.

use std::time::{Duration, Instant};

use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{must, within};
use crate::judge::figures;
use crate::sh::Result;

pub(super) const SCENARIOS: &[Scenario] = &[scenario(
    "etcd_network_parts",
    "only etcd's packets between the hosts are dropped: the configured primary runs standalone within a minute",
    run,
)
.nightly()];

/// The time-out until the configured primary takes writes: the agents' wait for the network, and a recovery by a
/// restart.
const WRITES_WITHIN: Duration = Duration::from_secs(60);
/// The time after which a leader has noticed the loss of its follower.
const NOTICED: Duration = Duration::from_secs(5);
/// A time longer than the agents' wait for the network. In it only the primary may serve while the network is cut.
const HOLDS: Duration = Duration::from_secs(45);

fn run(lab: &Lab, _: Wish) -> Result<()> {
    NODES.into_iter().try_for_each(|primary| with_primary(lab, primary))
}

fn with_primary(lab: &Lab, primary: Node) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    let booted = steps::boots(lab);
    let named = format!("configured_primary={primary}");
    pcs::run_and_wait(lab, primary, &["resource", "update", cluster::ETCD, &named])?;
    let mut writers = super::writing(lab)?;
    super::peer_black_holed::drop_packets(lab, true)?;
    lab.event(&format!("etcd's packets between the hosts are dropped, and {primary} is the primary"));
    let survived = survives(lab, primary, &writers);
    super::peer_black_holed::drop_packets(lab, false)?;
    lab.event("they pass again");
    survived?;
    steps::nobody_was_fenced(lab, booted)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    pcs::run_and_wait(lab, primary, &["resource", "update", cluster::ETCD, "configured_primary="])?;
    pcs::run(lab, primary, &["resource", "cleanup", cluster::ETCD])?;
    super::ends_well(lab, &mut writers)
}

fn survives(lab: &Lab, primary: Node, writers: &crate::load::writer::Writers) -> Result<()> {
    let cut = Instant::now();
    std::thread::sleep(NOTICED);
    let explained = || host::said(lab, primary.other(), &["tandem", "explain"]);
    within(NOTICED * 4, "the other node says when it yields", explained, |said| {
        said.contains("this node gives its claim up in ") && said.contains(&format!("{primary} runs standalone"))
    })?;
    must("the primary writes", steps::wait_write(writers, WRITES_WITHIN)?, |node| *node == primary)?;
    figures::print(format!("{primary} took a write {:.1} s after the cut", cut.elapsed().as_secs_f64()));
    must("writes are back in time", cut.elapsed(), |took| *took <= WRITES_WITHIN)?;
    steps::wait_alone(lab, primary)?;
    let shown = || cluster::crm_mon(lab, primary).unwrap_or_default();
    let refuses = format!("{primary} runs standalone, out of reach");
    within(HOLDS, "the other node refuses to start", shown, |shown| shown.contains(&refuses))?;
    let other = || etcd::view(lab, primary.other()).is_err();
    let end = Instant::now() + HOLDS;
    while Instant::now() < end {
        must("one etcd serves", other(), |is_none| *is_none)?;
        must("the primary serves", etcd::view(lab, primary)?, |view| view.reads && view.voters.len() == 1)?;
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}
