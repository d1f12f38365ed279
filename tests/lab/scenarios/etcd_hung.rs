//! An etcd hangs: its process exists and does not answer. `monitor` detects it because it queries etcd itself. The stop
//! ends it within the time-out, and it comes back as the same member.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::state::Lab;
use crate::sh::Result;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let before = steps::members(lab)?;
    let booted = host::running(lab, node).map(|init| init.pid);
    let mut writers = super::writing(lab)?;
    let pid = etcd::pid(lab, node).ok_or_else(|| format!("no etcd runs on {node}"))?;
    host::must(lab, node, &["kill", "-STOP", &pid])?;
    lab.event(&format!("etcd on {node} got SIGSTOP"));
    steps::wait_write(&writers, Duration::from_secs(150))?;
    super::ends_well(lab, &mut writers)?;
    if host::running(lab, node).map(|init| init.pid) != booted {
        return Err(format!("{node} was fenced: its stop did not end in time").into());
    }
    steps::same_members(lab, before)
}
