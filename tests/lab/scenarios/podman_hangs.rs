//! podman hangs on one node with every command. A stop must not hang with it: the agent ends etcd without podman, and
//! the node is not fenced. Once podman works again, the node comes back.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

/// The path of a podman that hangs, which every search of the path finds before the real podman.
const IN_ITS_PLACE: &str = "/usr/sbin/podman";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let booted = host::running(lab, node).map(|init| init.pid);
    let mut writers = super::writing(lab)?;
    while_it_hangs(lab, node, || steps::standby(lab, node, true).and_then(|()| stops(lab, node)))?;
    if host::running(lab, node).map(|init| init.pid) != booted {
        return Err(format!("{node} was fenced: its stop did not end in time").into());
    }
    steps::standby(lab, node, false)?;
    super::ends_well(lab, &mut writers)
}

/// Runs `work` while podman hangs on `node`.
pub(super) fn while_it_hangs(lab: &Lab, node: Node, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let script = format!("printf '#!/bin/sh\\nexec sleep 3600\\n' > {IN_ITS_PLACE} && chmod 755 {IN_ITS_PLACE}");
    host::must(lab, node, &["sh", "-c", &script])?;
    lab.event(&format!("podman on {node} hangs"));
    let done = work();
    host::must(lab, node, &["rm", "-f", IN_ITS_PLACE])?;
    done
}

fn stops(lab: &Lab, node: Node) -> Result<()> {
    steps::wait_stop_answered(lab, &[node])?;
    if etcd::view(lab, node).is_ok() {
        return Err(format!("the stop of {node} was answered, and its etcd runs").into());
    }
    steps::wait_alone(lab, node.other()).map(drop)
}
