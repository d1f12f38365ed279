//! An address and a program follow the leader, by the commands in `docs/operate/address.md`. The lab asks both hosts
//! for the address ten times a second: it is never on both, and soon moves to the leader after each change.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
const MARK: &str = "<!-- runs: node1 -->";
/// The address in the page, and the lab's.
const OF_THE_PAGE: &str = "192.0.2.10";
const ADDRESS: &str = "10.99.0.50";
/// The limit from a hand-over, or from the first write after a kill, until the address is with the leader.
const FOLLOWS: Duration = Duration::from_secs(10);
/// The limit from the survivor's first write.
const SURVIVES: Duration = Duration::from_secs(5);
const LOST: Duration = Duration::from_secs(60);

pub(super) const SCENARIOS: &[Scenario] = &[scenario(
    "leader_address",
    "an address and a program follow the leader: a hand-over, a kill, a power cut, a partition",
    run,
)];

fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    for block in blocks(PAGE) {
        let commands = block.replace(OF_THE_PAGE, ADDRESS);
        host::must(lab, Node::One, &["bash", "-e", "-c", &commands])?;
    }
    arrives(lab, "at first", leader, FOLLOWS)?;
    let mut writers = super::writing(lab)?;
    let watched = watched(lab, || follows(lab, &writers))?;
    println!("   {} looks at both hosts: on both {} times", watched.looks, watched.on_both);
    must("the address is never on both hosts", watched.on_both, |times| *times == 0)?;
    for resource in ["etcd-address", "app"] {
        pcs::run(lab, Node::One, &["resource", "delete", resource])?;
    }
    super::ends_well(lab, &mut writers)
}

/// Returns the marked blocks of commands in a page.
pub(super) fn blocks(page: &'static str) -> impl Iterator<Item = &'static str> {
    let behind = page.split(MARK).skip(1);
    behind.filter_map(|text| text.trim_start().strip_prefix("```sh\n")?.split("```").next())
}

fn follows(lab: &Lab, writers: &Writers) -> Result<()> {
    let voters = || etcd::wait_two_voters(lab, Duration::from_secs(180));
    let leader = voters()?.leader;
    etcd::move_leader(lab, leader, leader.other())?;
    arrives(lab, "after a hand-over", leader.other(), FOLLOWS)?;
    let runs_app = || host::said(lab, Node::One, &["crm_resource", "--locate", "--resource", "app"]);
    let place = format!(": {}", leader.other());
    within(FOLLOWS, "the program follows", runs_app, |shown| shown.contains(&place))?;

    etcd::kill(lab, voters()?.leader)?;
    steps::wait_write(writers, LOST)?;
    arrives(lab, "after a kill", voters()?.leader, FOLLOWS)?;

    let victim = voters()?.leader;
    steps::cut(lab, victim)?;
    must("the survivor writes", steps::wait_write(writers, LOST)?, |node| *node == victim.other())?;
    arrives(lab, "after a power cut", victim.other(), SURVIVES)?;
    if !power::is_on(lab, victim) {
        power::on(lab, victim)?;
    }
    voters()?;
    crate::redundant::wait(lab)?;

    net::set_partition(lab, true)?;
    let survivor = sh::wait_for("one node to be reset", LOST, Duration::from_millis(100), || {
        NODES.into_iter().find(|node| !power::is_on(lab, *node)).map(Node::other)
    });
    let followed = survivor.and_then(|survivor| {
        must("the survivor writes", steps::wait_write(writers, LOST)?, |node| *node == survivor)?;
        arrives(lab, "in a partition", survivor, SURVIVES)
    });
    // The network is repaired even after a failure, so that the logs show the consequence.
    net::set_partition(lab, false)?;
    followed?;
    voters().map(drop)
}

fn arrives(lab: &Lab, when: &str, leader: Node, limit: Duration) -> Result<()> {
    let began = Instant::now();
    within(limit, &format!("the address is on {leader} {when}"), || holders(lab), |on| on[..] == [leader])?;
    println!("   {when}: the address is on {leader} after {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn holders(lab: &Lab) -> Vec<Node> {
    NODES.into_iter().filter(|node| holds(lab, *node)).collect()
}

fn holds(lab: &Lab, node: Node) -> bool {
    let shows = ["ip", "-oneline", "address", "show", "to", ADDRESS];
    host::running(lab, node).is_some()
        && host::output(lab, node, &shows).is_ok_and(|shown| shown.text().contains(ADDRESS))
}

#[derive(Default)]
struct Watched {
    looks: u32,
    on_both: u32,
}

/// Observes both hosts continuously while `work` runs.
fn watched(lab: &Lab, work: impl FnOnce() -> Result<()>) -> Result<Watched> {
    let (is_done, watched) = (AtomicBool::new(false), Mutex::new(Watched::default()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let on_both = holders(lab).len() > 1;
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
