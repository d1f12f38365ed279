//! What one call of `monitor` costs on a healthy voter: programs executed, and CPU time by the kernel's accounting.

use super::table::{Figure, Sheet};
use crate::agent_call;
use crate::host;
use crate::node::Node;
use crate::sh::Result;
use crate::state::Lab;

const NODE: Node = Node::One;
const TRACE: &str = "/tmp/monitor.trace";
/// All that the call starts is in this cgroup, daemons of podman's included; what runs inside the container is not.
const CGROUP: &str = "/sys/fs/cgroup/monitor";

pub(super) fn measure(lab: &Lab, times: usize, sheet: &mut Sheet) -> Result<()> {
    let call = format!("{} >/dev/null 2>&1", agent_call::monitor(lab, NODE, 0)?);
    for _ in 0..times {
        host::must(lab, NODE, &["sh", "-c", &format!("mkdir {CGROUP} && echo $$ > {CGROUP}/cgroup.procs && {call}")])?;
        let stat = host::must(lab, NODE, &["sh", "-c", &format!("cat {CGROUP}/cpu.stat; sleep 0.5; rmdir {CGROUP}")])?;
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).ok_or("there is no cpu.stat")?;
        sheet.add(Figure::MonitorCpu, usage.trim().parse::<f64>()? / 1000.0);
        let traced = format!("rm -f {TRACE}; strace -f -qq -e trace=execve -o {TRACE} {call}; cat {TRACE}");
        let trace = host::must(lab, NODE, &["sh", "-c", &traced])?;
        sheet.add(Figure::MonitorPrograms, programs(&trace));
    }
    sheet.newest();
    Ok(())
}

/// Counts what `execve` began. The agent itself is one of them; `env` and the wrapper around jq are the lab's.
fn programs(trace: &str) -> f64 {
    let begun = trace.lines().filter(|line| line.contains("execve(") && line.ends_with("= 0"));
    let wrapper = |line: &&str| ["bin/jq\"", "bin/env\""].iter().any(|program| line.contains(program));
    let count = begun.filter(|line| !wrapper(line)).count();
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
