//! A promotable clone. A node has become a voter, and Pacemaker is about to promote its instance. Then its etcd freezes
//! for a moment, and its peer loses power. It takes over like any other node, because a slow moment is no reason to
//! stop it.

use std::time::Duration;

use super::steps;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::{self, Result};

const JOINS: Node = Node::Two;
const AGENT: &str = "/usr/lib/ocf/resource.d/tandem/podman-etcd";
/// The path of the real agent while the wrapper is in its place.
const REAL: &str = "/usr/lib/ocf/lab/podman-etcd";
const PREPARED: &str = "/usr/lib/ocf/lab/in-its-place";
const PROMOTES: &str = "/run/lab-promotes";
const HOLD: &str = "/run/lab-hold";
/// A wrapper of the agent. At the first promotion it freezes etcd until the lab releases it.
const IN_ITS_PLACE: &str = "#!/bin/sh
if [ \"$1\" = promote ] && mkdir /run/lab-promotes 2>/dev/null; then
    pid=$(podman inspect --format '{{.State.Pid}}' etcd)
    kill -STOP $pid
    setsid sh -c \"while [ -e /run/lab-hold ]; do sleep 0.1; done; kill -CONT $pid\" >/dev/null 2>&1 </dev/null &
fi
exec /usr/lib/ocf/lab/podman-etcd \"$@\"
";
/// The time for which the wrapper freezes etcd. It is longer than the time-out of one of the agent's queries.
const SLOW_FOR: Duration = Duration::from_secs(6);

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let peer = JOINS.other();
    let mut writers = super::writing(lab)?;
    steps::standby(lab, JOINS, true)?;
    steps::wait_alone(lab, peer)?;
    steps::wait_stopped(lab, &[JOINS])?;
    replace_agent(lab)?;
    lab.set("boot-delay", "3600")?;
    steps::standby(lab, JOINS, false)?;
    sh::wait_for("a promotion", Duration::from_secs(90), Duration::from_millis(30), || {
        host::must(lab, JOINS, &["test", "-d", PROMOTES]).ok().map(drop)
    })?;
    lab.event(&format!("etcd on {JOINS} stands still, and its instance is promoted"));
    steps::cut(lab, peer)?;
    std::thread::sleep(SLOW_FOR);
    host::must(lab, JOINS, &["rm", HOLD])?;
    lab.event(&format!("etcd on {JOINS} goes on"));
    let took_over = steps::wait_write(&writers, Duration::from_secs(120));
    steps::on(lab, peer, wish.boot_delay)?;
    super::ends_well(lab, &mut writers)?;
    host::must(lab, JOINS, &["ln", "-sf", "/usr/sbin/tandem", AGENT])?;
    took_over.map(drop)
}

/// Replaces the agent by the wrapper in one rename, so that monitors always find an agent.
fn replace_agent(lab: &Lab) -> Result<()> {
    host::put(lab, JOINS, PREPARED, IN_ITS_PLACE)?;
    host::must(lab, JOINS, &["chmod", "755", PREPARED])?;
    host::must(lab, JOINS, &["ln", "-s", "/usr/sbin/tandem", REAL])?;
    host::must(lab, JOINS, &["touch", HOLD])?;
    host::must(lab, JOINS, &["mv", PREPARED, AGENT]).map(drop)
}
