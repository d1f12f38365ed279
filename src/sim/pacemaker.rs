//! Pacemaker in the model: who is a member, the CIB and its replicas, fencing, and which action runs when.

use super::Violation;
use super::etcd;
use super::view::NAMES;
use super::world::{Action, Cib, Newer, Node, Operation, Vars, Wanted, Word, World};
use crate::decide::snapshot::{Moment, PeerAgent, PeerNode};
use crate::decide::{Exit, Request};

/// Writes to the CIB from node `n`: both replicas get it, unless they are apart or one stands still.
pub fn write(world: &mut World, n: usize, change: impl Fn(&mut Cib)) {
    let together = are_together(world);
    for other in 0..2 {
        if (other == n || together) && world.lagging.map(usize::from) != Some(other) {
            change(&mut world.nodes[other].cib);
        }
    }
    if !together {
        let me = u8::try_from(n).unwrap_or_default();
        world.newer = match world.newer {
            Newer::Equal => Newer::Of(me),
            Newer::Of(who) if who == me => Newer::Of(me),
            Newer::Of(_) | Newer::Diverged => Newer::Diverged,
        };
    }
}

/// Whether nothing that is written is applied yet: Corosync delivers to all members or to none, so from the loss of one
/// until the membership without it not even the writer sees his own write.
pub fn holds_writes_back(world: &World) -> bool {
    world.joined && !are_together(world)
}

/// The CIB that Pacemaker's scheduler acts on where `n` is a member: the one that does not stand still.
fn scheduler_cib(world: &World, n: usize) -> &Cib {
    let stands_still = world.joined && world.lagging.map(usize::from) == Some(n);
    if stands_still { &world.nodes[1 - n].cib } else { &world.nodes[n].cib }
}

/// Whether what one writes reaches the other; a membership may not have noticed yet that it does not, nor that a
/// machine came back as another boot.
pub fn are_together(world: &World) -> bool {
    let is_fresh = |n: usize| world.nodes[n].cib.machine[1 - n] == PeerNode::NeverSeen;
    world.joined && world.link && (0..2).all(|n| world.nodes[n].on && !is_fresh(n))
}

/// Two replicas part; one that stood still has missed what the other has. But for its own operations: each machine keeps
/// the results of its own, and Pacemaker asks for them when the membership changes.
pub fn part(world: &mut World) {
    if let Some(n) = world.lagging.take() {
        world.newer = Newer::Of(1 - n);
        let n = usize::from(n);
        world.nodes[n].cib.agent[n] = world.nodes[1 - n].cib.agent[n];
    }
}

fn set_agent(world: &mut World, n: usize, agent: PeerAgent) {
    let together = are_together(world);
    let lagging = world.lagging.map(usize::from);
    for other in 0..2 {
        if (other == n || together) && lagging != Some(other) {
            world.nodes[other].cib.agent[n] = agent;
        }
    }
}

/// Power fails on `n`, or fencing cuts it.
pub fn power_off(world: &mut World, n: usize) {
    etcd::kill(world, n);
    // What the other one missed is known here until now.
    part(world);
    let node = &mut world.nodes[n];
    node.on = false;
    (node.quorum, node.failed, node.unclean, node.action) = (false, false, false, None);
    (node.memory, node.word) = (0, Word::None);
    forget_status(&mut node.cib);
}

/// What a CIB does not keep when Pacemaker ends.
fn forget_status(cib: &mut Cib) {
    cib.machine = [PeerNode::NeverSeen; 2];
    cib.agent = [PeerAgent::NoHistory; 2];
    cib.record = [0; 2];
}

/// A machine starts.
pub fn boot(world: &mut World, n: usize) -> bool {
    let node = &mut world.nodes[n];
    if node.on {
        return false;
    }
    node.on = true;
    node.wanted = Wanted::Running;
    node.cib.machine[n] = PeerNode::Online;
    true
}

/// The membership notices that the other one is gone.
pub fn notice(world: &mut World) -> bool {
    if !holds_writes_back(world) {
        return false;
    }
    world.joined = false;
    part(world);
    for n in 0..2 {
        if world.nodes[n].on && world.nodes[n].cib.machine[1 - n] == PeerNode::Online {
            world.nodes[n].cib.machine[1 - n] = PeerNode::Lost;
        }
    }
    true
}

/// Two Pacemakers meet: the newer CIB counts, and each brings its own operations and attributes.
pub fn meet(world: &mut World, winner: usize) -> bool {
    let allowed = match world.newer {
        Newer::Of(who) => usize::from(who) == winner,
        // No matter whose, where they are equal.
        Newer::Equal | Newer::Diverged => true,
    };
    if world.joined
        || !(allowed || are_lasting_parts_equal(world))
        || !world.link
        || !world.nodes.iter().all(|node| node.on)
    {
        return false;
    }
    let mut cib = world.nodes[winner].cib;
    for n in 0..2 {
        cib.machine[n] = PeerNode::Online;
        cib.agent[n] = world.nodes[n].cib.agent[n];
        cib.record[n] = world.nodes[n].cib.record[n];
        world.nodes[n].quorum = true;
    }
    world.nodes[0].cib = cib;
    world.nodes[1].cib = cib;
    world.joined = true;
    world.newer = Newer::Equal;
    true
}

