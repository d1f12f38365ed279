//! A node loses power, and its BMC refuses the password. Its peer waits and reports that, because the node is not
//! confirmed off. An operator checks that it is off and confirms it, and the peer runs standalone.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc;
use crate::host::state::Lab;
use crate::judge::check::eventually;
use crate::sh::Result;

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let victim = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let survivor = victim.other();
    let logs = crate::host::node::NODES.map(|node| steps::log_length(lab, node));
    let mut writers = super::writing(lab)?;
    bmc::set_mode(lab, victim, "refuse")?;
    steps::cut(lab, victim)?;
    steps::nobody_writes(&writers, Duration::from_secs(20))?;
    steps::nothing_forced(lab, logs)?;
    let explain = || host::said(lab, survivor, &["tandem", "explain"]);
    let missing = "is lost and not confirmed down";
    eventually("'tandem explain' says what is missing", explain, |said| said.contains(missing))?;
    host::must(lab, survivor, &["stonith_admin", "--confirm", victim.name()])?;
    lab.event(&format!("an operator confirms that {victim} is off"));
    steps::wait_write(&writers, Duration::from_secs(60))?;
    bmc::set_mode(lab, victim, "ok")?;
    steps::on(lab, victim, wish.boot_delay)?;
    super::ends_well(lab, &mut writers)
}
