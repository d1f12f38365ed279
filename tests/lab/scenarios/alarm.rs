//! etcd raises an alarm. A node attribute shows it, the member does not fail, and nothing of it is left when the alarm
//! is over.

use std::time::Duration;

use etcd_client::{AlarmAction, AlarmOptions, AlarmType};

use super::steps;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::cluster::{self, Failure};
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::Result;

const ALARM: &str = "etcd_alarm";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let before = steps::members(lab)?;
    let failures = failures(lab, leader).len();
    let mut writers = super::writing(lab)?;
    set(lab, leader, before[0], AlarmAction::Activate)?;
    lab.event("NOSPACE is raised");
    let shown = || cluster::crm_mon(lab, NODES[1]).unwrap_or_default();
    let seen = eventually("crm_mon shows the alarm", shown, |told| {
        [ALARM, "NOSPACE of node1"].iter().all(|words| told.contains(words))
    });
    set(lab, leader, before[0], AlarmAction::Deactivate)?;
    seen?;
    eventually("crm_mon shows no alarm", shown, |told| !told.is_empty() && !told.contains(ALARM))?;
    super::ends_well(lab, &mut writers)?;
    steps::same_members(lab, before)?;
    must("an alarm makes no action of etcd fail", self::failures(lab, leader), |now| now.len() <= failures).map(drop)
}

fn failures(lab: &Lab, by: Node) -> Vec<Failure> {
    cluster::failures(lab, by).into_iter().filter(|failure| failure.action.starts_with(cluster::ETCD)).collect()
}

/// Raises or ends the NOSPACE alarm of an etcd member. Repeating either does nothing.
pub(super) fn set(lab: &Lab, node: Node, member: u64, action: AlarmAction) -> Result<()> {
    let what = format!("the etcd of {node} takes the alarm's change");
    eventually(&what, || try_set(lab, node, member, action), Result::is_ok)?
}

fn try_set(lab: &Lab, node: Node, member: u64, action: AlarmAction) -> Result<()> {
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