/// Whether what outlives Pacemaker's end is the same in both CIBs.
pub fn are_lasting_parts_equal(world: &World) -> bool {
    let [a, b] = world.nodes.map(|node| (node.cib.standalone, node.cib.lineage, node.cib.recorded));
    a == b
}

/// Whether `by` fences somebody.
pub fn may_fence(world: &World, by: usize) -> bool {
    let (me, other) = (&world.nodes[by], 1 - by);
    let wanted = matches!(me.cib.machine[other], PeerNode::Lost | PeerNode::NeverSeen) && !world.joined;
    let is_unclean = world.nodes[other].unclean && world.joined;
    must_fence_itself(world, by) || (me.on && me.quorum && (wanted || is_unclean))
}

/// Alone it can only fence itself.
fn must_fence_itself(world: &World, n: usize) -> bool {
    world.nodes[n].on && world.nodes[n].unclean && !world.joined
}

/// `by` fences its peer: the BMC cuts its power, and Pacemaker takes that as confirmed. Where `cuts` is not set, it takes
/// the peer for dead without having it cut.
pub fn fence(world: &mut World, by: usize, cuts: bool) -> bool {
    if !may_fence(world, by) {
        return false;
    }
    if must_fence_itself(world, by) {
        power_off(world, by);
        return true;
    }
    let other = 1 - by;
    if world.nodes[other].on && cuts {
        power_off(world, other);
    }
    world.joined = false;
    part(world);
    confirmed_down(world, by);
    true
}

fn confirmed_down(world: &mut World, by: usize) {
    let other = 1 - by;
    let cib = &mut world.nodes[by].cib;
    cib.machine[other] = PeerNode::Down;
    cib.agent[other] = PeerAgent::NoHistory;
    cib.record[other] = 0;
}

/// The network is back. Where nobody had noticed that it was cut, what was written meanwhile arrives: Corosync sends again
/// what a member of the same membership has missed.
pub fn heal(world: &mut World) -> bool {
    let was_cut = !std::mem::replace(&mut world.link, true);
    let [one, other] = world.nodes.map(|node| node.cib);
    if was_cut && are_together(world) && one != other {
        let mut cib = if world.newer == Newer::Of(1) { other } else { one };
        if world.newer == Newer::Diverged {
            cib.standalone = one.standalone.or(other.standalone);
            cib.lineage = one.lineage.max(other.lineage);
        }
        for n in 0..2 {
            let own = world.nodes[n].cib;
            (cib.agent[n], cib.record[n], cib.recorded[n]) = (own.agent[n], own.record[n], own.recorded[n]);
        }
        world.nodes.iter_mut().for_each(|node| node.cib = cib);
        world.newer = Newer::Equal;
    }
    was_cut
}

/// The stragglers' replica catches up.
pub fn catch_up(world: &mut World) -> bool {
    let Some(n) = world.lagging.map(usize::from) else { return false };
    world.nodes[n].cib = world.nodes[1 - n].cib;
    world.lagging = None;
    true
}

/// What may begin on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    Probe,
    /// In a transition that starts both, or only this node.
    Start {
        both: bool,
    },
    Monitor,
    /// As half of a restart, or for good; alone, or both at once.
    Stop {
        restart: bool,
        both: bool,
    },
    /// As half of a restart, after starts in vain.
    StopInVain,
    BeforeStart,
    AfterStart,
    AfterStop,
}

/// Every beginning there is.
pub const BEGINNINGS: [Begin; 12] = [
    Begin::Probe,
    Begin::Start { both: true },
    Begin::Start { both: false },
    Begin::Monitor,
    Begin::Stop { restart: true, both: false },
    Begin::Stop { restart: false, both: false },
    Begin::Stop { restart: true, both: true },
    Begin::Stop { restart: false, both: true },
    Begin::StopInVain,
    Begin::BeforeStart,
    Begin::AfterStart,
    Begin::AfterStop,
];

/// Begins an action where Pacemaker would; false where it would not.
pub fn begin(world: &mut World, n: usize, what: Begin, has_learner: bool) -> bool {
    let may = may_begin(world, n, what, has_learner);
    if may {
        let cib = *scheduler_cib(world, n);
        enter(world, n, what, &cib);
    }
    may
}

