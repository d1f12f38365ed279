//! Looks at an address that Pacemaker moves, and reads the commands that a page prints.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::steps;
use crate::cluster::etcd;
use crate::cluster::redundant;
use crate::host;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::{must, within};
use crate::judge::figures;
use crate::load::writer::Writers;
use crate::sh::{self, Result};

/// The time-out from the survivor's first write until the floating address is on the survivor.
const SURVIVES: Duration = Duration::from_secs(5);
/// The time-out for the survivor's first write after a power cut or a partition.
pub(super) const LOST: Duration = Duration::from_secs(60);
const MARK: &str = "<!-- runs: node1 -->";

/// Returns the blocks of commands in a page of the guides that are marked to run on node1.
pub(super) fn blocks(page: &'static str) -> impl Iterator<Item = &'static str> {
    let behind = page.split(MARK).skip(1);
    behind.filter_map(|text| text.trim_start().strip_prefix("```sh\n")?.split("```").next())
}

/// Waits until the floating address is on `node` and on no other host.
pub(super) fn arrives(lab: &Lab, address: &str, when: &str, node: Node, limit: Duration) -> Result<()> {
    let began = Instant::now();
    within(limit, &format!("the address is on {node} {when}"), || holders(lab, address), |on| on[..] == [node])?;
    figures::print(format!("{when}: the address is on {node} after {:.1} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// Cuts the power of `victim`. Waits until the survivor has the floating address, and there are two voters again.
pub(super) fn survives_a_cut(lab: &Lab, writers: &Writers, address: &str, victim: Node) -> Result<()> {
    steps::cut(lab, victim)?;
    survives(lab, writers, address, "after a power cut", victim.other())?;
    if !power::is_on(lab, victim) {
        power::on(lab, victim)?;
    }
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    redundant::wait(lab)
}

/// Parts the hosts, waits until the survivor has the floating address, and heals the network.
pub(super) fn survives_a_partition(lab: &Lab, writers: &Writers, address: &str) -> Result<()> {
    net::set_partition(lab, true)?;
    let reset = sh::wait_for("one node to be reset", LOST, Duration::from_millis(100), || {
        NODES.into_iter().find(|node| !power::is_on(lab, *node))
    });
    let followed = reset.and_then(|reset| survives(lab, writers, address, "in a partition", reset.other()));
    // The network is repaired even after a failure, so that the logs show the consequence.
    net::set_partition(lab, false)?;
    followed?;
    etcd::wait_two_voters(lab, Duration::from_secs(180)).map(drop)
}

fn survives(lab: &Lab, writers: &Writers, address: &str, when: &str, survivor: Node) -> Result<()> {
    must("the survivor writes", steps::wait_write(writers, LOST)?, |node| *node == survivor)?;
    arrives(lab, address, when, survivor, SURVIVES)
}

/// Returns the hosts that have the floating address.
pub(super) fn holders(lab: &Lab, address: &str) -> Vec<Node> {
    NODES.into_iter().filter(|node| holds(lab, *node, address)).collect()
}

fn holds(lab: &Lab, node: Node, address: &str) -> bool {
    let shows = ["ip", "-oneline", "address", "show", "to", address];
    host::running(lab, node).is_some()
        && host::output(lab, node, &shows).is_ok_and(|shown| shown.text().contains(address))
}

#[derive(Default)]
pub(super) struct Watched {
    pub(super) looks: u32,
    pub(super) on_both: u32,
}

/// Runs `work`. Checks ten times a second meanwhile which hosts have the floating address, and counts how often both have it.
pub(super) fn watched(lab: &Lab, address: &str, work: impl FnOnce() -> Result<()>) -> Result<Watched> {
    let (is_done, watched) = (AtomicBool::new(false), Mutex::new(Watched::default()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let on_both = holders(lab, address).len() > 1;
                if let Ok(mut watched) = watched.lock() {
                    watched.looks += 1;
                    watched.on_both += u32::from(on_both);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        done
    })?;
    Ok(watched.into_inner().unwrap_or_default())
}
