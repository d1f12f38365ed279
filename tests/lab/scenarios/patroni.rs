//! A real client: PostgreSQL under Patroni on the two hosts. If the replica's host dies, the primary is not demoted as
//! long as the survivor's etcd keeps running. If the primary's host dies, the replica takes over once etcd is back and
//! the dead primary's lock is gone. The lock expires, or the alert agent releases it. No acknowledged row is lost.

use std::time::{Duration, Instant};

use super::steps;
use crate::cluster;
use crate::cluster::alert;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::redundant;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must, within};
use crate::judge::figures;
use crate::load::writer::Writers;
use crate::programs::patroni::{self, TTL};
use crate::sh::Result;

/// The time-out for Patroni to make, copy or rewind a data directory of PostgreSQL.
const DATA: Duration = Duration::from_secs(240);
const RECOVERED: Duration = Duration::from_secs(90);
/// The time from the end of the dead primary's lock until PostgreSQL on the other node is the primary.
const TAKE_OVER: Duration = Duration::from_secs(5);
/// The time in which Patroni runs its loop several times.
const A_WHILE: Duration = Duration::from_secs(30);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let [primary, replica] = NODES;
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    has_a_gateway(lab, primary)?;
    NODES.into_iter().try_for_each(|node| patroni::install(lab, node))?;
    patroni::start(lab, primary)?;
    within(DATA, "the first PostgreSQL is the primary", || patroni::is_primary(lab, primary), |yes| *yes)?;
    patroni::ask(lab, primary, "create table rows (id text primary key)")?;
    patroni::start(lab, replica)?;
    follows_synchronously(lab, primary)?;
    let mut writers = super::writing(lab)?;
    replica_is_lost(lab, &writers, primary)?;
    primary_is_lost(lab, &writers, primary)?;
    alert::create(lab, "/service/")?;
    primary_is_lost(lab, &writers, replica)?;
    let log = || steps::said(lab, primary, 0);
    let words = format!("which held /service/lab/leader /service/lab/members/{replica}");
    eventually("the dead primary's lock was released", log, |log| log.contains(&words))?;
    alert::delete(lab)?;
    super::ends_well(lab, &mut writers)
}

/// Enables etcd's gRPC gateway, which Patroni uses. etcd 3.4 leaves the gateway off if it is started with a configuration file.
fn has_a_gateway(lab: &Lab, by: Node) -> Result<()> {
    if lab.setting("etcd").as_deref() != Some("3.4") {
        return Ok(());
    }
    pcs::run(lab, by, &["resource", "update", cluster::ETCD, "etcd_settings=enable-grpc-gateway=true"])?;
    host::must(lab, by, &["crm_resource", "--wait", "--timeout=120s"])?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    redundant::wait(lab)
}

fn follows_synchronously(lab: &Lab, primary: Node) -> Result<()> {
    let what = format!("{}'s PostgreSQL follows synchronously", primary.other());
    let seen = || (patroni::is_redundant(lab, primary), last_words(lab));
    within(DATA, &what, seen, |(yes, _)| *yes).map(drop)
}

fn last_words(lab: &Lab) -> [String; 2] {
    NODES.map(|node| patroni::said(lab, node).lines().next_back().unwrap_or_default().to_owned())
}

/// Cuts the power of a node. Returns the time for which etcd took no writes.
fn cut(lab: &Lab, writers: &Writers, victim: Node) -> Result<Duration> {
    steps::cut(lab, victim)?;
    let (cut_at, began) = (writers.now(), Instant::now());
    within(RECOVERED, "etcd takes writes again", || writers.first_after(cut_at), Option::is_some)?;
    Ok(began.elapsed())
}

/// Waits until etcd on the returning node votes. Then starts Patroni there, and waits until its PostgreSQL follows.
fn returns(lab: &Lab, node: Node) -> Result<()> {
    if !power::is_on(lab, node) {
        power::on(lab, node)?;
    }
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    patroni::start(lab, node)?;
    follows_synchronously(lab, node.other())
}

fn rows(lab: &Lab, node: Node) -> usize {
    patroni::acknowledged(lab, node).len()
}

/// Cuts the power of the replica's host. Rows wait for the replica until Patroni has recorded in etcd that the
/// primary has none.
///
/// A restart of etcd breaks requests in flight. If Patroni 3.0.2 gets no response, it retries. But if its request to
/// renew the lock breaks in the middle, it demotes PostgreSQL at once, and promotes it again. Chance decides whether
/// that happens.
fn replica_is_lost(lab: &Lab, writers: &Writers, primary: Node) -> Result<()> {
    let started = patroni::ask(lab, primary, "select pg_postmaster_start_time()")?;
    let process = etcd::pid(lab, primary);
    let gap = cut(lab, writers, primary.other())?;
    let before = rows(lab, primary);
    within(A_WHILE, "the primary takes rows again", || rows(lab, primary), |now| *now > before)?;
    figures::print(format!(
        "the replica's host: etcd {:.1} s, rows {:.1} s",
        gap.as_secs_f64(),
        without_rows(lab, primary)
    ));
    let ran_on = etcd::pid(lab, primary) == process;
    std::thread::sleep(A_WHILE);
    returns(lab, primary.other())?;
    must("it is the primary", patroni::is_primary(lab, primary), |yes| *yes)?;
    let demoted = patroni::said(lab, primary).lines().find(|line| line.contains("emoting self")).map(str::to_owned);
    if let (false, Some(line)) = (ran_on, &demoted) {
        println!("   note: the survivor's etcd was restarted: {line}");
        return Ok(());
    }
    must("Patroni demoted nobody", demoted, Option::is_none)?;
    let now = patroni::ask(lab, primary, "select pg_postmaster_start_time()")?;
    must("PostgreSQL ran on", now, |now| *now == started).map(drop)
}

/// Returns the longest time between two acknowledged rows, in seconds.
fn without_rows(lab: &Lab, node: Node) -> f64 {
    let times: Vec<f64> = patroni::acknowledged(lab, node).into_iter().map(|(at, _)| at).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
}

fn primary_is_lost(lab: &Lab, writers: &Writers, primary: Node) -> Result<()> {
    let next = primary.other();
    let began = Instant::now();
    let gap = cut(lab, writers, primary)?;
    let limit = (gap + Duration::from_secs(TTL) + TAKE_OVER).saturating_sub(began.elapsed());
    let seen = || (patroni::is_primary(lab, next), last_words(lab));
    within(limit, &format!("{next}'s PostgreSQL is the primary"), seen, |(yes, _)| *yes)?;
    figures::print(format!(
        "the primary's host: etcd {:.1} s, PostgreSQL {:.1} s",
        gap.as_secs_f64(),
        began.elapsed().as_secs_f64()
    ));
    let before = rows(lab, next);
    within(A_WHILE, "the new primary takes rows", || rows(lab, next), |now| *now > before)?;
    must("no acknowledged row is lost", patroni::lost(lab, next)?, Vec::is_empty)?;
    returns(lab, primary)
}
