//! The moves that a state does not rule out at first sight.

use super::faults;
use super::kinds::{BMC_FAULTS, KEPT, MOST_ENTRIES, Move, WORDS};
use crate::sim::Bounds;
use crate::sim::model::etcd;
use crate::sim::model::pacemaker::{self, BEGINNINGS};
use crate::sim::model::world::{BANNED, Blind, Bmc, Damage, KeptHistory, Lone, Run, Stack, Wanted, World};
use crate::sim::reduce::atomic_steps::{Passing, boots_come_with_meetings};

/// Passes to `tell` every move that may happen in `world`, in the order of [`super::kinds::all`]. Of a decision it passes only the
/// first moment, which represents the later ones.
pub(super) fn thinkable(
    bounds: &Bounds,
    world: &World,
    passing: Option<Passing>,
    has_learner: bool,
    mut tell: impl FnMut(Move),
) {
    let (is_led, may_fail) = (etcd::leader(world).is_some(), world.faults > 0);
    let mut tell_if = |is_so: bool, what: Move| {
        if is_so && passing.is_none_or(|passing| passing.allows(what)) {
            tell(what);
        }
    };
    tell_if(is_led, Move::Write);
    tell_if(is_led && world.etcds_meet(), Move::Replicate);
    tell_if(is_led, Move::Learn);
    of_the_network(bounds, world, may_fail, &mut tell_if);
    tell_if(world.lagging.is_some(), Move::CatchUp);
    tell_if(world.joined, Move::Notice);
    of_other_controllers(bounds, may_fail && is_led, has_learner, &mut tell_if);
    tell_if(may_fail && world.third_voter, Move::LoseThirdVoter);
    tell_if(bounds.third_voter && !world.third_voter, Move::ThirdVoterBack);
    for (n, node) in world.nodes.iter().enumerate() {
        tell_if(node.damage == Damage::NotMounted, Move::Mount(n));
        of_users_and_parameters(bounds, world, n, &mut tell_if);
        tell_if(may_fail && bounds.forgets && !world.joined, Move::Forget(n));
        if !node.on {
            tell_if(world.link || !boots_come_with_meetings(bounds, world), Move::Boot(n));
            continue;
        }
        let (runs, has_plan, is_up) = (node.etcd.is_on(), node.has_plan(), node.stack == Stack::Up);
        tell_if(may_fail && bounds.stacks && bounds.operators && is_up, Move::EndStack(n));
        tell_if(may_fail && bounds.stacks && is_up, Move::KillStack(n));
        tell_if(!is_up, Move::StackBack(n));
        tell_if(may_fail && bounds.launches && has_plan, Move::KillLaunch(n));
        tell_if(node.launching.is_some(), Move::Launched(n));
        tell_if(may_fail && bounds.damage, Move::Damage(n));
        tell_if(may_fail && bounds.unmounts, Move::Unmount(n));
        put_back(bounds, world, n, |is_so, what| tell_if(may_fail && is_so, what));
        tell_if(may_fail && bounds.operators && node.failures == BANNED, Move::CleanUp(n));
        tell_if(node.etcd == Run::Leader, Move::Persist(n));
        // Only a leader reads the delay, and an etcd without one.
        let counts = node.etcd == Run::Leader || bounds.parts_etcd && runs && node.etcd != Run::Follower;
        tell_if(bounds.primary.is_some() && counts && !world.delay_over[n], Move::DelayOver(n));
        tell_if(matches!(node.etcd, Run::Fresh | Run::Leaderless), Move::Elect(n));
        tell_if(runs, Move::Leave(n));
        tell_if(node.lingers, Move::StepDown(n));
        tell_if(may_fail, Move::PowerCut(n));
        tell_if(may_fail && bounds.disks, Move::Destroy(n));
        tell_if(bounds.unblocks && is_up, Move::Unblock(n));
        tell_if(may_fail && runs, Move::KillEtcd(n));
        tell_if(may_fail && node.action.is_some(), Move::KillAgent(n));
        tell_if(may_fail && world.joined, Move::Lag(n));
        tell_if(!world.joined && world.link && world.nodes[1 - n].on, Move::Meet(n));
        tell_if(true, Move::Fence(n));
        tell_if(has_plan, Move::Effect(n));
        tell_if(has_plan, Move::GiveUp(n));
        for [accept_loss, node_is_on] in WORDS {
            tell_if(may_fail && bounds.operators && !runs, Move::Confirm(n, accept_loss, node_is_on));
        }
        for wanted in [Wanted::Running, Wanted::Standby, Wanted::Shutdown] {
            let may = bounds.operators && is_up && (may_fail || wanted == Wanted::Running);
            tell_if(may && node.wanted != wanted && node.wanted != Wanted::Shutdown, Move::Want(n, wanted));
        }
        tell_if(may_fail && bounds.chooses && !runs, Move::Choose(n));
        tell_if(may_fail && bounds.tells && !runs, Move::Tell(n));
        let may_hide = may_fail && bounds.hides && node.blind == Blind::None && !has_plan;
        tell_if(may_fail && bounds.hides && world.joined && !node.erased, Move::Erase(n));
        for what in Blind::ALL {
            tell_if(may_hide, Move::Hide(n, what));
        }
        tell_if(node.action.is_some() && !has_plan, Move::Decide(n, 0));
        if node.action.is_none() && passing.is_none() {
            for begin in BEGINNINGS {
                tell_if(pacemaker::may_begin(world, n, begin, has_learner), Move::Begin(n, begin, 0));
            }
        }
    }
}

