//! Pacemaker and Corosync of a host, ended and started again while the host stays up.

use std::process::Stdio;
use std::time::Duration;

use crate::cluster;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::{self, Result};

const LIMIT: Duration = Duration::from_secs(120);
const DAEMONS: &[&str] = &[
    "pacemakerd",
    "pacemaker-based",
    "pacemaker-fenced",
    "pacemaker-execd",
    "pacemaker-attrd",
    "pacemaker-schedulerd",
    "pacemaker-controld",
    "corosync",
];

/// Returns whether a process of `program` runs on the host.
pub fn runs(lab: &Lab, node: Node, program: &str) -> bool {
    host::must(lab, node, &["pidof", program]).is_ok()
}

/// Sends SIGTERM to a program on the host, as systemd does to stop its unit.
pub fn ask_to_end(lab: &Lab, node: Node, program: &str) -> Result<()> {
    signal(lab, node, "-TERM", &[program])?;
    lab.event(&format!("{program} on {node} got SIGTERM"));
    Ok(())
}

/// Ends Pacemaker and Corosync on a host in good order. Resources that Pacemaker does not stop continue, as etcd does
/// in maintenance mode.
pub fn end(lab: &Lab, node: Node) -> Result<()> {
    for program in ["pacemakerd", "corosync"] {
        ask_to_end(lab, node, program)?;
        let gone = || (!runs(lab, node, program)).then_some(());
        sh::wait_for(&format!("{program} on {node} to end"), LIMIT, Duration::from_millis(100), gone)?;
    }
    Ok(())
}

/// Sends SIGKILL to all daemons of Pacemaker and Corosync on a host at once. Programs that these daemons started
/// continue.
pub fn kill(lab: &Lab, node: Node) -> Result<()> {
    signal(lab, node, "-KILL", DAEMONS)?;
    lab.event(&format!("Pacemaker and Corosync on {node} got SIGKILL"));
    Ok(())
}

/// Starts Corosync and Pacemaker again on a host that stayed up, and waits until Pacemaker reports its own node as
/// online.
pub fn begin(lab: &Lab, node: Node) -> Result<()> {
    // The host's only copy of the lab's program is its pid 1. This process ends with the host, and its output is in the
    // host's logs.
    let mut services = host::command(lab, node, &["/proc/1/exe", "host-services", node.name()])?;
    services.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    lab.event(&format!("Corosync and Pacemaker on {node} begin again in the same boot"));
    sh::wait_for(&format!("Pacemaker on {node}"), LIMIT, Duration::from_millis(300), || {
        cluster::online(lab, node).contains(&node).then_some(())
    })
}

/// Sends a signal to programs by a command inside the host, because process ids are valid only there.
fn signal(lab: &Lab, node: Node, signal: &str, programs: &[&str]) -> Result<()> {
    let script = format!("kill {signal} $(pidof {})", programs.join(" "));
    host::must(lab, node, &["bash", "-c", &script]).map(drop)
}
