//! Pacemaker in the model: who is a member, the CIB and its replicas, fencing, and which action runs when.

use super::etcd;
use super::view::NAMES;
use super::world::{Action, BANNED, Blind, Cib, Newer, Node, Operation, Run, Stack, Vars, Wanted, Word, World};
use crate::decide::snapshot::{Moment, PeerAgent, PeerNode};
use crate::decide::{Exit, Request};
use crate::sim::Violation;

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

/// Whether Pacemaker runs on a node.
pub fn is_up(world: &World, n: usize) -> bool {
    world.nodes[n].on && world.nodes[n].stack == Stack::Up
}

/// Whether what one writes reaches the other; a membership may not have noticed yet that it does not, nor that a
/// machine came back as another boot.
pub fn are_together(world: &World) -> bool {
    let is_fresh = |n: usize| world.nodes[n].cib.machine[1 - n] == PeerNode::NeverSeen;
    world.joined && world.link && (0..2).all(|n| is_up(world, n) && !is_fresh(n))
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
    let leads = world.nodes[n].etcd == Run::Leader;
    let is_torn = leads && world.nodes[n].data.durable < world.nodes[n].data.commit;
    etcd::kill(world, n);
    // What the other one missed is known here until now.
    part(world);
    let Node {
        on,
        quorum,
        cib,
        memory,
        word,
        action,
        failed,
        unclean,
        data: _,
        etcd: _,
        forces: _,
        note: _,
        wanted: _,
        asked: _,
        stack,
        launching,
        torn,
        failures,
        damage: _,
        promoted,
        blind,
    } = &mut world.nodes[n];
    (*on, *quorum, *failed, *unclean, *action) = (false, false, false, false, None);
    (*promoted, *blind) = (false, Blind::None);
    (*memory, *word, *launching, *failures) = (0, Word::None, None, 0);
    *torn = is_torn;
    if *stack == Stack::Killed {
        *stack = Stack::Up;
    }
    forget_status(cib);
}

/// What a CIB does not keep when Pacemaker ends.
fn forget_status(cib: &mut Cib) {
    let Cib { machine, agent, record, score, told, standalone: _, lineage: _, recorded: _, primary: _ } = cib;
    (*score, *told) = ([false; 2], [false; 2]);
    *machine = [PeerNode::NeverSeen; 2];
    *agent = [PeerAgent::NoHistory; 2];
    *record = [0; 2];
}

/// A machine starts.
pub fn boot(world: &mut World, n: usize) -> bool {
    let node = &mut world.nodes[n];
    if node.on {
        return false;
    }
    node.on = true;
    come_up(node, n);
    true
}

/// Pacemaker starts, and knows nothing of this boot yet.
fn come_up(node: &mut Node, n: usize) {
    node.stack = Stack::Up;
    (node.wanted, node.asked) = (Wanted::Running, false);
    node.cib.machine[n] = PeerNode::Online;
}

/// Pacemaker and Corosync end on a node, and etcd does not: in maintenance, so that its peer is told and fences nobody, or
/// killed, so that the membership misses it.
pub fn end_stack(world: &mut World, n: usize, stack: Stack) -> bool {
    let node = &world.nodes[n];
    let is_at_work = node.action.is_some() || node.unclean || node.wanted == Wanted::Shutdown;
    if !is_up(world, n) || (stack == Stack::Ended && is_at_work) {
        return false;
    }
    let is_told = stack == Stack::Ended && are_together(world);
    part(world);
    if is_told {
        let cib = &mut world.nodes[1 - n].cib;
        (cib.machine[n], cib.record[n], cib.score[n], cib.told[n]) = (PeerNode::Down, 0, false, false);
        world.joined = false;
    }
    let node = &mut world.nodes[n];
    node.stack = stack;
    (node.quorum, node.failed, node.failures, node.action) = (false, false, 0, None);
    (node.unclean, node.promoted, node.blind) = (false, false, Blind::None);
    forget_status(&mut node.cib);
    true
}

/// They come back in the same boot.
pub fn stack_is_back(world: &mut World, n: usize) -> bool {
    let node = &mut world.nodes[n];
    let is_back = node.on && node.stack != Stack::Up;
    if is_back {
        come_up(node, n);
    }
    is_back
}

