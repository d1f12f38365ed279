//! Tandem takes over a cluster of the shell agent in maintenance mode, and hands it back. etcd never stops: the
//! processes stay the same, and writers notice nothing.

use std::time::Duration;

use super::readme;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::judge::figures;
use crate::load::writer::Writers;
use crate::programs::shell_agent::{self, Agent};
use crate::sh::{self, Result};

/// The limit for a writer's gap while another agent takes etcd over. The measured gap on a busy machine is 0.1 s.
const LONGEST_GAP: Duration = Duration::from_secs(1);
/// The time in which the new agent has completed a monitor. The shell agent's `monitor` runs every 30 s.
pub(super) const ONE_MONITOR: Duration = Duration::from_secs(40);

pub fn there_and_back(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let before = processes(lab)?;
    hand_over(lab, &NODES, Agent::Tandem)?;
    monitored(lab, "monitor: a voter of two")?;
    no_gap(&writers)?;
    hand_over(lab, &NODES, Agent::Shell)?;
    monitored(lab, "member list:")?;
    no_gap(&writers)?;
    nothing_of_ours(lab)?;
    if processes(lab)? != before {
        return Err("etcd was started anew".into());
    }
    super::ends_well(lab, &mut writers)
}

/// Checks a cluster that Tandem has taken over from the shell agent. A node loses power, the other one runs
/// standalone, and both vote again.
pub fn and_kept(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    hand_over(lab, &NODES, Agent::Tandem)?;
    monitored(lab, "monitor: a voter of two")?;
    no_gap(&writers)?;
    // Two monitors pass, because the first one claims, and the second one relies on the claim.
    std::thread::sleep(ONE_MONITOR);
    lab.set("boot-delay", "0")?;
    power::cut(lab, Node::Two)?;
    let cut_at = writers.now();
    sh::wait_for(
        "an acknowledged write after the power cut",
        Duration::from_secs(90),
        Duration::from_millis(50),
        || writers.first_after(cut_at),
    )?;
    super::ends_well(lab, &mut writers)
}

/// Returns the id of the etcd container and of its process on each host.
fn processes(lab: &Lab) -> Result<Vec<String>> {
    NODES
        .into_iter()
        .map(|node| host::must(lab, node, &["podman", "inspect", "--format", "{{.Id}} {{.State.Pid}}", "etcd"]))
        .collect()
}

/// Runs the commands of `docs/operate/take-over.md` that hand etcd to another agent. Pacemaker stops managing the
/// resource, the agent's file is replaced, and Pacemaker manages the resource again.
pub(super) fn hand_over(lab: &Lab, nodes: &[Node], agent: Agent) -> Result<()> {
    readme::typed(lab, " to let go")?;
    nodes.iter().try_for_each(|node| shell_agent::put(lab, *node, agent))?;
    if agent == Agent::Shell {
        readme::typed(lab, " to hand back")?;
    }
    readme::typed(lab, " to take hold")
}

/// Checks that nothing of Tandem's own data is left in the CIB and on the disks.
fn nothing_of_ours(lab: &Lab) -> Result<()> {
    let names = ["etcd_record", "etcd_alarm", "etcd_lineage", "etcd_primary"];
    let left = || -> Result<Vec<String>> {
        let cib = host::must(lab, Node::One, &["cibadmin", "--query"])?;
        let lines = cib.lines().filter(|line| names.iter().any(|name| line.contains(name)));
        Ok(lines.map(str::to_owned).collect())
    };
    let is_nothing = |left: &Result<Vec<String>>| left.as_ref().is_ok_and(Vec::is_empty);
    eventually("nothing of Tandem is left in the CIB", left, is_nothing)??;
    for node in NODES {
        // The fence agent is still Tandem's, and records its BMC's answer at each monitor.
        let files = "ls -d /var/lib/etcd/tandem/tandem-note.json /run/resource-agents/podman-etcd-*; \
             find /var/lib/tandem -mindepth 1 -not -path '/var/lib/tandem/bmc*'";
        let left = host::output(lab, node, &["sh", "-c", files])?.stdout;
        must(&format!("nothing of Tandem is left on {node}"), left, String::is_empty)?;
    }
    Ok(())
}

/// Waits until the agent on both hosts has logged `words` in a monitor.
fn monitored(lab: &Lab, words: &str) -> Result<()> {
    let seen = |node: Node| std::fs::read_to_string(lab.messages(node)).unwrap_or_default().matches(words).count();
    let before = NODES.map(seen);
    let limit = ONE_MONITOR * 4;
    sh::wait_for("a monitor of the agent in place", limit, Duration::from_millis(500), || {
        (0..NODES.len()).all(|at| seen(NODES[at]) > before[at]).then_some(())
    })?;
    etcd::wait_two_voters(lab, Duration::from_secs(60)).map(drop)
}

fn no_gap(writers: &Writers) -> Result<()> {
    let (gap, at) = writers.longest_wait();
    figures::print(format!("longest gap between writes so far {:.2} s", gap.as_secs_f64()));
    if gap <= LONGEST_GAP {
        return Ok(());
    }
    Err(format!("writers waited for {:.1} s, {:.1} s after they began", gap.as_secs_f64(), at.as_secs_f64()).into())
}
