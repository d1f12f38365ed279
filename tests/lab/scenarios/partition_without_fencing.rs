//! The hosts lose each other, and neither reaches a BMC. Neither agent knows whether the other node runs, so neither
//! forces, and neither node takes writes. The hosts reconnect before the BMCs are back. Then there is no reason for
//! fencing any more, and the cluster recovers without a power cut.

use std::time::Duration;

use super::steps;
use crate::cluster::up::Wish;
use crate::host::bmc;
use crate::host::net;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::sh::Result;

/// The duration of the partition. It is longer than the token's loss, fencing's delays and fencing's first failure
/// together.
const CUT_OFF: Duration = Duration::from_secs(25);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let booted = steps::boots(lab);
    let mut writers = super::writing(lab)?;
    for node in NODES {
        bmc::set_mode(lab, node, "unreachable")?;
    }
    net::set_partition(lab, true)?;
    std::thread::sleep(Duration::from_secs(3));
    let quiet = steps::nobody_writes(&writers, CUT_OFF).and_then(|()| steps::nothing_forced(lab, logs));
    net::set_partition(lab, false)?;
    let met = quiet.and_then(|()| steps::nobody_is_wanted_dead(lab));
    for node in NODES {
        bmc::set_mode(lab, node, "ok")?;
    }
    met?;
    super::ends_well(lab, &mut writers)?;
    steps::nobody_was_fenced(lab, booted)
}
