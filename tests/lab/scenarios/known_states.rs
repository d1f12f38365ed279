//! `tandem status` in each state that an operator meets: the verdict, the exit code, the problem, and the duration of
//! the answer. An answer always comes in time, even if a program hangs, and an unknown state is never reported as
//! healthy.

use std::time::Duration;

use etcd_client::AlarmAction;

use super::{alarm, podman_hangs, steps};
use crate::cluster;
use crate::cluster::asked::{self, DEGRADED, DOWN, REDUNDANT, answers, ask, row};
use crate::cluster::etcd;
use crate::cluster::pacemaker;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::Result;

/// The longest time that `tandem status` may take on a busy machine on which no program hangs.
const HEALTHY: Duration = Duration::from_secs(2);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let follower = leader.other();
    crate::cluster::redundant::wait(lab)?;
    healthy(lab)?;
    let quick = || ask(lab, leader);
    eventually("a healthy cluster is told at once", quick, |answer| {
        answer.as_ref().is_ok_and(|answer| answer.took < HEALTHY)
    })
    .map(drop)?;
    let mut writers = super::writing(lab)?;
    configured(lab, leader, follower)?;
    full(lab, leader)?;
    hanging(lab, leader, follower)?;
    stopped_and_off(lab, leader, follower)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    crate::cluster::redundant::wait(lab)?;
    healthy(lab)?;
    super::ends_well(lab, &mut writers)
}

fn healthy(lab: &Lab) -> Result<()> {
    NODES.into_iter().try_for_each(|node| row(lab, node, REDUNDANT, None, &[]))
}

/// Returns the conditions of the `PacemakerCluster` object that are not true while the whole cluster is in
/// maintenance.
fn in_maintenance() -> Vec<String> {
    let mut all =
        ["Healthy=ClusterUnhealthy", "InService=InMaintenance"].map(|word| format!("cluster {word}")).to_vec();
    for node in NODES {
        all.push(format!("{node} FencingHealthy=FencingUnhealthy"));
        for part in ["Etcd".to_owned(), cluster::fence_device(node)] {
            let words = ["Healthy=ResourceUnhealthy", "InService=InMaintenance", "Managed=Unmanaged"];
            all.extend(words.map(|word| format!("{node}/{part} {word}")));
        }
    }
    all
}

/// Checks what `tandem status` reports of states that an operator has configured.
fn configured(lab: &Lab, leader: Node, follower: Node) -> Result<()> {
    steps::maintenance(lab, true)?;
    row(lab, follower, DEGRADED, Some("cluster-maintenance"), &in_maintenance())?;
    steps::maintenance(lab, false)?;
    let device = cluster::fence_device(follower);
    pcs::run(lab, leader, &["stonith", "disable", &device])?;
    let disabled = asked::not_fenced(follower, &["Enabled=Disabled", "Active=Inactive", "Started=Stopped"]);
    row(lab, leader, DEGRADED, Some("fence-device-disabled"), &disabled)?;
    pcs::run(lab, leader, &["stonith", "enable", &device])?;
    row(lab, leader, REDUNDANT, None, &[])?;
    pcs::run(lab, leader, &["resource", "unmanage", cluster::ETCD])?;
    let words = ["Healthy=ResourceUnhealthy", "Managed=Unmanaged"];
    let unmanaged: Vec<String> =
        NODES.into_iter().flat_map(|node| words.map(|word| format!("{node}/Etcd {word}"))).collect();
    row(lab, follower, DEGRADED, Some("resource-unmanaged"), &unmanaged)?;
    pcs::run(lab, leader, &["resource", "manage", cluster::ETCD])?;
    steps::standby(lab, follower, true)?;
    let on_standby = [asked::etcd_stopped(follower), vec![format!("{follower} Active=Standby")]].concat();
    row(lab, leader, DEGRADED, Some("node-standby"), &on_standby)?;
    steps::standby(lab, follower, false)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    crate::cluster::redundant::wait(lab)?;
    row(lab, leader, REDUNDANT, None, &[])
}

fn full(lab: &Lab, leader: Node) -> Result<()> {
    let members = steps::members(lab)?;
    alarm::set(lab, leader, members[0], AlarmAction::Activate)?;
    // Pacemaker reports no fault in this state.
    let told = row(lab, leader, DOWN, Some("alarm-nospace"), &[]);
    alarm::set(lab, leader, members[0], AlarmAction::Deactivate)?;
    told?;
    row(lab, leader, REDUNDANT, None, &[])
}

/// Freezes each program that `tandem status` queries. The command must still return in time, and must not report a
/// healthy cluster.
fn hanging(lab: &Lab, leader: Node, follower: Node) -> Result<()> {
    steps::maintenance(lab, true)?;
    let told = [
        hangs(lab, follower, "$(pidof pacemakerd) $(pidof pacemaker-based)", follower),
        hangs(lab, follower, "$(pidof etcd)", leader),
        podman_hangs::while_it_hangs(lab, leader, || {
            NODES.into_iter().try_for_each(|node| answers(lab, node, "while podman hangs").map(drop))
        }),
    ];
    steps::maintenance(lab, false)?;
    told.into_iter().collect::<Result<()>>()?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    crate::cluster::redundant::wait(lab)?;
    row(lab, leader, REDUNDANT, None, &[])
}

/// Runs `tandem status` on `on` while `processes` of `node` are frozen.
fn hangs(lab: &Lab, node: Node, processes: &str, on: Node) -> Result<()> {
    host::must(lab, node, &["sh", "-c", &format!("kill -STOP {processes}")])?;
    let answer = answers(lab, on, &format!("while {processes} of {node} hang"));
    host::must(lab, node, &["sh", "-c", &format!("kill -CONT {processes}")])?;
    must("and it is not that all is well", answer?, |answer| answer.code != REDUNDANT.1).map(drop)
}

/// Stops Pacemaker on a node, and then cuts its power. Checks what `tandem status` reports of both states.
fn stopped_and_off(lab: &Lab, leader: Node, follower: Node) -> Result<()> {
    pacemaker::end(lab, follower)?;
    let off = [asked::etcd_stopped(follower), vec![format!("{follower} Online=Offline")]].concat();
    row(lab, leader, DEGRADED, Some("node-offline"), &off)?;
    let here = answers(lab, follower, "where Pacemaker is stopped")?;
    must("which is said there", here, |answer| answer.code != REDUNDANT.1 && answer.names("pacemaker-stopped"))?;
    pacemaker::begin(lab, follower)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    crate::cluster::redundant::wait(lab)?;
    steps::cut(lab, follower)?;
    let lost = || ask(lab, leader);
    eventually("a node that is lost is told", lost, |answer| {
        answer.as_ref().is_ok_and(|answer| {
            let is_told = answer.names("node-unclean") || answer.names("node-offline");
            answer.code != REDUNDANT.1 && answer.is_in_time() && is_told
        })
    })
    .map(drop)?;
    asked::says(lab, leader, DEGRADED, None)
}
