//! What `tandem status` says in each state that an operator meets: the verdict, the exit code, the problem, and how long the
//! answer takes. Whatever hangs, there is one in time, and what could not be asked is never called healthy.

use std::time::{Duration, Instant};

use etcd_client::AlarmAction;
use serde_json::Value;

use super::{alarm, steps};
use crate::check::{eventually, must};
use crate::cluster;
use crate::etcd;
use crate::host;
use crate::node::{NODES, Node};
use crate::pacemaker;
use crate::pcs;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

/// An answer is there within this time, whatever hangs.
const ALWAYS: Duration = Duration::from_secs(6);
/// And where nothing does, on a machine that has other things to do.
const HEALTHY: Duration = Duration::from_secs(2);

/// Two voters and nothing that needs a human; writes are taken; they are not.
const REDUNDANT: (&str, i32) = ("redundant", 0);
const DEGRADED: (&str, i32) = ("degraded", 3);
const DOWN: (&str, i32) = ("down", 4);

/// What was answered.
#[derive(Debug)]
struct Answer {
    verdict: String,
    code: i32,
    problems: Vec<String>,
    took: Duration,
}

impl Answer {
    fn is(&self, (verdict, code): (&str, i32), problem: Option<&str>) -> bool {
        let named = problem.is_none_or(|id| self.problems.iter().any(|problem| problem == id));
        self.verdict == verdict && self.code == code && named && self.took < ALWAYS
    }
}

/// As a script asks.
fn ask(lab: &Lab, on: Node) -> Result<Answer> {
    let began = Instant::now();
    let (code, said) = host::typed(lab, on, "tandem status --json 2> /dev/null")?;
    let took = began.elapsed();
    let document: Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let problems = document["problems"].as_array().into_iter().flatten();
    Ok(Answer {
        verdict: text(&document["verdict"]),
        code,
        problems: problems.map(|problem| text(&problem["id"])).collect(),
        took,
    })
}

/// That `on` says so soon, with this problem among others.
fn says(lab: &Lab, on: Node, wanted: (&str, i32), problem: Option<&str>) -> Result<()> {
    let what = format!("status on {on} is {wanted:?}, {}", problem.unwrap_or("whatever the problems"));
    let fits = |answer: &Result<Answer>| answer.as_ref().is_ok_and(|answer| answer.is(wanted, problem));
    eventually(&what, || ask(lab, on), fits).map(drop)
}

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let follower = leader.other();
    crate::redundant::wait(lab)?;
    for node in NODES {
        says(lab, node, REDUNDANT, None)?;
    }
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
    crate::redundant::wait(lab)?;
    for node in NODES {
        says(lab, node, REDUNDANT, None)?;
    }
    super::ends_well(lab, &mut writers)
}

/// What somebody has configured so.
fn configured(lab: &Lab, leader: Node, follower: Node) -> Result<()> {
    steps::maintenance(lab, true)?;
    says(lab, follower, DEGRADED, Some("cluster-maintenance"))?;
    steps::maintenance(lab, false)?;
    let device = cluster::fence_device(follower);
    pcs::run(lab, leader, &["stonith", "disable", &device])?;
    says(lab, leader, DEGRADED, Some("fence-device-disabled"))?;
    pcs::run(lab, leader, &["stonith", "enable", &device])?;
    says(lab, leader, REDUNDANT, None)?;
    pcs::run(lab, leader, &["resource", "unmanage", cluster::ETCD])?;
    says(lab, follower, DEGRADED, Some("resource-unmanaged"))?;
    pcs::run(lab, leader, &["resource", "manage", cluster::ETCD])?;
    steps::standby(lab, follower, true)?;
    says(lab, leader, DEGRADED, Some("node-standby"))?;
    steps::standby(lab, follower, false)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    crate::redundant::wait(lab)?;
    says(lab, leader, REDUNDANT, None)
}

fn full(lab: &Lab, leader: Node) -> Result<()> {
    let members = steps::members(lab)?;
    alarm::set(lab, leader, members[0], AlarmAction::Activate)?;
    let told = says(lab, leader, DOWN, Some("alarm-nospace"));
    alarm::set(lab, leader, members[0], AlarmAction::Deactivate)?;
    told?;
    says(lab, leader, REDUNDANT, None)
}

/// Whoever is asked may hang: there is an answer all the same, and it is not that all is well.
fn hanging(lab: &Lab, leader: Node, follower: Node) -> Result<()> {
    steps::maintenance(lab, true)?;
    let told = [
        hangs(lab, follower, "$(pidof pacemakerd) $(pidof pacemaker-based)", follower),
        hangs(lab, follower, "$(pidof etcd)", leader),
    ];
    steps::maintenance(lab, false)?;
    told.into_iter().collect::<Result<()>>()?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    crate::redundant::wait(lab)?;
    says(lab, leader, REDUNDANT, None)
}

/// While these processes of `node` hang, `on` is asked.
fn hangs(lab: &Lab, node: Node, processes: &str, on: Node) -> Result<()> {
    host::must(lab, node, &["sh", "-c", &format!("kill -STOP {processes}")])?;
    let answer = ask(lab, on);
    host::must(lab, node, &["sh", "-c", &format!("kill -CONT {processes}")])?;
    let what = format!("status on {on} answers in time while {processes} of {node} hang, and not that all is well");
    must(&what, answer?, |answer| answer.took < ALWAYS && answer.code != REDUNDANT.1).map(drop)
}

/// Pacemaker is stopped on a node, and then its power is cut.
fn stopped_and_off(lab: &Lab, leader: Node, follower: Node) -> Result<()> {
    pacemaker::end(lab, follower)?;
    says(lab, leader, DEGRADED, Some("node-offline"))?;
    let here = ask(lab, follower)?;
    must("where Pacemaker is stopped, that is said", here, |answer| {
        answer.took < ALWAYS && answer.code != REDUNDANT.1 && answer.problems.iter().any(|id| id == "pacemaker-stopped")
    })?;
    pacemaker::begin(lab, follower)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    crate::redundant::wait(lab)?;
    steps::cut(lab, follower)?;
    let lost = || ask(lab, leader);
    eventually("a node that is lost is told", lost, |answer| {
        let ids = |answer: &Answer| answer.problems.iter().any(|id| id == "node-unclean" || id == "node-offline");
        answer.as_ref().is_ok_and(|answer| answer.code != REDUNDANT.1 && answer.took < ALWAYS && ids(answer))
    })
    .map(drop)?;
    says(lab, leader, DEGRADED, None)
}
