//! A node joins as a learner, and the only voter loses power during the initial transfer. A learner's data proves
//! nothing: the learner takes no writes and starts no recovery, and follows again when its voter is back.

use std::time::Duration;

use super::steps;
use crate::cluster::up::Wish;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

const LEARNER: Node = Node::Two;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let voter = LEARNER.other();
    let mut writers = super::writing(lab)?;
    steps::standby(lab, LEARNER, true)?;
    steps::wait_alone(lab, voter)?;
    let log = steps::log_length(lab, LEARNER);
    steps::standby(lab, LEARNER, false)?;
    steps::wait_said(lab, LEARNER, log, "joining as a learner", Duration::from_secs(60))?;
    steps::cut(lab, voter)?;
    steps::nobody_writes(&writers, Duration::from_secs(8))?;
    super::ends_well(lab, &mut writers)?;
    if steps::said(lab, LEARNER, log).contains("forcing a new cluster") {
        return Err("the learner forced a new cluster from half of the data".into());
    }
    Ok(())
}
