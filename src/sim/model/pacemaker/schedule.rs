//! The schedule of actions, and the use that Pacemaker makes of their answers.

use super::fencing::{confirmed_down, is_confirmed_down};
use super::machines::power_off;
use super::membership::{are_together, is_up, scheduler_cib, set_agent};
use crate::decide::evidence::{Moment, Operation, PeerAgent, PeerNode};
use crate::decide::{Exit, Request};
use crate::sim::Violation;
use crate::sim::model::world::{Action, BANNED, Cib, NAMES, Node, Vars, Wanted, World};

/// The actions of Pacemaker that may begin on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    Probe,
    /// A start. If `both` is true, the same transition starts the resource on both nodes.
    Start {
        both: bool,
    },
    Monitor,
    /// A stop of the resource. If `restart` is true, a start follows it. If `both` is true, the same transition stops the
    /// resource on both nodes.
    Stop {
        restart: bool,
        both: bool,
    },
    /// A stop that is half of a restart, after so many failed starts that the agent gives up its claim to run standalone.
    StopInVain,
    BeforeStart,
    AfterStart,
    AfterStop,
    /// A promotion of a promotable clone's instance.
    Promote,
    /// A demotion of a promotable clone's instance.
    Demote,
}

/// All actions that may begin on a node.
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

/// Begins the action `what` on node `n` if Pacemaker would begin it now. Returns whether it did.
pub fn begin(world: &mut World, n: usize, what: Begin, has_learner: bool) -> bool {
    let may = may_begin(world, n, what, has_learner);
    if may {
        let cib = *scheduler_cib(world, n);
        enter(world, n, what, &cib);
    }
    may
}

/// Returns whether Pacemaker would begin the action `what` on node `n` now.
pub fn may_begin(world: &World, n: usize, what: Begin, has_learner: bool) -> bool {
    let node = &world.nodes[n];
    if !is_up(world, n) || !node.quorum || node.unclean || node.action.is_some() || !is_schedulable(world, n) {
        return false;
    }
    let cib = scheduler_cib(world, n);
    let (mine, theirs) = (cib.agent[n], cib.agent[1 - n]);
    let is_active = mine == PeerAgent::Active;
    let notifies = is_active && !node.failed;
    // A promoted instance is demoted before any other action.
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
        // Without a learner, this notification has the effect of a monitor.
        Begin::AfterStart => notifies && world.joined && theirs == PeerAgent::Active && has_learner,
        Begin::AfterStop => notifies && (is_confirmed_down(cib, 1 - n) || theirs == PeerAgent::Stopped),
        Begin::Promote => notifies && !node.promoted && cib.score[n] && is_wanted(node),
        Begin::Demote => {
            let is_to_stop = node.failed || !is_wanted(node);
            is_active && node.promoted && (is_to_stop || !cib.score[n])
        }
    }
}

/// Returns whether Pacemaker runs actions on node `n`. After a boot, a node that has not seen its peer runs no action before it has
/// fenced the peer.
fn is_schedulable(world: &World, n: usize) -> bool {
    world.joined || !matches!(world.nodes[n].cib.machine[1 - n], PeerNode::NeverSeen)
}

/// Returns whether Pacemaker wants an instance of the resource to run on the node.
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
    // No rule reads whether this node itself is active.
    let active = if cib.agent[1 - n] == PeerAgent::Active { peer } else { 0 };
    let both = |both: bool| if both { me | peer } else { me };
    let vars = Vars { given: true, active, ..Vars::default() };
    let about = |moment: Moment, operation: Operation| Vars { moment, operation, ..vars };
    let (request, notify) = match what {
        Begin::Probe => (Request::Probe, Vars::default()),
        Begin::Monitor => (Request::Monitor, Vars::default()),
        // No decision reads the notify variables of these actions.
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

/// Applies the exit code with which the agent of node `n` ends its action.
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
        // The model has no reload: its parameters change between two actions.
        Request::Notify | Request::Reload | Request::LoneBoot => {}
        // A promotion that failed may still have taken place.
        Request::Promote => (world.nodes[n].promoted, world.nodes[n].failed) = (true, !is_well),
        Request::Demote => {
            world.nodes[n].promoted = false;
            world.nodes[n].failed |= !is_well;
        }
    }
    shut_down(world, n);
    Ok(())
}

/// Begins the shutdown of machine `n`. Its Pacemaker first informs the other node.
pub fn ask_to_shut_down(world: &mut World, n: usize) {
    world.nodes[n].asked = are_together(world);
    shut_down(world, n);
}

/// Shuts machine `n` down once its agent has stopped etcd. For its peer, this is a confirmed shutdown.
fn shut_down(world: &mut World, n: usize) {
    let node = &world.nodes[n];
    let is_stopped = match scheduler_cib(world, n).agent[n] {
        PeerAgent::Stopped => true,
        // Pacemaker probes the resource before it stops anything.
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
