//! Each depth of `OCF_CHECK_LEVEL` checks what it promises: 0 asks etcd, 10 reads through a majority, 20 writes. A
//! healthy member passes all of them; a full database fails only the last one. Just after its leader has gone silent, a
//! follower cannot read through a majority. It does not fail, because it needs a recovery once it knows of no leader.

use std::time::Duration;

use etcd_client::AlarmAction;

use super::{alarm, steps};
use crate::cluster::agent_call;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::{Output, Result};

const ASKED: u32 = 0;
const READ: u32 = 10;
const WRITTEN: u32 = 20;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let members = steps::members(lab)?;
    let mut writers = super::writing(lab)?;
    for node in NODES {
        for level in [ASKED, READ, WRITTEN] {
            passes(lab, node, level)?;
        }
    }
    // Maintenance mode hides the following steps from Pacemaker's own monitors.
    steps::maintenance(lab, true)?;
    let done = full(lab, leader, members).and_then(|()| without_its_leader(lab));
    steps::maintenance(lab, false)?;
    done?;
    super::ends_well(lab, &mut writers)?;
    steps::same_members(lab, members)
}

fn full(lab: &Lab, leader: Node, members: [u64; 2]) -> Result<()> {
    alarm::set(lab, leader, members[0], AlarmAction::Activate)?;
    let checked = passes(lab, leader, ASKED)
        .and_then(|()| passes(lab, leader, READ))
        .and_then(|()| fails(lab, leader, WRITTEN, "no write taken"));
    alarm::set(lab, leader, members[0], AlarmAction::Deactivate)?;
    checked?;
    passes(lab, leader, WRITTEN)
}

fn without_its_leader(lab: &Lab) -> Result<()> {
    let goes_on = |done: &Result<Output>| {
        done.as_ref().is_ok_and(|done| {
            done.ok && ["no confirmed read", "etcd has no leader"].iter().all(|words| done.stderr.contains(words))
        })
    };
    // The follower knows its leader for another second, in which a busy machine may not manage to ask it.
    let once = || without_its_leader_once(lab);
    eventually("a follower whose leader has just fallen silent reads in vain, and waits for it", once, goes_on)
        .map(drop)
}

fn without_its_leader_once(lab: &Lab) -> Result<Output> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let pid = etcd::pid(lab, leader).ok_or_else(|| format!("no etcd runs on {leader}"))?;
    let call = agent_call::monitor(lab, leader.other(), READ)?;
    host::must(lab, leader, &["kill", "-STOP", &pid])?;
    let checked = host::output(lab, leader.other(), &["sh", "-c", &call]);
    host::must(lab, leader, &["kill", "-CONT", &pid])?;
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    checked
}

fn passes(lab: &Lab, node: Node, level: u32) -> Result<()> {
    let done = host::output(lab, node, &["sh", "-c", &agent_call::monitor(lab, node, level)?])?;
    must(&format!("level {level} passes on {node}"), done, |done| done.ok).map(drop)
}

fn fails(lab: &Lab, node: Node, level: u32, words: &str) -> Result<()> {
    let done = host::output(lab, node, &["sh", "-c", &agent_call::monitor(lab, node, level)?])?;
    let fails = |done: &Output| !done.ok && done.stderr.contains(words);
    must(&format!("level {level} says '{words}'"), done, fails).map(drop)
}
