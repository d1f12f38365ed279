//! An etcd that nothing ends, because its disk answers no request: its process waits in the kernel for a write, and SIGKILL
//! has to wait for that, too. Only fencing ends it.

use super::struck_until_fenced;
use crate::cluster::up::Wish;
use crate::host::state::Lab;
use crate::host::vm::disk::Drive;
use crate::host::vm::nbd;
use crate::judge::check::must;
use crate::scenarios::steps;
use crate::sh::Result;

/// Pacemaker's words for the results of a stop.
const STOP: &str = "Result of stop operation for etcd on ";
const OK: [&str; 2] = [": ok", ": OK"];

/// Makes the disk of the leader's etcd hang. The other node takes writes only after the stop has failed and the leader's node has been
/// fenced.
pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut struck = None;
    struck_until_fenced(lab, |leader| {
        struck = Some((leader, steps::log_length(lab, leader)));
        nbd::stand_still(lab, leader, Drive::Etcd)
    })?;
    let (leader, from) = struck.ok_or("nothing was struck")?;
    let said = steps::said(lab, leader, from);
    let stops: Vec<&str> = said.lines().filter(|line| line.contains(STOP)).collect();
    for line in &stops {
        println!("   {line}");
    }
    must("the stop failed", stops.first(), |first| first.is_some_and(|line| !OK.iter().any(|ok| line.contains(ok))))
        .map(drop)
}
