//! Parameters change while etcd runs. The running etcd adopts those that need no restart. A map that changes one node's
//! address restarts only that node's etcd.

use std::time::{Duration, Instant};

use super::steps;
use super::table::{Scenario, scenario};
use super::{cib_hangs, image_changes, settings_upgrade};
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{self, must};
use crate::programs::etcdctl::Etcdctl;
use crate::sh::{self, Result};

pub const SCENARIOS: &[Scenario] = &[
    scenario("parameters_change", "parameters change that need no restart: the etcd that runs takes them", run),
    scenario(
        "parameters_change_unseen",
        "a primary is named while one node's CIB hangs: no etcd is restarted, and one leads",
        while_a_cib_hangs,
    ).nightly(),
    scenario("address_changes", "a node gets another address: its own etcd is restarted, its peer's runs on", address),
    scenario("image_typo", "etcd's image changes to one that does not exist: both members run on", image_changes::typo),
    scenario(
        "image_upgrade",
        "'tandem upgrade' restarts one member after the other, cut off once",
        image_changes::upgrade,
    ),
    scenario(
        "settings_upgrade",
        "'tandem upgrade --settings' restarts one member after the other, cut off once, and the setting is that of both",
        settings_upgrade::run,
    ).nightly(),
];

/// A time longer than several monitors, and longer than the delay before leadership moves.
const HELD: Duration = Duration::from_secs(20);
const LIMIT: Duration = Duration::from_secs(120);
/// The new OOM score of etcd. It is higher than before, because some machines forbid a lower one.
const OOM: &str = "100";

fn run(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    let before = NODES.map(|node| etcd::pid(lab, node));
    let members = steps::members(lab)?;
    let mut writers = super::writing(lab)?;
    let change = ["resource", "update", cluster::ETCD, &format!("oom={OOM}"), "max_backup_snapshots=2"];
    pcs::run_and_wait(lab, NODES[0], &change)?;
    lab.event("parameters have changed");
    for node in NODES {
        sh::wait_for("the new OOM score", Duration::from_secs(120), Duration::from_millis(300), || {
            (oom_score(lab, node).ok()?.trim() == OOM).then_some(())
        })?;
    }
    if NODES.map(|node| etcd::pid(lab, node)) != before {
        return Err("etcd was restarted for a parameter that it can take while it runs".into());
    }
    steps::same_members(lab, members)?;
    super::ends_well(lab, &mut writers)
}

/// Holds the CIB of each node in turn while parameters change. That node then uses the old parameters for a while,
/// and the other node the new ones. At most one etcd may lead.
fn while_a_cib_hangs(lab: &Lab, _: Wish) -> Result<()> {
    NODES.into_iter().try_for_each(|held| with_the_cib_held(lab, held))
}

fn with_the_cib_held(lab: &Lab, held: Node) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let before = NODES.map(|node| etcd::pid(lab, node));
    let members = steps::members(lab)?;
    let mut writers = super::writing(lab)?;
    cib_hangs::signal(lab, held, "STOP")?;
    lab.event(&format!("the CIB on {held} hangs"));
    let primary = format!("configured_primary={}", leader.other());
    let change = ["resource", "update", cluster::ETCD, &primary, "failback_delay=10", "partition_patience=10"];
    let changed = pcs::run(lab, held.other(), &change).and_then(|()| one_leads(lab, HELD));
    cib_hangs::signal(lab, held, "CONT")?;
    lab.event(&format!("the CIB on {held} answers again"));
    changed?;
    let leads = || {
        one_leads(lab, Duration::ZERO)?;
        Ok(etcd::view(lab, leader.other()).is_ok_and(|view| view.leader == view.member))
    };
    check::within(LIMIT, "the primary leads", leads, |leads: &Result<bool>| !matches!(leads, Ok(false)))??;
    must("no etcd is restarted", NODES.map(|node| etcd::pid(lab, node)), |after| *after == before)?;
    let unset = ["resource", "update", cluster::ETCD, "configured_primary=", "failback_delay=", "partition_patience="];
    pcs::run_and_wait(lab, held.other(), &unset)?;
    steps::same_members(lab, members)?;
    super::ends_well(lab, &mut writers)
}

/// Checks for the duration `time`, and at least once, that at most one etcd leads.
fn one_leads(lab: &Lab, time: Duration) -> Result<()> {
    let end = Instant::now() + time;
    let leaders = || {
        let leads = |node: &Node| etcd::view(lab, *node).is_ok_and(|view| view.leader == view.member);
        NODES.into_iter().filter(leads).count()
    };
    loop {
        // Leadership may move between the two queries, but not twice in a row.
        must("one etcd leads at most", leaders(), |count| *count <= 1 || leaders() <= 1)?;
        if Instant::now() >= end {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Gives a node another IP address. Its own etcd must be restarted with the new address, and its peer's etcd must
/// keep running.
fn address(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    let [stays, moves] = NODES;
    let before = NODES.map(|node| etcd::pid(lab, node));
    host::must(lab, moves, &["ip", "address", "add", &format!("{}/24", moves.other_ip()), "dev", "eth0"])?;
    let mut writers = super::writing(lab)?;
    let map = format!("node_ip_map={stays}:{};{moves}:{}", stays.ip(), moves.other_ip());
    pcs::run_and_wait(lab, stays, &["resource", "update", cluster::ETCD, &map])?;
    lab.event("the map has another address");
    let url = format!("https://{}:2380", moves.other_ip());
    let etcdctl = Etcdctl::at(lab, stays)?;
    let urls = || etcdctl.must(&["member", "list"]).map_err(|error| error.to_string());
    let is_there = |urls: &std::result::Result<String, String>| urls.as_ref().is_ok_and(|urls| urls.contains(&url));
    check::within(LIMIT, "the member list has the new address", urls, is_there).map(drop)?;
    etcd::wait_two_voters(lab, LIMIT)?;
    let after = NODES.map(|node| etcd::pid(lab, node));
    must("the peer's etcd runs on, and its own was restarted", after, |after| {
        after[0] == before[0] && after[1].is_some() && after[1] != before[1]
    })?;
    super::ends_well(lab, &mut writers)
}

fn oom_score(lab: &Lab, node: Node) -> Result<String> {
    let pid = etcd::pid(lab, node).ok_or("no etcd runs")?;
    host::must(lab, node, &["cat", &format!("/proc/{pid}/oom_score_adj")])
}
