//! The survivor's record is erased from the CIB while its peer, which lost power, is fenced. The controller of a
//! machine that froze and resumes does that right before it is fenced. The survivor has the record written again, and
//! runs standalone.

use std::time::Duration;

use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check;
use crate::scenarios::steps;
use crate::sh::Result;

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let lost = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let survivor = lost.other();
    let mut writers = crate::scenarios::writing(lab)?;
    crate::cluster::redundant::wait(lab)?;
    // The lost node stays off, so that data which the survivor lacks cannot return.
    lab.set("boot-delay", "3600")?;
    steps::cut(lab, lost)?;
    // The attribute writer may have been on the lost node. Its successor writes all attributes that it has. No etcd has
    // a leader now, so no agent publishes anything either.
    steps::wait_peer_gone(lab, survivor)?;
    std::thread::sleep(Duration::from_millis(300));
    erase(lab, survivor)?;
    let took_over = steps::wait_write(&writers, Duration::from_secs(120));
    steps::on(lab, lost, wish.boot_delay)?;
    crate::scenarios::ends_well(lab, &mut writers)?;
    took_over.map(drop)
}

/// Erases the agent's published record of a node from the CIB. Pacemaker's attribute manager restores what any
/// program but a controller deletes. So a copy of `cibadmin` poses as `crmd`.
fn erase(lab: &Lab, node: Node) -> Result<()> {
    let place = format!("//node_state[@uname='{node}']/transient_attributes");
    let script = format!(
        "sed 's/cibadmin/crmd\\x00\\x00\\x00\\x00/g' \"$(command -v cibadmin)\" > /run/erase && chmod +x /run/erase && \
         /run/erase --delete --xpath \"{place}\" && cibadmin --query --xpath \"{place}\" 2>&1 | grep -c etcd_record"
    );
    let left = host::said(lab, node, &["sh", "-c", &script]);
    check::must("the record is erased", left, |count| count.trim() == "0")?;
    lab.event(&format!("the transient attributes of {node} are erased from the CIB"));
    Ok(())
}
