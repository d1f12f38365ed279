//! The cost of one `monitor` on a healthy voter: the programs executed, and the CPU time by the kernel's accounting.

use super::table::{Figure, Sheet};
use crate::cluster::agent_call;
use crate::host;
use crate::host::cpu;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

const NODE: Node = Node::One;
const TRACE: &str = "/tmp/monitor.trace";

pub(super) fn measure(lab: &Lab, times: usize, sheet: &mut Sheet) -> Result<()> {
    let call = agent_call::monitor(lab, NODE, 0)?;
    for _ in 0..times {
        // The time does not include processes inside the container.
        let cpu = || cpu::of(lab, NODE, &call).map(|time| time.as_secs_f64() * 1000.0);
        forget_the_last(lab)?;
        sheet.add(Figure::MonitorCpu, cpu()?);
        sheet.add(Figure::ShortMonitorCpu, cpu()?);
        forget_the_last(lab)?;
        let traced =
            format!("rm -f {TRACE}; strace -f -qq -e trace=execve -o {TRACE} {call} > /dev/null 2>&1; cat {TRACE}");
        let trace = host::must(lab, NODE, &["sh", "-c", &traced])?;
        sheet.add(Figure::MonitorPrograms, programs(&trace));
    }
    sheet.newest();
    Ok(())
}

/// Removes the cached result of the last `monitor`, so that the next call checks everything.
fn forget_the_last(lab: &Lab) -> Result<()> {
    host::must(lab, NODE, &["rm", "-f", "/run/resource-agents/podman-etcd-etcd-monitor.json"]).map(drop)
}

/// Counts the programs that one call of the agent starts, from the successful `execve` calls in `trace`. The agent
/// itself counts. `env` and the wrapper around jq do not, because the lab adds them.
fn programs(trace: &str) -> f64 {
    let begun = trace.lines().filter(|line| line.contains("execve(") && line.ends_with("= 0"));
    let wrapper = |line: &&str| ["bin/jq\"", "bin/env\""].iter().any(|program| line.contains(program));
    let count = begun.filter(|line| !wrapper(line)).count();
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
