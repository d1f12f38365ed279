//! Nodes get a shutdown, a resource that stops before etcd is slow, and then the switch fails. Each node has lost a
//! peer that Pacemaker expected to end, while the peer's etcd runs. That is no proof that the peer is off.

use std::time::Duration;

use super::steps::{self, THREE_MONITORS};
use crate::cluster::pacemaker;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::cluster::{self, ETCD_CLONE};
use crate::host;
use crate::host::bmc;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::load::writer::Writers;
use crate::sh::{self, Result};

const AGENT: &str = "/usr/lib/ocf/resource.d/lab/slow";
/// The file that the slow service's agent creates when its stop begins.
const STOPS: &str = "/run/lab-slow-stops";
/// The file that makes the slow service's stop hang as long as the file exists.
const HOLD: &str = "/run/lab-slow-hold";
const SLOW: &str = "#!/bin/sh
mark=/run/lab-slow
case $1 in
    start) : > $mark ;;
    stop)
        [ ! -e $mark ] || : > /run/lab-slow-stops
        while [ -e /run/lab-slow-hold ]; do sleep 0.1; done
        rm -f $mark
        ;;
    monitor) [ -e $mark ] || exit 7 ;;
    meta-data)
        cat <<END
<?xml version=\"1.0\"?>
<resource-agent name=\"slow\"><version>1.0</version>
<longdesc lang=\"en\">Stops when it is let</longdesc><shortdesc lang=\"en\">Stops when it is let</shortdesc>
<parameters/>
<actions>
<action name=\"start\" timeout=\"20s\"/><action name=\"stop\" timeout=\"20s\"/>
<action name=\"monitor\" timeout=\"20s\" interval=\"10s\"/><action name=\"meta-data\" timeout=\"5s\"/>
</actions>
</resource-agent>
END
        ;;
esac
";

pub fn both(lab: &Lab, _: Wish) -> Result<()> {
    run(lab, &NODES)
}

/// Shuts down the node that is not Pacemaker's designated controller. A controller that shuts down would fence only after its own stop.
pub fn one(lab: &Lab, _: Wish) -> Result<()> {
    run(lab, &[cluster::coordinator(lab, NODES[0])?.other()])
}

fn run(lab: &Lab, asked: &[Node]) -> Result<()> {
    let mut writers = super::writing(lab)?;
    add_the_slow(lab)?;
    let booted = steps::boots(lab);
    let cut_at = parted(lab, &writers, asked)?;
    std::thread::sleep(THREE_MONITORS);
    let wrote = steps::who_wrote(&writers, cut_at);
    mend(lab, asked)?;
    must("no node takes writes beside a peer that is not confirmed off", wrote, Vec::is_empty)?;
    boot_again(lab, asked, booted)?;
    super::ends_well(lab, &mut writers)?;
    remove_the_slow(lab)
}

/// Asks the nodes to shut down. While their stops hang, parts the nodes from each other and from both BMCs. Returns the time of the
/// partition, since the writers began.
fn parted(lab: &Lab, writers: &Writers, asked: &[Node]) -> Result<Duration> {
    for node in asked {
        host::must(lab, *node, &["touch", HOLD])?;
    }
    for node in asked {
        pacemaker::ask_to_end(lab, *node, "pacemakerd")?;
    }
    // The first request starts a transition, and the other node's stop may follow only after that one. The request
    // itself is enough.
    sh::wait_for(
        "a stop to begin, and all to have asked",
        Duration::from_secs(60),
        Duration::from_millis(100),
        || {
            let begins = asked.iter().any(|node| host::must(lab, *node, &["test", "-e", STOPS]).is_ok());
            let has_asked =
                |node: &Node| cluster::attribute(lab, *node, "reboot", "shutdown").is_some_and(|at| at != "0");
            (begins && asked.iter().all(has_asked)).then_some(())
        },
    )?;
    for node in NODES {
        bmc::set_mode(lab, node, "unreachable")?;
    }
    net::set_partition(lab, true)?;
    let cut_at = writers.now();
    NODES.into_iter().try_for_each(|node| steps::wait_peer_gone(lab, node))?;
    Ok(cut_at)
}

/// Makes the BMCs reachable, connects the nodes, and ends the hang of the stops.
fn mend(lab: &Lab, asked: &[Node]) -> Result<()> {
    for node in NODES {
        bmc::set_mode(lab, node, "ok")?;
    }
    net::set_partition(lab, false)?;
    for node in asked.iter().filter(|node| host::running(lab, **node).is_some()) {
        // The node may be fenced at this moment.
        let _ = host::must(lab, *node, &["rm", "-f", HOLD]);
    }
    Ok(())
}

/// Waits until each node has shut down, and boots it. A node that was fenced meanwhile needs no boot, because fencing has booted it.
fn boot_again(lab: &Lab, asked: &[Node], before: [Option<i32>; 2]) -> Result<()> {
    for node in asked {
        let at = usize::from(node.number() - 1);
        let what = format!("{node} to shut down, or to be fenced");
        sh::wait_for(&what, Duration::from_secs(180), Duration::from_millis(300), || {
            let boot = steps::boots(lab)[at]?;
            (Some(boot) != before[at] || !pacemaker::runs(lab, *node, "pacemakerd")).then_some(())
        })?;
        if steps::boots(lab)[at] == before[at] {
            power::cut(lab, *node)?;
            power::on(lab, *node)?;
        }
    }
    Ok(())
}

fn add_the_slow(lab: &Lab) -> Result<()> {
    for node in NODES {
        host::put(lab, node, AGENT, SLOW)?;
        host::must(lab, node, &["chmod", "755", AGENT])?;
    }
    let by = NODES[0];
    let slow = ["slow", "ocf:lab:slow", "op", "stop", "timeout=300s"];
    pcs::create_clone(lab, by, pcs::run, &slow, &["clone", "interleave=true"])?;
    pcs::run(lab, by, &["constraint", "order", ETCD_CLONE, "then", "slow-clone"])?;
    let started = |node| host::must(lab, node, &["test", "-e", "/run/lab-slow"]).is_ok();
    sh::wait_for("the slow one on both nodes", Duration::from_secs(90), Duration::from_millis(300), || {
        NODES.into_iter().all(started).then_some(())
    })
}

fn remove_the_slow(lab: &Lab) -> Result<()> {
    let by = NODES[0];
    host::must(lab, by, &["cibadmin", "--delete-all", "--force", "--xpath", "//rsc_order"])?;
    pcs::run(lab, by, &["resource", "delete", "--force", "slow"])
}
