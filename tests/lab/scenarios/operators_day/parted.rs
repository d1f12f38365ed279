//! Steps in which a node comes up without its peer.

use std::time::Duration;

use super::{Seat, answer, comes_to_say, comes_to_show, says, types};
use crate::cluster::collector;
use crate::cluster::etcd;
use crate::cluster::typed;
use crate::host;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::scenarios::steps;
use crate::sh::{self, Result};

const LIMIT: Duration = Duration::from_secs(120);

/// Parts the nodes until one is fenced and boots into the partition. `tandem status` there must name the partition
/// and lead to the node that serves. The scenario `partition` runs `tandem confirm-recovery` there.
pub(super) fn partition(lab: &Lab, _: Seat) -> Result<()> {
    let boots = steps::boots(lab);
    net::set_partition(lab, true)?;
    let named = sh::wait_for("one node to be fenced", LIMIT, Duration::from_millis(300), || {
        let now = steps::boots(lab);
        NODES.into_iter().zip(boots.iter().zip(now)).find(|(_, (before, now))| now.is_some() && *before != now)
    });
    let named = named.and_then(|(fenced, _)| is_named(lab, fenced).map(|()| fenced));
    net::set_partition(lab, false)?;
    joins(lab, named?)
}

fn is_named(lab: &Lab, fenced: Node) -> Result<()> {
    let winner = fenced.other();
    steps::wait_pacemaker(lab, fenced)?;
    let words = [
        format!("{fenced} came up alone, and Corosync waits for {winner}"),
        format!("{winner}'s BMC says: On: it is probably serving, and only the network between the two is cut"),
    ];
    let said = comes_to_show(lab, fenced, &words.each_ref().map(String::as_str))?;
    must("nothing is offered that it could not hear", said, |said| !said.contains("pcs cluster start"))?;
    let (code, said) = types(lab, fenced, "waits-for-peer", &format!("ssh {winner} tandem status"))?;
    must(&format!("the winner serves alone: {said}"), code, |code| *code == 3).map(drop)
}

/// Checks that `tandem status` does not ask the operator to choose the data, because the fenced node joins by itself.
fn joins(lab: &Lab, fenced: Node) -> Result<()> {
    let has_joined = || etcd::two_voters(lab).is_ok();
    let ends = sh::wait_for("two voters", LIMIT, Duration::from_millis(300), || {
        let said = NODES.map(|on| answer(lab, on, "tandem status").map(|(_, said)| said).unwrap_or_default());
        let asked = said.iter().any(|said| said.contains("choose the data to keep"));
        (asked || has_joined()).then_some(asked)
    })?;
    must(&format!("{fenced} joins, and the operator is asked for no choice"), ends, |asked| !asked).map(drop)
}

/// Switches one of two powered-off machines on. `tandem status` there must offer the command that switches the other
/// one on.
pub(super) fn one_comes_back(lab: &Lab, seat: Seat) -> Result<()> {
    let Seat { here, there, boot_delay } = seat;
    for node in [here, there] {
        steps::cut(lab, node)?;
    }
    steps::on(lab, here, boot_delay)?;
    steps::wait_pacemaker(lab, here)?;
    let off = format!("{there}'s BMC says: Off: switch {there} on, and nothing is lost");
    comes_to_show(lab, here, &[&off])?;
    says(lab, here, &format!("tandem power status {there}"), 3, &["Off"])?;
    lab.set("boot-delay", "0")?;
    let (code, said) = types(lab, here, "waits-for-peer", &format!("tandem power on {there}"))?;
    must(&format!("it is on: {said}"), code, |code| *code == 0)?;
    comes_to_say(lab, here, "tandem status", 0, &["redundant"]).map(drop)
}

/// Gives a node up by `tandem confirm-recovery` after both have failed. When that node returns, its old data must be kept next to its data
/// dir and be readable. The event must name the operator's user.
pub(super) fn given_up(lab: &Lab, seat: Seat) -> Result<()> {
    let Seat { here: left, there: peer, boot_delay } = seat;
    lab.set("boot-delay", "3600")?;
    steps::cut(lab, left)?;
    steps::wait_alone(lab, peer)?;
    // The other node does not have these writes.
    host::must(lab, peer, &["tandem", "etcdctl", "put", "operators-day", "alone"])?;
    std::thread::sleep(Duration::from_secs(2));
    steps::cut(lab, peer)?;
    lab.set("boot-delay", "0")?;
    power::on(lab, left)?;
    steps::wait_pacemaker(lab, left)?;
    let off = format!("{peer}'s BMC says: Off");
    comes_to_show(lab, left, &[&off, "'tandem confirm-recovery'"])?;
    let answers = format!("printf '{peer}\\nyes\\n{peer}\\n' | tandem confirm-recovery");
    says(lab, left, &answers, 0, &[&format!("Nothing is lost if you start {peer}")])?;
    steps::wait_alone(lab, left)?;
    comes_to_say(lab, left, "tandem events --since 1h", 0, &["EtcdWritesGivenUp", "root"])?;
    let (code, said) = types(lab, left, "node-offline", &format!("tandem power on {peer}"))?;
    must(&format!("it is on: {said}"), code, |code| *code == 0)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    kept(lab, left, peer)?;
    lab.set("boot-delay", &boot_delay.to_string())
}

fn kept(lab: &Lab, left: Node, peer: Node) -> Result<()> {
    says(lab, peer, "tandem data-dir list", 0, &["history", "member-history-"])?;
    collector::collect(lab)?;
    let lists = format!("ssh {peer} tandem data-dir diff /var/lib/etcd/member-history-");
    // Older copies of other scenarios may be there, too.
    let command = typed::command_that_begins(lab, left, "moved-aside", &lists)?;
    let (code, said) = typed::types(lab, left, &command)?;
    must("its keys are listed", (code, said), |(code, said)| matches!(*code, 0 | 3) && said.contains("fork"))?;
    let shows = command.replace("data-dir diff", "data-dir show").replace(" live", "");
    let (code, said) = typed::types(lab, left, &shows)?;
    must("it is read where it lies", (code, said), |(code, said)| *code == 0 && said.contains("index"))?;
    collector::forget(lab)
}
