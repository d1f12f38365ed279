//! Pacemaker commands that an operator could also type. A command of `tandem` runs them after the operator has agreed.

use std::time::Duration;

use super::Error;
use crate::adapters::command::Programs;

/// The time limit of a Pacemaker tool that waits for a transition or for the other node.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The time that this program waits beyond a tool's own time-out.
const PATIENCE: Duration = Duration::from_secs(10);

/// Grants quorum to this node's partition, although not all nodes have been together since Corosync started. `pcs quorum unblock` does the
/// same, and also confirms fencing.
pub fn grant_quorum(programs: &Programs) -> Result<(), Error> {
    run(programs, "corosync-cmapctl", &["-s", "quorum.cancel_wait_for_all", "u8", "1"])
}

/// Confirms to Pacemaker that `node` is off, as `pcs stonith confirm` does. The operator has verified that.
pub fn confirm_off(programs: &Programs, node: &str) -> Result<(), Error> {
    run(programs, "stonith_admin", &["--confirm", node])
}

/// Makes Pacemaker fence `node` by a reboot, and waits for the result. The fencer finishes the reboot even if this process ends.
pub fn reboot(programs: &Programs, node: &str, limit: Duration) -> Result<(), Error> {
    let seconds = limit.as_secs().to_string();
    let args = ["--reboot", node, "--timeout", &seconds];
    run_within(programs, "stonith_admin", &args, limit + PATIENCE)
}

/// Makes Pacemaker's fencer power `node` off, and waits until a fence agent has proved Off. The fencer finishes even if this process ends.
pub fn fence(programs: &Programs, node: &str, limit: Duration) -> Result<(), Error> {
    let seconds = limit.as_secs().to_string();
    run_within(programs, "stonith_admin", &["--fence", node, "--timeout", &seconds], limit + PATIENCE)
}

/// Makes Pacemaker's daemons forget `node`, which is no longer in the cluster. Does not wait until they have done so.
pub fn forget_node(programs: &Programs, node: &str) -> Result<(), Error> {
    run(programs, "crm_node", &["--force", "--remove", node])
}

/// Clears the failures of `resource` on `node`, so that Pacemaker starts it again.
pub fn forget_failures(programs: &Programs, resource: &str, node: &str) -> Result<(), Error> {
    run(programs, "crm_resource", &["--cleanup", "--resource", resource, "--node", node])
}

fn run(programs: &Programs, tool: &'static str, args: &[&str]) -> Result<(), Error> {
    run_within(programs, tool, args, TIMEOUT)
}

fn run_within(programs: &Programs, tool: &'static str, args: &[&str], limit: Duration) -> Result<(), Error> {
    let output = programs.run(tool, args, limit)?;
    if output.code == 0 {
        return Ok(());
    }
    Err(Error::ByHand { command: format!("{tool} {}", args.join(" ")), complaint: output.complaint().to_owned() })
}
