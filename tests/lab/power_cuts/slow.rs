//! Means to make a shutdown or a launch of etcd slow, so that another event can occur meanwhile.

use std::time::Duration;

use crate::cluster::ETCD_CLONE;
use crate::cluster::pcs;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::sh::{self, Result};

const AGENT: &str = "/usr/lib/ocf/resource.d/lab/slow";
/// The file that makes the slow service's stop hang as long as the file exists. A boot removes it.
const HOLD: &str = "/run/lab-hold";
const SLOW: &str = r#"#!/bin/sh
runs=/run/lab-slow-runs
case $1 in
    start) touch $runs ;;
    stop) while [ -e /run/lab-hold ]; do sleep 0.2; done; rm -f $runs ;;
    monitor) [ -e $runs ] || exit 7 ;;
    meta-data) cat <<END
<?xml version="1.0"?>
<resource-agent name="slow"><version>1.0</version>
<longdesc lang="en">Takes its time to stop.</longdesc><shortdesc lang="en">Takes its time to stop</shortdesc>
<parameters/>
<actions><action name="start" timeout="20s"/><action name="stop" timeout="20s"/>
<action name="monitor" timeout="20s" interval="10s"/><action name="meta-data" timeout="5s"/></actions>
</resource-agent>
END
    ;;
esac
"#;
/// The path of a slower podman, which every search of the path finds before the real podman.
const PODMAN: &str = "/usr/sbin/podman";

/// Adds the slow service to the cluster. Pacemaker stops it on a node before it stops etcd there.
pub(super) fn add_service(lab: &Lab) -> Result<()> {
    for node in NODES {
        host::put(lab, node, AGENT, SLOW)?;
        host::must(lab, node, &["chmod", "755", AGENT])?;
    }
    let slow = ["slow", "ocf:lab:slow", "op", "stop", "timeout=300s"];
    pcs::create_clone(lab, NODES[0], pcs::run, &slow, &["clone", "interleave=true"])?;
    pcs::run(lab, NODES[0], &["constraint", "order", ETCD_CLONE, "then", "slow-clone"])?;
    sh::wait_for("the slow service on both nodes", Duration::from_secs(90), Duration::from_millis(300), || {
        let runs = |node| host::must(lab, node, &["test", "-e", "/run/lab-slow-runs"]).is_ok();
        NODES.into_iter().all(runs).then_some(())
    })
}

pub(super) fn remove_service(lab: &Lab) -> Result<()> {
    let by = host::any_running(lab)?;
    pcs::run(lab, by, &["resource", "delete", "slow"])
}

/// Makes the slow service's stop on a node hang until [`release`].
pub(super) fn hold(lab: &Lab, node: Node) -> Result<()> {
    host::must(lab, node, &["touch", HOLD]).map(drop)
}

/// Ends the hang of the slow service's stop on a node. On a host without power there is nothing to end.
pub(super) fn release(lab: &Lab, node: Node) {
    let _ = host::output(lab, node, &["rm", "-f", HOLD]);
}

/// Makes podman on a node take the time `by` longer to launch a container.
pub(super) fn podman(lab: &Lab, node: Node, by: Duration) -> Result<()> {
    let seconds = by.as_secs_f64();
    let script = format!("#!/bin/sh\ncase $1 in run|start) sleep {seconds:.1} ;; esac\nexec /usr/bin/podman \"$@\"\n");
    host::put(lab, node, PODMAN, &script)?;
    host::must(lab, node, &["chmod", "755", PODMAN]).map(drop)
}

pub(super) fn podman_as_it_was(lab: &Lab, node: Node) -> Result<()> {
    host::must(lab, node, &["rm", "-f", PODMAN]).map(drop)
}
