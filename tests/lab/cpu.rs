//! What a call costs in CPU time, by the kernel's accounting: of all that it starts, daemons included, and of nothing beside it.

use std::time::Duration;

use crate::host;
use crate::node::Node;
use crate::sh::Result;
use crate::state::Lab;

/// All that the call starts is in this cgroup; what it leaves running has half a second to end.
const CGROUP: &str = "/sys/fs/cgroup/measured";

/// Of a command line on `node`, whatever it says and however it ends.
pub fn of(lab: &Lab, node: Node, call: &str) -> Result<Duration> {
    let run = format!("mkdir {CGROUP} && echo $$ > {CGROUP}/cgroup.procs && {{ {call}; }} > /dev/null 2>&1; true");
    host::must(lab, node, &["sh", "-c", &run])?;
    let stat = host::must(lab, node, &["sh", "-c", &format!("cat {CGROUP}/cpu.stat; sleep 0.5; rmdir {CGROUP}")])?;
    let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).ok_or("there is no cpu.stat")?;
    Ok(Duration::from_micros(usage.trim().parse()?))
}
