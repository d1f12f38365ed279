//! The journals of hosts that have one: no program may have called anything an error that is not known here, with the
//! reason why it is none of Tandem's, or none at all.

use std::time::Duration;

use crate::host;
use crate::node::{NODES, Node};
use crate::sh::Result;
use crate::state::Lab;

/// What a line may hold, and why.
const KNOWN: &[(&str, &str)] = &[
    (" etcd[", "podman gives every line of a container that goes to its standard error this priority"),
    ("systemd-ssh-generator", "Debian 13's asks for a vsock that this machine has none of"),
    (
        "watchdog did not stop!",
        "systemd hands the watchdog to its own shutdown, which feeds it until the machine is off",
    ),
    ("mm_reap: preauth child terminated", "the lab's own ssh, whose login a reboot came before"),
    (
        "Error in connection setup",
        "a program ended before Pacemaker answered it: an agent's question whose time was over, on a machine this slow",
    ),
    (
        "(with errors), saving inputs",
        "Pacemaker 3.0.0's scheduler goes on saying so once it was asked before there were fence devices; crm_verify is asked",
    ),
    (
        "overlayfs: failed to resolve",
        "a container's storage that a power cut has torn, as podman does not sync it; the agent makes the container anew",
    ),
    (
        "Could not get executable for PID",
        "as it stops, Pacemaker 3.0.0 looks up the program of a daemon of its own that has ended meanwhile",
    ),
    (
        "Could not connect to attrd: Connection refused",
        "Pacemaker 2.1.5's controller tells its release before its attribute manager takes connections, on a machine this slow",
    ),
    ("Could not update attribute #feature-set=", "the same"),
    (
        "pcmk_delay_base: empty value in mapping",
        "Pacemaker 3.0.0 says so of every plain delay, and takes it all the same",
    ),
];
/// What is shown of all.
const SHOWN: usize = 12;

/// Of all boots since that moment, `expected` besides what is known; and Pacemaker has no fault to find with its configuration. Hosts of namespaces have none.
pub fn must_hold_no_error(lab: &Lab, since: Duration, expected: &[&str]) -> Result<()> {
    if host::Kind::of(lab) == host::Kind::Namespaces {
        return Ok(());
    }
    let mut found = Vec::new();
    host::must(lab, host::any_running(lab)?, &["crm_verify", "--live-check"])?;
    for node in NODES {
        let unexpected =
            errors(lab, node, since)?.into_iter().filter(|line| !expected.iter().any(|words| line.contains(words)));
        found.extend(unexpected.map(|line| format!("{node}: {line}")));
    }
    if found.is_empty() {
        return Ok(());
    }
    let count = found.len();
    found.truncate(SHOWN);
    Err(format!("the journals hold {count} errors that nobody expects: {}", found.join("\n     ")).into())
}

fn errors(lab: &Lab, node: Node, since: Duration) -> Result<Vec<String>> {
    let since = format!("--since=@{}", since.as_secs());
    let words = ["journalctl", "--priority=err", &since, "--no-pager", "--quiet", "--no-hostname", "--output=short"];
    let said = host::must(lab, node, &words)?;
    let is_known = |line: &&str| KNOWN.iter().any(|(words, _)| line.contains(words));
    Ok(said.lines().filter(|line| !is_known(line)).map(str::to_owned).collect())
}
