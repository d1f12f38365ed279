//! Pacemaker's CIB does not answer on one node while its etcd is stopped. The stop still ends within its time-out, and
//! ends etcd. It leaves the member list unchanged, because it cannot know the peer's state. So the peer waits, as for
//! any lost voter. Once the CIB answers, both come back, with nothing lost.

use std::time::{Duration, Instant};

use super::steps;
use crate::cluster::agent_call;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::judge::figures;
use crate::sh::Result;

/// The time-out with which the scenario calls the agent's `stop`.
const STOP_TAKES: Duration = Duration::from_secs(40);
/// The least time that the stop must take, which shows that its query got no answer from the hanging CIB.
const UNANSWERED: Duration = Duration::from_secs(5);
/// The time in which the peer must acknowledge no write, because it waits for the stopped node.
const PEER_WAITS: Duration = Duration::from_secs(3);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader.other();
    let mut writers = super::writing(lab)?;
    let call = agent_call::stop(lab, node, STOP_TAKES)?;
    // Pacemaker must not start etcd again, because this stop is not its own.
    steps::maintenance(lab, true)?;
    // Pacemaker's daemons supervise each other, so the one that would end a hanging CIB is stopped, too.
    signal(lab, node, "STOP")?;
    lab.event(&format!("the CIB on {node} hangs"));
    let stopped = stops(lab, node, &call);
    signal(lab, node, "CONT")?;
    lab.event(&format!("the CIB on {node} answers again"));
    // A node that does not know its peer's state stays on the list: the peer has lost a voter, and waits.
    let left = stopped.and_then(|()| steps::nobody_writes(&writers, PEER_WAITS));
    steps::maintenance(lab, false)?;
    left?;
    super::ends_well(lab, &mut writers)
}

/// Sends the signal `name`, STOP or CONT, to a node's CIB daemon and to `pacemakerd`, which supervises it.
pub(super) fn signal(lab: &Lab, node: Node, name: &str) -> Result<()> {
    let daemons = format!("kill -{name} $(pidof pacemakerd) $(pidof pacemaker-based)");
    host::must(lab, node, &["sh", "-c", &daemons]).map(drop)
}

fn stops(lab: &Lab, node: Node, call: &str) -> Result<()> {
    let began = Instant::now();
    let done = host::output(lab, node, &["sh", "-c", call])?;
    let took = began.elapsed();
    figures::print(format!("the stop took {:.1} s", took.as_secs_f64()));
    must("the stop succeeds", &done, |done| done.ok)?;
    must("it ends within its time", took, |took| *took < STOP_TAKES)?;
    must("the CIB told it nothing", took, |took| *took > UNANSWERED)?;
    must("no etcd runs after it", etcd::pid(lab, node), Option::is_none).map(drop)
}
