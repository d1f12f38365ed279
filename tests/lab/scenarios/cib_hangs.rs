//! Pacemaker's CIB does not answer on one node while its etcd is stopped. The stop ends within its time all the same, and
//! ends etcd. It cannot know what the peer does, so it leaves the member list as it is, and the peer waits, as for any
//! voter that it lost. Once the CIB answers, both come back, with nothing lost.

use std::time::{Duration, Instant};

use super::steps;
use crate::agent_call;
use crate::check::must;
use crate::etcd;
use crate::host;
use crate::node::Node;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

/// What the stop is given.
const STOP_TAKES: Duration = Duration::from_secs(40);
/// A question to a CIB that hangs takes longer.
const UNANSWERED: Duration = Duration::from_secs(5);
/// For how long the peer is seen to wait.
const PEER_WAITS: Duration = Duration::from_secs(3);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader.other();
    let mut writers = super::writing(lab)?;
    let call = agent_call::stop(lab, node, STOP_TAKES)?;
    // The stop is ours and not Pacemaker's, which is not to start what it did not stop.
    steps::maintenance(lab, true)?;
    // Its daemons look after each other: the one that would end a hanging CIB hangs with it.
    signal(lab, node, "STOP")?;
    lab.event(&format!("the CIB on {node} hangs"));
    let stopped = stops(lab, node, &call);
    signal(lab, node, "CONT")?;
    lab.event(&format!("the CIB on {node} answers again"));
    // Who does not know what its peer does is not taken off the list: the peer has lost a voter, and waits.
    let left = stopped.and_then(|()| steps::nobody_writes(&writers, PEER_WAITS));
    steps::maintenance(lab, false)?;
    left?;
    super::ends_well(lab, &mut writers)
}

/// Stops the CIB's daemon of a node, and the one that looks after it, or lets both continue.
pub(super) fn signal(lab: &Lab, node: Node, name: &str) -> Result<()> {
    let daemons = format!("kill -{name} $(pidof pacemakerd) $(pidof pacemaker-based)");
    host::must(lab, node, &["sh", "-c", &daemons]).map(drop)
}

fn stops(lab: &Lab, node: Node, call: &str) -> Result<()> {
    let began = Instant::now();
    let done = host::output(lab, node, &["sh", "-c", call])?;
    let took = began.elapsed();
    println!("   the stop took {:.1} s", took.as_secs_f64());
    must("the stop succeeds", &done, |done| done.ok)?;
    must("it ends within its time", took, |took| *took < STOP_TAKES)?;
    must("the CIB told it nothing", took, |took| *took > UNANSWERED)?;
    must("no etcd runs after it", etcd::pid(lab, node), Option::is_none).map(drop)
}
