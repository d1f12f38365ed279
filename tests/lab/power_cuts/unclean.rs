//! Runs with more than power cuts: shutdowns that hang, Pacemaker that ends while its node stays up, agents that are
//! killed.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::draw::{AgentKilled, End, PacemakerEnds, ShutDown};
use super::run::Scene;
use super::slow;
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pacemaker;
use crate::cluster::pcs;
use crate::cluster::up;
use crate::host;
use crate::host::bmc;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::scenarios::steps;
use crate::sh::{self, Result};

/// The time after which the lab ends a shutdown by the power button.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(120);
/// The time-out for a recovery: detection, fencing with its delay, and one more try.
const RECOVERY_LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(10);
/// The text that the agent logs at the beginning of its recovery.
const RECOVERS: &str = "that it runs standalone";
/// The time for which no etcd may run after its stop, in addition to the time of a launch.
const INERT: Duration = Duration::from_secs(4);

impl Scene<'_> {
    /// Starts a shutdown on both nodes, which hangs, and then parts the nodes for a while. Neither node is switched
    /// off meanwhile.
    pub(super) fn shut_down(&self, draw: ShutDown) -> Result<()> {
        let boots = self.boots();
        for node in NODES {
            slow::hold(self.lab, node)?;
        }
        let first = self.node(draw.first);
        pacemaker::ask_to_end(self.lab, first, "pacemakerd")?;
        std::thread::sleep(draw.apart);
        pacemaker::ask_to_end(self.lab, first.other(), "pacemakerd")?;
        std::thread::sleep(draw.parted);
        self.set_bmcs(if draw.bmcs { "ok" } else { "unreachable" })?;
        net::set_partition(self.lab, true)?;
        std::thread::sleep(draw.lasts);
        self.set_bmcs("ok")?;
        net::set_partition(self.lab, false)?;
        for node in NODES {
            slow::release(self.lab, node);
        }
        for node in NODES {
            self.ended(node, boots)?;
        }
        self.lab.set("boot-delay", "0")?;
        NODES.into_iter().try_for_each(|node| power::on(self.lab, node))
    }

    /// Waits until the node has shut down, and then switches it off. A node that was fenced meanwhile also counts as
    /// shut down.
    fn ended(&self, node: Node, before: [Option<i32>; 2]) -> Result<()> {
        let at = usize::from(node.number() - 1);
        let is_fenced = || self.boots()[at] != before[at];
        let ended = || is_fenced() || !pacemaker::runs(self.lab, node, "pacemakerd");
        sh::wait_for_quietly(SHUTDOWN_LIMIT, Duration::from_millis(300), ended);
        crate::interrupt::check()?;
        if is_fenced() { Ok(()) } else { power::cut(self.lab, node) }
    }

    fn boots(&self) -> [Option<i32>; 2] {
        NODES.map(|node| host::running(self.lab, node).map(|init| init.pid))
    }

    fn set_bmcs(&self, mode: &str) -> Result<()> {
        NODES.into_iter().try_for_each(|node| bmc::set_mode(self.lab, node, mode))
    }

    /// Ends Pacemaker on one node while etcd continues, cuts the other node's power, and starts Pacemaker again in the
    /// same boot.
    pub(super) fn pacemaker_ends(&self, draw: PacemakerEnds) -> Result<()> {
        let lab = self.lab;
        let (left, other) = (self.node(draw.left), self.node(draw.left).other());
        let boots = self.boots();
        match draw.end {
            End::Maintenance { .. } => {
                pcs::run(lab, other, &["node", "maintenance", left.name()])?;
                pacemaker::end(lab, left)?;
            }
            End::Killed => pacemaker::kill(lab, left)?,
        }
        if let End::Maintenance { cable: Some(time), .. } = draw.end {
            net::set_partition(lab, true)?;
            std::thread::sleep(time);
        }
        std::thread::sleep(draw.after);
        // The other node must stay away for a while, even if it is fenced.
        lab.set("boot-delay", &draw.away.as_secs().to_string())?;
        power::cut(lab, other)?;
        net::set_partition(lab, false)?;
        let at = usize::from(left.number() - 1);
        if self.boots()[at] == boots[at] {
            pacemaker::begin(lab, left)?;
        } else {
            // The node was fenced in time, and its boot may take a while.
            power::on(lab, left)?;
            sh::wait_for("the fenced node to boot", RECOVERY_LIMIT, Duration::from_millis(300), || {
                cluster::online(lab, left).contains(&left).then_some(())
            })?;
        }
        if draw.unblocked {
            host::must(lab, left, &["corosync-cmapctl", "-s", "quorum.cancel_wait_for_all", "u8", "1"])?;
            lab.event(&format!("{left} is granted quorum"));
        }
        let over = || pcs::run(lab, left, &["node", "unmaintenance", left.name()]);
        if matches!(draw.end, End::Maintenance { over_alone: true, .. }) {
            over()?;
        }
        std::thread::sleep(draw.away);
        lab.set("boot-delay", "0")?;
        power::on(lab, other)?;
        up::wait_online(lab)?;
        if matches!(draw.end, End::Maintenance { over_alone: false, .. }) {
            over()?;
        }
        Ok(())
    }

    /// Cuts one node's power, and kills the agent on the other node while it makes that node run standalone. The
    /// whole process group is killed, as Pacemaker does it.
    pub(super) fn agent_killed(&self, draw: AgentKilled) -> Result<()> {
        let (lab, victim) = (self.lab, self.node(draw.victim));
        let survivor = victim.other();
        slow::podman(lab, survivor, draw.slow)?;
        let from = steps::log_length(lab, survivor);
        power::cut(lab, victim)?;
        sh::wait_for("a recovery to begin", RECOVERY_LIMIT, POLL, || {
            steps::said(lab, survivor, from).contains(RECOVERS).then_some(())
        })?;
        std::thread::sleep(draw.after);
        let group =
            sh::wait_for("an agent that acts", RECOVERY_LIMIT, POLL, || self.agent(survivor).map(Pid::from_raw))?;
        killpg(group, Signal::SIGKILL)?;
        lab.event(&format!("the agent on {survivor} got SIGKILL, with its group"));
        if draw.stopped {
            self.stopped(survivor, draw.slow)?;
        }
        slow::podman_as_it_was(lab, survivor)?;
        self.on_after_recovery(draw.victim)
    }

    /// Returns the process group of the agent's running action on a node. `None` if no action runs.
    fn agent(&self, node: Node) -> Option<i32> {
        let processes =
            fs::read_to_string(host::namespaces::cgroup(self.lab, node).ok()?.join("init/cgroup.procs")).ok()?;
        processes.lines().find_map(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
            let acts = ["notify", "monitor", "start", "stop"].contains(&words.get(1)?.as_ref());
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The fields after the name in brackets are state, parent and group.
            let group = stat.get(stat.rfind(')')? + 2..)?.split(' ').nth(2)?.parse().ok()?;
            (words[0].ends_with("/podman-etcd") && acts && group > 1).then_some(group)
        })
    }

    /// Stops etcd on the node after the agent's kill. Checks that this ends etcd, and any container that was being
    /// launched.
    fn stopped(&self, node: Node, launch: Duration) -> Result<()> {
        pcs::run(self.lab, node, &["node", "standby", node.name()])?;
        // Pacemaker's reaction to the kill may still run, and includes a start after a stop.
        steps::wait_through_with(self.lab, node)?;
        steps::wait_stopped(self.lab, &[node])?;
        let until = self.writers.now() + launch + INERT;
        while self.writers.now() < until {
            if etcd::pid(self.lab, node).is_some() {
                return Err(format!("an etcd runs on {node}, where its stop has ended").into());
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        pcs::run(self.lab, node, &["node", "unstandby", node.name()])
    }
}