/// Whether Pacemaker would begin it.
pub fn may_begin(world: &World, n: usize, what: Begin, has_learner: bool) -> bool {
    let node = &world.nodes[n];
    if !node.on || !node.quorum || node.unclean || node.action.is_some() || !is_schedulable(world, n) {
        return false;
    }
    let cib = scheduler_cib(world, n);
    let (mine, theirs) = (cib.agent[n], cib.agent[1 - n]);
    let is_active = mine == PeerAgent::Active;
    let notifies = is_active && !node.failed;
    match what {
        Begin::Probe => mine == PeerAgent::NoHistory,
        Begin::Start { both } => may_start(world, n, cib) && (!both || may_start(world, 1 - n, cib)),
        Begin::Monitor => notifies,
        Begin::Stop { restart, both } => {
            let wanted = node.wanted == Wanted::Running;
            let peer_stops = world.nodes[1 - n].wanted != Wanted::Running || world.nodes[1 - n].failed;
            is_active && wanted == restart && (node.failed || !wanted) && (!both || (world.joined && peer_stops))
        }
        Begin::StopInVain => is_active && node.wanted == Wanted::Running && node.failed,
        Begin::BeforeStart => notifies && world.joined && matches!(theirs, PeerAgent::Stopped | PeerAgent::Starting),
        // Where there is no learner it does what a monitor does.
        Begin::AfterStart => notifies && world.joined && theirs == PeerAgent::Active && has_learner,
        Begin::AfterStop => notifies && (cib.machine[1 - n] == PeerNode::Down || theirs == PeerAgent::Stopped),
    }
}

/// Before anything else Pacemaker fences whom it has lost, and a start waits while its notification is handled.
fn is_schedulable(world: &World, n: usize) -> bool {
    world.joined || !matches!(world.nodes[n].cib.machine[1 - n], PeerNode::NeverSeen)
}

fn may_start(world: &World, n: usize, cib: &Cib) -> bool {
    let node: &Node = &world.nodes[n];
    let peer_is_told = world.nodes[1 - n].action.is_none_or(|action| action.request != Request::Notify);
    node.on
        && cib.agent[n] == PeerAgent::Stopped
        && node.wanted == Wanted::Running
        && node.action.is_none()
        && matches!(cib.machine[1 - n], PeerNode::Online | PeerNode::Down)
        && (peer_is_told || !world.joined)
}

fn enter(world: &mut World, n: usize, what: Begin, cib: &Cib) {
    let (me, peer) = (1_u8 << n, 1_u8 << (1 - n));
    // Whether this node itself is active is asked of nobody here.
    let active = if cib.agent[1 - n] == PeerAgent::Active { peer } else { 0 };
    let both = |both: bool| if both { me | peer } else { me };
    let vars = Vars { given: true, active, ..Vars::default() };
    let about = |moment: Moment, operation: Operation| Vars { moment, operation, ..vars };
    let (request, notify) = match what {
        Begin::Probe => (Request::Probe, Vars::default()),
        Begin::Monitor => (Request::Monitor, Vars::default()),
        Begin::Start { both: b } => (Request::Start, Vars { start: both(b), ..vars }),
        Begin::Stop { restart, both: b } => {
            (Request::Stop, Vars { stop: both(b), start: if restart { both(b) } else { 0 }, ..vars })
        }
        Begin::StopInVain => (Request::Stop, Vars { stop: me, start: me, in_vain: true, ..vars }),
        Begin::BeforeStart => (Request::Notify, Vars { start: peer, ..about(Moment::Pre, Operation::Start) }),
        Begin::AfterStart => (Request::Notify, Vars { start: peer, ..about(Moment::Post, Operation::Start) }),
        Begin::AfterStop => (Request::Notify, Vars { stop: peer, ..about(Moment::Post, Operation::Stop) }),
    };
    match request {
        Request::Start => set_agent(world, n, PeerAgent::Starting),
        Request::Stop => set_agent(world, n, PeerAgent::Stopping),
        _ => {}
    }
    world.nodes[n].action = Some(Action { request, notify, progress: 0, plan: None });
}

/// An action of `n` is answered.
pub fn answered(world: &mut World, n: usize, exit: Exit) -> Result<(), Violation> {
    let Some(action) = world.nodes[n].action.take() else { return Ok(()) };
    let is_well = matches!(exit, Exit::Success | Exit::Promoted);
    match action.request {
        Request::Stop if is_well && world.nodes[n].etcd.is_on() => {
            return Err(Violation::new(format!("{}: stop answers success while etcd runs", NAMES[n])));
        }
        Request::Stop if is_well => {
            set_agent(world, n, PeerAgent::Stopped);
            world.nodes[n].failed = false;
            shut_down(world, n);
        }
        Request::Stop => world.nodes[n].unclean = true,
        Request::Monitor => world.nodes[n].failed |= !is_well,
        Request::Probe if exit == Exit::NotRunning => set_agent(world, n, PeerAgent::Stopped),
        Request::Start | Request::Probe => {
            set_agent(world, n, PeerAgent::Active);
            world.nodes[n].failed = !is_well;
        }
        Request::Notify | Request::Promote | Request::Demote => {}
    }
    Ok(())
}

/// A machine that is to shut down does so once its agent has stopped: its peer takes that as confirmed.
fn shut_down(world: &mut World, n: usize) {
    if world.nodes[n].wanted != Wanted::Shutdown {
        return;
    }
    let was_joined = world.joined;
    power_off(world, n);
    if was_joined {
        world.joined = false;
        if world.nodes[1 - n].on {
            confirmed_down(world, 1 - n);
        }
    }
}