/// The membership notices that the other one is gone. One that had asked to shut down is expected to be gone, whatever runs
/// there still: what its agent did last is all that tells.
pub fn notice(world: &mut World) -> bool {
    if !holds_writes_back(world) {
        return false;
    }
    world.joined = false;
    part(world);
    for n in 0..2 {
        if is_up(world, n) && world.nodes[n].cib.machine[1 - n] == PeerNode::Online {
            let was_expected = world.nodes[1 - n].asked;
            world.nodes[n].cib.machine[1 - n] = if was_expected { PeerNode::Down } else { PeerNode::Lost };
        }
    }
    true
}

/// An agent that decides on a look at its peer's record knows of the history that an operator's word made there.
pub fn hear(world: &mut World, n: usize) {
    if world.joined && world.nodes[n].cib.record[1 - n] != 0 {
        world.unheard &= !(1 << n);
    }
}

/// Two Pacemakers meet: the newer CIB counts, and each brings its own operations and attributes.
pub fn meet(world: &mut World, winner: usize) -> bool {
    let allowed = match world.newer {
        Newer::Of(who) => usize::from(who) == winner,
        // No matter whose, where they are equal.
        Newer::Equal | Newer::Diverged => true,
    };
    if world.joined || !(allowed || are_lasting_parts_equal(world)) || !world.link || !(0..2).all(|n| is_up(world, n)) {
        return false;
    }
    let mut cib = world.nodes[winner].cib;
    for n in 0..2 {
        cib.machine[n] = PeerNode::Online;
        cib.agent[n] = world.nodes[n].cib.agent[n];
        cib.record[n] = world.nodes[n].cib.record[n];
        (cib.score[n], cib.told[n]) = (world.nodes[n].cib.score[n], world.nodes[n].cib.told[n]);
        world.nodes[n].quorum = true;
    }
    world.nodes[0].cib = cib;
    world.nodes[1].cib = cib;
    for node in &mut world.nodes {
        node.asked = node.wanted == Wanted::Shutdown;
    }
    world.joined = true;
    world.newer = Newer::Equal;
    true
}

/// Whether what outlives Pacemaker's end is the same in both CIBs.
pub fn are_lasting_parts_equal(world: &World) -> bool {
    let lasting = |cib: Cib| {
        let Cib { standalone, lineage, recorded, primary, machine: _, agent: _, record: _, score: _, told: _ } = cib;
        (standalone, lineage, recorded, primary)
    };
    lasting(world.nodes[0].cib) == lasting(world.nodes[1].cib)
}

/// Whether `node` is off for sure by what a CIB says: gone as expected, and its agent was stopped before.
pub fn is_confirmed_down(cib: &Cib, node: usize) -> bool {
    let may_run = matches!(cib.agent[node], PeerAgent::Active | PeerAgent::Starting | PeerAgent::Stopping);
    cib.machine[node] == PeerNode::Down && !may_run
}

/// Whether `by` fences somebody.
pub fn may_fence(world: &World, by: usize) -> bool {
    let (me, other) = (&world.nodes[by], 1 - by);
    let is_gone = !matches!(me.cib.machine[other], PeerNode::Online | PeerNode::Pending);
    // Who ended in maintenance is not missed.
    let is_excused = me.cib.machine[other] == PeerNode::Down && world.nodes[other].stack == Stack::Ended;
    let wanted = is_gone && !is_confirmed_down(&me.cib, other) && !is_excused && !world.joined;
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
    (cib.score[other], cib.told[other]) = (false, false);
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
            cib.lineage = [one.lineage[0], other.lineage[1]];
            cib.primary = one.primary.or(other.primary);
        }
        for n in 0..2 {
            let own = world.nodes[n].cib;
            (cib.agent[n], cib.record[n], cib.recorded[n]) = (own.agent[n], own.record[n], own.recorded[n]);
            (cib.score[n], cib.told[n]) = (own.score[n], own.told[n]);
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
    /// Of a promotable clone's instance.
    Promote,
    Demote,
}