/// Passes to `tell_if` the moves that cut or repair a network. There are two networks: that of the whole cluster, and the connection
/// between the two etcds.
fn of_the_network(bounds: &Bounds, world: &World, may_fail: bool, mut tell_if: impl FnMut(bool, Move)) {
    tell_if(may_fail && world.link, Move::CutLink);
    tell_if(!world.link, Move::HealLink);
    tell_if(may_fail && bounds.parts_etcd && !world.etcd_parted, Move::PartEtcd);
    tell_if(world.etcd_parted, Move::JoinEtcd);
}

/// Returns the move by which users lose the connection to node `n`, or the one by which they get it back.
fn of_the_users(world: &World, n: usize) -> Move {
    if world.lost_to_users[n] { Move::UsersBack(n) } else { Move::CutUsers(n) }
}

/// Passes to `tell_if` three kinds of moves: those of users, those of the parameters of a node without an action, and those of a boot
/// without the peer.
fn of_users_and_parameters(bounds: &Bounds, world: &World, n: usize, tell_if: &mut impl FnMut(bool, Move)) {
    tell_if(world.lost_to_users[n] || world.faults > 0 && bounds.cuts_users, of_the_users(world, n));
    for kept in KEPT.into_iter().filter(|kept| bounds.two_histories && *kept != world.kept[n]) {
        let may = world.faults > 0 || kept == KeptHistory::Primarys;
        tell_if(world.nodes[n].action.is_none() && may, Move::Keep(n, kept));
    }
    of_a_lone_boot(bounds, world, n, tell_if);
}

/// Passes to `tell_if` the moves in which another controller, or an operator with `etcdctl`, changes the members.
fn of_other_controllers(bounds: &Bounds, may: bool, has_learner: bool, tell_if: &mut impl FnMut(bool, Move)) {
    tell_if(may && bounds.others_promote && has_learner, Move::PromoteElsewhere);
    tell_if(may && bounds.others_remove, Move::RemoveElsewhere);
}

/// Passes to `tell_if` the moves in which a BMC fails or answers again, and the steps of `tandem lone-boot` on node `n`.
fn of_a_lone_boot(bounds: &Bounds, world: &World, n: usize, tell_if: &mut impl FnMut(bool, Move)) {
    if !bounds.lone_boot {
        return;
    }
    for bmc in BMC_FAULTS {
        tell_if(world.faults > 0 && world.bmc[n] == Bmc::Honest, Move::BmcFails(n, bmc));
    }
    tell_if(world.bmc[n] != Bmc::Honest, Move::BmcBack(n));
    let is_pending = matches!(world.lone[n], Lone::Holds | Lone::Ends);
    let runs = world.nodes[n].on && !world.nodes[n].quorum;
    tell_if(runs && world.lone[n] == Lone::Looks, Move::OffForLong(n));
    tell_if(runs && !is_pending, Move::LoneLook(n));
    tell_if(runs && is_pending, Move::LoneAct(n));
}

/// Passes to `tell_if` the faults of the disk of node `n`. In one kind, the disk is put back to a length that its log had earlier. In
/// the other kind, the disk becomes a copy of the other node's disk.
fn put_back(bounds: &Bounds, world: &World, n: usize, mut tell_if: impl FnMut(bool, Move)) {
    if !bounds.puts_back {
        return;
    }
    for kept in 1..MOST_ENTRIES {
        tell_if(true, Move::PutBack(n, kept, false));
        tell_if(true, Move::PutBack(n, kept, true));
        let is_idle = faults::is_idle(world, n);
        tell_if(is_idle, Move::RollBack(n, kept, false));
        tell_if(is_idle, Move::RollBack(n, kept, true));
    }
    for with_note in [true, false] {
        tell_if(!world.nodes[1 - n].on, Move::Copy(n, with_note));
    }
}
