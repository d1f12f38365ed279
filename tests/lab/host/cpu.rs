//! The CPU time of a call, by the kernel's accounting: of all processes that it starts, daemons included, and of no
//! other process.

use std::time::Duration;

use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

/// The cgroup in which the measured command line runs with its children. The measurement fails if a process is left
/// in it half a second later.
const CGROUP: &str = "/sys/fs/cgroup/measured";

/// Returns the CPU time of a command line on `node` and of its children, whatever the output and the exit code are.
pub fn of(lab: &Lab, node: Node, call: &str) -> Result<Duration> {
    let run = format!("mkdir {CGROUP} && echo $$ > {CGROUP}/cgroup.procs && {{ {call}; }} > /dev/null 2>&1; true");
    host::must(lab, node, &["sh", "-c", &run])?;
    let stat = host::must(lab, node, &["sh", "-c", &format!("cat {CGROUP}/cpu.stat; sleep 0.5; rmdir {CGROUP}")])?;
    let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).ok_or("there is no cpu.stat")?;
    Ok(Duration::from_micros(usage.trim().parse()?))
}
