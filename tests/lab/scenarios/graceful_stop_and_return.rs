//! A node is put on standby and comes back. Its etcd leaves, and the other one continues without a noticeable pause.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::demo::Victim;
use crate::host::state::Lab;
use crate::sh::Result;

/// The limit for a writer's gap while leadership is handed over in good order. It covers an election and a few
/// retries, but no recovery.
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
    pcs::run(lab, stays, &["node", "standby", node.name()])?;
    steps::wait_alone(lab, stays)?;
    steps::wait_stopped(lab, &[node])?;
    steps::wait_write(&writers, Duration::from_secs(20))?;
    let (gap, _) = writers.longest_wait();
    pcs::run(lab, stays, &["node", "unstandby", node.name()])?;
    super::ends_well(lab, &mut writers)?;
    if gap > LONGEST_GAP {
        return Err(format!("the orderly stop of {node} kept writers waiting for {:.1} s", gap.as_secs_f64()).into());
    }
    Ok(())
}
