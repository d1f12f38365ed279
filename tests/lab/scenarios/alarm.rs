//! etcd raises an alarm. It is shown as a node attribute, the member does not fail, and when the alarm is over nothing is
//! left of it.

use std::time::Duration;

use etcd_client::{AlarmAction, AlarmOptions, AlarmType};

use super::steps;
use crate::cluster;
use crate::etcd;
use crate::node::NODES;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

/// Two monitors and a little.
const UNTIL_SEEN: Duration = Duration::from_secs(75);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let before = steps::members(lab)?;
    let failures = cluster::failures(lab, leader).len();
    let mut writers = super::writing(lab)?;
    set(lab, leader, before[0], AlarmAction::Activate)?;
    lab.event("NOSPACE is raised");
    let words = ["etcd_alarm", "NOSPACE of node1"];
    let seen = wait_shown(lab, &words, true);
    set(lab, leader, before[0], AlarmAction::Deactivate)?;
    seen?;
    wait_shown(lab, &words, false)?;
    super::ends_well(lab, &mut writers)?;
    steps::same_members(lab, before)?;
    let now = cluster::failures(lab, leader);
    if now.len() > failures {
        return Err(format!("an alarm made an action fail: {}", now[now.len() - 1]).into());
    }
    Ok(())
}

/// Raises or ends the NOSPACE alarm of a member.
pub(super) fn set(lab: &Lab, node: crate::node::Node, member: u64, action: AlarmAction) -> Result<()> {
    let tls = etcd::tls(lab)?;
    etcd::as_client(lab, move || {
        etcd::runtime()?.block_on(async {
            let mut client = etcd::connect(&tls, node).await?;
            let mut options = AlarmOptions::new();
            options.with_member(member);
            client.alarm(action, AlarmType::Nospace, Some(options)).await?;
            Ok(())
        })
    })
}

fn wait_shown(lab: &Lab, words: &[&str], shown: bool) -> Result<()> {
    let what = if shown { "the alarm in crm_mon" } else { "crm_mon without the alarm" };
    sh::wait_for(what, UNTIL_SEEN, Duration::from_millis(500), || {
        let told = cluster::crm_mon(lab, NODES[1]).ok()?;
        let fits = if shown { words.iter().all(|word| told.contains(word)) } else { !told.contains(words[0]) };
        fits.then_some(())
    })
}
