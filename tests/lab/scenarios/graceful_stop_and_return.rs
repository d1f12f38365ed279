//! A node is put on standby and comes back: its etcd leaves, the other goes on without a pause that anyone notices.

use std::time::Duration;

use crate::cluster;
use crate::demo::Victim;
use crate::etcd;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

/// What an orderly hand-over may cost: an election and a few retries, not a recovery.
const LONGEST_GAP: Duration = Duration::from_secs(8);

pub fn leader(lab: &Lab, _: Wish) -> Result<()> {
    stop_and_return(lab, Victim::Leader)
}

pub fn follower(lab: &Lab, _: Wish) -> Result<()> {
    stop_and_return(lab, Victim::Follower)
}

fn stop_and_return(lab: &Lab, victim: Victim) -> Result<()> {
    let node = victim.node(etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader);
    let stays = node.other();
    let mut writers = super::writing(lab)?;
    cluster::pcs(lab, stays, &["node", "standby", node.name()])?;
    sh::wait_for("the other node to be the only member", Duration::from_secs(120), Duration::from_millis(200), || {
        let alone = etcd::view(lab, stays).ok()?;
        (alone.voters.len() == 1 && alone.others == 0 && alone.reads && etcd::view(lab, node).is_err()).then_some(())
    })?;
    let moment = writers.now();
    sh::wait_for("a write to the node that stayed", Duration::from_secs(20), Duration::from_millis(50), || {
        writers.first_after(moment)
    })?;
    let (gap, _) = crate::history::longest_gap(&writers.acknowledged(), Duration::ZERO, writers.now());
    cluster::pcs(lab, stays, &["node", "unstandby", node.name()])?;
    super::ends_well(lab, &mut writers)?;
    if gap > LONGEST_GAP {
        return Err(format!("the orderly stop of {node} kept writers waiting for {:.1} s", gap.as_secs_f64()).into());
    }
    Ok(())
}
