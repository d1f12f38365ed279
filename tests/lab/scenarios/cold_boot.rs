//! A cold boot: both nodes were off, and one boots long before the other. It has no quorum, and stays inert. Once both
//! are up, two plain starts restore every write.

use super::steps;
use crate::cluster::up::Wish;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::sh::Result;

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let before = steps::members(lab)?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let mut writers = super::writing(lab)?;
    for node in NODES {
        steps::cut(lab, node)?;
    }
    steps::on(lab, Node::One, wish.boot_delay)?;
    steps::wait_pacemaker(lab, Node::One)?;
    steps::stays_inert(lab, Node::One, 8)?;
    steps::on(lab, Node::Two, wish.boot_delay)?;
    super::ends_well(lab, &mut writers)?;
    steps::same_members(lab, before)?;
    steps::nothing_forced(lab, logs)
}