/// Every beginning there is.
pub const BEGINNINGS: [Begin; 14] = [
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
    Begin::Promote,
    Begin::Demote,
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
    if !is_up(world, n) || !node.quorum || node.unclean || node.action.is_some() || !is_schedulable(world, n) {
        return false;
    }
    let cib = scheduler_cib(world, n);
    let (mine, theirs) = (cib.agent[n], cib.agent[1 - n]);
    let is_active = mine == PeerAgent::Active;
    let notifies = is_active && !node.failed;
    // A promoted instance is demoted before anything else.
    let may_stop = is_active && !node.promoted;
    match what {
        Begin::Probe => mine == PeerAgent::NoHistory,
        Begin::Start { both } => may_start(world, n, cib) && (!both || may_start(world, 1 - n, cib)),
        Begin::Monitor => notifies,
        Begin::Stop { restart, both } => {
            let wanted = is_wanted(node);
            let peer_stops = world.nodes[1 - n].wanted != Wanted::Running || world.nodes[1 - n].failed;
            may_stop && wanted == restart && (node.failed || !wanted) && (!both || (world.joined && peer_stops))
        }
        Begin::StopInVain => may_stop && is_wanted(node) && node.failed,
        Begin::BeforeStart => notifies && world.joined && matches!(theirs, PeerAgent::Stopped | PeerAgent::Starting),
        // Where there is no learner it does what a monitor does.
        Begin::AfterStart => notifies && world.joined && theirs == PeerAgent::Active && has_learner,
        Begin::AfterStop => notifies && (is_confirmed_down(cib, 1 - n) || theirs == PeerAgent::Stopped),
        Begin::Promote => notifies && !node.promoted && cib.score[n] && is_wanted(node),
        Begin::Demote => {
            let is_to_stop = node.failed || !is_wanted(node);
            is_active && node.promoted && (is_to_stop || !cib.score[n])
        }
    }
}

/// Before anything else Pacemaker fences whom it has lost, and a start waits while its notification is handled.
fn is_schedulable(world: &World, n: usize) -> bool {
    world.joined || !matches!(world.nodes[n].cib.machine[1 - n], PeerNode::NeverSeen)
}

/// Whether an instance is to run there.
fn is_wanted(node: &Node) -> bool {
    node.wanted == Wanted::Running && node.failures != BANNED
}

fn may_start(world: &World, n: usize, cib: &Cib) -> bool {
    let node: &Node = &world.nodes[n];
    let peer_is_told = world.nodes[1 - n].action.is_none_or(|action| action.request != Request::Notify);
    node.on
        && cib.agent[n] == PeerAgent::Stopped
        && is_wanted(node)
        && node.action.is_none()
        && (cib.machine[1 - n] == PeerNode::Online || is_confirmed_down(cib, 1 - n))
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
        // Nobody asks for the variables of these.
        Begin::Promote => (Request::Promote, Vars::default()),
        Begin::Demote => (Request::Demote, Vars::default()),
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
        }
        Request::Stop => world.nodes[n].unclean = true,
        Request::Monitor => {
            let node = &mut world.nodes[n];
            node.failed |= !is_well || (exit == Exit::Promoted) != node.promoted;
        }
        Request::Probe if exit == Exit::NotRunning => set_agent(world, n, PeerAgent::Stopped),
        Request::Start | Request::Probe => {
            set_agent(world, n, PeerAgent::Active);
            (world.nodes[n].failed, world.nodes[n].promoted) = (!is_well, exit == Exit::Promoted);
        }
        Request::Notify => {}
        // One that failed may be promoted all the same.
        Request::Promote => (world.nodes[n].promoted, world.nodes[n].failed) = (true, !is_well),
        Request::Demote => {
            world.nodes[n].promoted = false;
            world.nodes[n].failed |= !is_well;
        }
    }
    shut_down(world, n);
    Ok(())
}

/// A machine is to shut down: Pacemaker there tells the others first.
pub fn ask_to_shut_down(world: &mut World, n: usize) {
    world.nodes[n].asked = are_together(world);
    shut_down(world, n);
}

/// A machine that is to shut down does so once its agent has stopped: its peer takes that as confirmed.
fn shut_down(world: &mut World, n: usize) {
    let node = &world.nodes[n];
    let is_stopped = match scheduler_cib(world, n).agent[n] {
        PeerAgent::Stopped => true,
        // Before anything is stopped it is asked what runs.
        PeerAgent::NoHistory => !node.etcd.is_on(),
        PeerAgent::Active | PeerAgent::Starting | PeerAgent::Stopping => false,
    };
    if node.wanted != Wanted::Shutdown || node.action.is_some() || !is_stopped {
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
