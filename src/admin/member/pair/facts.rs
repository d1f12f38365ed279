//! One look at all that the steps of a change ask for.

use super::change::Change;
use super::plan::{Old, Seen};
use crate::admin::exit::Failure;
use crate::admin::member::look::{self, Seen as Members};
use crate::admin::member::source::Source;
use crate::admin::member::words::Shared;
use crate::admin::status;
use crate::cluster::{Cluster, FenceDevice};
use crate::decide::members::Member;
use crate::health;
use crate::resource::context::Context;
use crate::setup::cluster::{Corosync, parse_corosync};
use crate::setup::corosync_conf;

/// What was found, as the rules and the steps take it.
pub(super) struct Look {
    pub(super) cluster: Cluster,
    /// `None` where no member list could be read.
    pub(super) members: Result<Members, Failure>,
    pub(super) context: Context,
    pub(super) corosync: Corosync,
}

/// Corosync's configuration on this node.
fn corosync() -> Result<Corosync, Failure> {
    let text =
        corosync_conf::text().map_err(|error| Failure(format!("{} cannot be read: {error}", corosync_conf::PATH)))?;
    Ok(parse_corosync(&text))
}

impl Look {
    /// Asks everybody; a change that is this one's own keeps nobody from anything.
    pub(super) fn at_all(shared: &Shared, own: Option<&Change>) -> Result<Self, Failure> {
        let mut cluster = status::ask(shared.source.resource())?;
        let words = own.map(Change::words);
        if health::change_under_way(&cluster) == words {
            health::without_change(&mut cluster);
        }
        let context = shared.source.context()?;
        let mut members = look::look_twice(&Source::of_pair(&context));
        if let Ok(seen) = &mut members {
            let change = health::change_under_way(&cluster);
            seen.membership.change = seen.membership.change.take().or(change);
        }
        Ok(Self { cluster, members, context, corosync: corosync()? })
    }

    pub(super) fn seen(&self, change: &Change) -> Seen {
        let old = change.old.as_ref().map_or(Old::Gone, |old| self.old(&old.name));
        let new = change.new.as_ref().map(|new| new.name.as_str());
        let node = |name: &str| self.cluster.pacemaker.known()?.nodes.iter().find(|node| node.name == name);
        let params = &self.context.params;
        let wanted = change.nodes();
        Seen {
            old,
            serves_alone: self.serves_alone(change),
            old_serves: change.old.as_ref().is_some_and(|old| self.serves(&old.name)),
            device_runs: new.is_some_and(|new| self.device_runs(change, new)),
            map_is_right: wanted.len() == params.nodes.len()
                && wanted
                    .iter()
                    .all(|place| params.nodes.iter().any(|one| one.name == place.name && one.ip == place.address)),
            new_is_known: new.is_some_and(|new| self.corosync.node(new).is_some()),
            new_is_online: new.and_then(node).is_some_and(|node| node.online && !node.pending),
            new_votes: new.and_then(|new| self.member(new)).is_some_and(|it| !it.is_learner && it.is_healthy()),
        }
    }

    fn old(&self, name: &str) -> Old {
        let Some(pacemaker) = self.cluster.pacemaker.known() else { return Old::Unclean };
        if !health::names(&self.cluster).iter().any(|known| known == name) {
            return Old::Gone;
        }
        match pacemaker.nodes.iter().find(|node| node.name == name) {
            Some(node) if node.unclean => Old::Unclean,
            Some(node) if node.online || node.pending => Old::Online { standby: node.standby },
            Some(_) | None => Old::Stopped,
        }
    }

    /// The member of a node, as `node_ip_map` has it now.
    pub(super) fn member(&self, node: &str) -> Option<&Member> {
        let members = &self.members.as_ref().ok()?.membership.members;
        members.iter().find(|member| member.node.as_deref() == Some(node))
    }

    fn serves_alone(&self, change: &Change) -> bool {
        let Ok(seen) = &self.members else { return false };
        let mut voters = seen.membership.voters();
        let is_here = |member: &Member| member.node.as_deref() == Some(change.here.name.as_str());
        let first = voters.next().is_some_and(|voter| is_here(voter) && voter.is_healthy());
        first && voters.next().is_none() && seen.membership.is_confirmed
    }

    fn serves(&self, old: &str) -> bool {
        let etcd = &self.context.resource;
        let instances = self.cluster.pacemaker.known().map(|known| known.resources.as_slice()).unwrap_or_default();
        let is_active = instances
            .iter()
            .any(|instance| instance.id == *etcd && instance.active && instance.nodes.iter().any(|node| node == old));
        is_active || self.member(old).is_some_and(|member| !member.is_learner)
    }

    /// The devices that fence this node.
    pub(super) fn devices(&self, node: &str) -> Vec<&FenceDevice> {
        let all = self.cluster.configuration.known().map(|known| known.fence_devices.as_slice()).unwrap_or_default();
        all.iter().filter(|device| device.targets.iter().any(|target| target == node)).collect()
    }

    fn device_runs(&self, change: &Change, new: &str) -> bool {
        let is_wanted = |device: &&FenceDevice| {
            let is_as_typed = |(name, value): &(String, String)| device.resource.parameters.get(name) == Some(value);
            // One that was there before stays as it is; a new one is kept from the node that it fences.
            let stays_away = change.fence.is_empty() || device.banned_from.iter().any(|node| node == new);
            stays_away && change.fence.iter().all(is_as_typed)
        };
        let instances = self.cluster.pacemaker.known().map(|known| known.resources.as_slice()).unwrap_or_default();
        self.devices(new).iter().filter(|device| is_wanted(device)).any(|device| {
            instances.iter().any(|instance| {
                let is_started = instance.active && instance.role == "Started";
                instance.id == device.resource.id && is_started && !instance.failed && instance.pending.is_none()
            })
        })
    }

    /// Why the device of `new` does not run.
    pub(super) fn device_failure(&self, new: &str) -> Option<String> {
        let ids: Vec<&str> = self.devices(new).iter().map(|device| device.resource.id.as_str()).collect();
        let failures = self.cluster.pacemaker.known().map(|known| known.failures.as_slice()).unwrap_or_default();
        let failure = failures.iter().find(|failure| ids.contains(&failure.resource.as_str()))?;
        Some(if failure.reason.is_empty() { failure.status.clone() } else { failure.reason.clone() })
    }
}
