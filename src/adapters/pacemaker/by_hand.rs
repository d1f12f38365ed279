//! What an operator would type, done for him by a command that has asked him.

use std::time::Duration;

use super::Error;
use crate::adapters::command::Programs;

/// These wait for a transition, or for the other side of the cluster.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Beyond the time that a tool was given itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lets this partition have quorum although it was never whole since it started (`pcs quorum unblock`, without its own
/// fencing confirmation).
pub fn grant_quorum(programs: &Programs) -> Result<(), Error> {
    run(programs, "corosync-cmapctl", &["-s", "quorum.cancel_wait_for_all", "u8", "1"])
}

/// Tells Pacemaker that somebody has seen that `node` is off (`pcs stonith confirm`).
pub fn confirm_off(programs: &Programs, node: &str) -> Result<(), Error> {
    run(programs, "stonith_admin", &["--confirm", node])
}

/// Has Pacemaker fence `node` by a reboot, and waits for it. What the fencer has begun it finishes, whoever waits or not.
pub fn reboot(programs: &Programs, node: &str, limit: Duration) -> Result<(), Error> {
    let seconds = limit.as_secs().to_string();
    let args = ["--reboot", node, "--timeout", &seconds];
    run_within(programs, "stonith_admin", &args, limit + PATIENCE)
}

/// Has Pacemaker's fencer power `node` off, and waits until a fence agent has proven it. What the fencer has begun it finishes.
pub fn fence(programs: &Programs, node: &str, limit: Duration) -> Result<(), Error> {
    let seconds = limit.as_secs().to_string();
    run_within(programs, "stonith_admin", &["--fence", node, "--timeout", &seconds], limit + PATIENCE)
}

/// Has Pacemaker's daemons forget `node`, which is out of the cluster. The tool does not wait for their answer.
pub fn forget_node(programs: &Programs, node: &str) -> Result<(), Error> {
    run(programs, "crm_node", &["--force", "--remove", node])
}

/// Forgets the failures of `resource` on `node`, so that Pacemaker tries again.
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
