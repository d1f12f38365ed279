//! Facts of this node other than its etcd and its data: its address, obstacles of a start, and OpenShift's view.

use crate::adapters::data_dir;
use crate::adapters::etcd::{blocking, config};
use crate::adapters::openshift::{machine, revision};
use crate::adapters::pace::Question;
use crate::adapters::podman;
use crate::adapters::podman::process;
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::{Etcd, Local, Obstacle};
use crate::os::dmi;
use crate::os::proc;
use crate::records::failed_starts;

/// Ports on which etcd listens only on OpenShift: HTTP for clients, and metrics.
const OPENSHIFT_PORTS: [u16; 2] = [2381, 9978];
/// Least value of `OCF_CHECK_LEVEL` with which a monitor requires that a majority confirms a read.
const READ_LEVEL: u32 = 10;
/// Least value of `OCF_CHECK_LEVEL` with which a monitor also requires that etcd accepts a write.
const WRITE_LEVEL: u32 = 20;

pub(super) fn observe(context: &Context, is_stopped: bool, own: &Fact<Etcd>, peer: &Fact<Etcd>) -> Local {
    Local {
        ip: context.own_ip.to_string(),
        revision: revision::read(context.data_dir()),
        system_uuid: if context.params.lone_boot.is_wanted { dmi::system_uuid() } else { None },
        runs_at: if is_stopped { None } else { runs_elsewhere(context) },
        obstacle: if is_stopped { obstacle(context) } else { None },
        failed_check: if is_stopped { None } else { failed_check(context, own) },
        machine_is_deleted: machine_is_deleted(context, is_stopped, own, peer),
        failed_starts: failed_starts::read(context.data_dir(), &context.deployment.image),
        log_written: if is_stopped { data_dir::last_written(context.data_dir()) } else { None },
        image: Fact::NotAsked,
    }
}

/// Returns the address in the running etcd's configuration if the parameters give this node another address now; else `None`.
fn runs_elsewhere(context: &Context) -> Option<String> {
    let text = context.config_text().ok()?;
    config::address(&text).filter(|ip| *ip != context.own_ip).map(|ip| ip.to_string())
}

fn obstacle(context: &Context) -> Option<Obstacle> {
    if process::a_pod_has_open(context.data_dir()) {
        return Some(Obstacle::StaticPod);
    }
    let openshift = context.deployment.manifest.as_ref().map(|_| OPENSHIFT_PORTS).into_iter().flatten();
    let taken = proc::listening_ports();
    let mut ours = [context.params.client_port, context.params.peer_port].into_iter().chain(openshift);
    ours.find(|port| taken.contains(port)).map(Obstacle::PortTaken)
}

/// Runs the additional checks of a monitor that the operator requested. Returns the error of the first failed check; `None` if no check
/// failed.
fn failed_check(context: &Context, own: &Fact<Etcd>) -> Option<String> {
    if !context.is_monitor {
        return None;
    }
    // Without a leader no majority can confirm anything, and other rules react to that.
    let serves = own.known().is_some_and(Etcd::is_voter_with_leader);
    if serves && context.check_level >= READ_LEVEL {
        if let Err(error) = context.probe_own_etcd(Question::Check, blocking::confirmed_read) {
            return Some(format!("no confirmed read: {error}"));
        }
        if context.check_level >= WRITE_LEVEL
            && let Err(error) = context.probe_own_etcd(Question::Check, blocking::accepted_write)
        {
            return Some(format!("no write taken: {error}"));
        }
    }
    let command = &context.params.monitor_cmd;
    if command.is_empty() {
        return None;
    }
    podman::exec(&context.programs, &context.params.name, command).err().map(|error| format!("monitor_cmd: {error}"))
}

/// Returns whether OpenShift is deleting the Machine of a node that is to become a voter. If this node is the only voter, that is the
/// peer's Machine. If this node is to join or to be promoted, it is this node's Machine. In any other case nothing is queried.
fn machine_is_deleted(context: &Context, is_stopped: bool, own: &Fact<Etcd>, peer: &Fact<Etcd>) -> Fact<bool> {
    if context.deployment.manifest.is_none() {
        return Fact::NotAsked;
    }
    let serves = |etcd: &Fact<Etcd>| etcd.known().is_some_and(Etcd::is_voter_with_leader);
    let lacks_a_voter = own.known().is_some_and(|etcd| etcd.is_voter_with_leader() && etcd.voters().count() == 1);
    let node = match &context.peer {
        Some(peer) if lacks_a_voter => &peer.name,
        Some(_) if is_stopped && serves(peer) => &context.me.name,
        // A learner of a promotable clone requests its own promotion.
        Some(_) if context.promotable && own.known().is_some_and(|etcd| etcd.is_learner) => &context.me.name,
        _ => return Fact::NotAsked,
    };
    machine::is_being_deleted(&context.params.kubeconfig, node, context.deadline.at_most(machine::PATIENCE))
}
