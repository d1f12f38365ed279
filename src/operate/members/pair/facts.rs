//! One observation of everything that the steps of a change need.

use std::net::IpAddr;

use super::change::Change;
use super::nodes;
use super::operators;
use super::plan::{Old, PairSeen};
use crate::adapters::corosync::conf;
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::agent::resource::context::Context;
use crate::decide::evidence::ThirdVoter;
use crate::decide::members::Member;
use crate::operate::cluster;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::health;
use crate::operate::members::look::{self, MembersSeen as Members};
use crate::operate::members::order::Terms;
use crate::operate::members::source::Source;
use crate::operate::setup::cluster::{Corosync, parse_corosync};

/// The observed state of Pacemaker, etcd's members and Corosync, from which the next step of a member change follows.
pub(super) struct Look {
    pub(super) cluster: Cluster,
    /// The observed members, or an error if no member list could be read.
    pub(super) members: Result<Members, Failure>,
    pub(super) context: Context,
    pub(super) corosync: Corosync,
    is_new_node: Option<bool>,
}

/// Reads Corosync's configuration on this node.
fn corosync() -> Result<Corosync, Failure> {
    let text = conf::text().map_err(|error| Failure(format!("{} cannot be read: {error}", conf::PATH)))?;
    Ok(parse_corosync(&text))
}

impl Look {
    /// Observes Pacemaker, the members and Corosync. The command's `own` change is left out, because it is no obstacle to that command.
    pub(super) fn at_all(terms: &Terms, own: Option<&Change>) -> Result<Self, Failure> {
        let mut cluster = cluster::ask(terms.target.resource())?;
        let words = own.map(Change::words);
        if health::change_under_way(&cluster) == words {
            health::without_change(&mut cluster);
        }
        let context = terms.target.context()?;
        let mut members = look::look_twice(&Source::of_pair(&context));
        if let Ok(seen) = &mut members {
            seen.beside(&cluster);
        }
        // This must follow the observation of Pacemaker, because a new machine has a Node before it joins the cluster.
        let is_new_node = own.and_then(|own| operators::is_new_node(own, &context));
        Ok(Self { cluster, members, context, corosync: corosync()?, is_new_node })
    }

    #[cfg(test)]
    pub(super) fn of_test(
        cluster: Cluster,
        members: Result<Members, Failure>,
        context: Context,
        corosync: Corosync,
    ) -> Self {
        Self { cluster, members, context, corosync, is_new_node: None }
    }

    pub(super) fn seen(&self, change: &Change) -> PairSeen {
        let old = change.old.as_ref().map_or(Old::Gone, |old| nodes::old(&self.cluster, &old.name));
        let new = change.new.as_ref().map(|new| new.name.as_str());
        let node = |name: &str| self.cluster.pacemaker.known()?.nodes.iter().find(|node| node.name == name);
        let params = &self.context.params;
        let wanted = change.nodes();
        PairSeen {
            old,
            serves_alone: self.members.as_ref().is_ok_and(|it| nodes::serves_alone(&it.membership, &change.here.name)),
            old_serves: change.old.as_ref().is_some_and(|old| self.serves(&old.name)),
            device_runs: new.is_some_and(|new| nodes::device_runs(&self.cluster, change, new)),
            map_is_right: wanted.len() == params.nodes.len()
                && wanted
                    .iter()
                    .all(|place| params.nodes.iter().any(|one| one.name == place.name && one.ip == place.address)),
            new_is_known: new.is_some_and(|new| self.corosync.node(new).is_some()),
            new_is_online: new.and_then(node).is_some_and(|node| node.online && !node.pending),
            new_votes: new.and_then(|new| self.member(new)).is_some_and(|it| !it.is_learner && it.is_healthy()),
            is_new_node: self.is_new_node,
        }
    }

    /// Returns the third voter that the cluster property names; `None` if the pair has none.
    pub(super) fn third_voter(&self) -> Option<ThirdVoter> {
        health::third_voter(&self.cluster)
    }

    pub(super) fn is_standby(&self, name: &str) -> bool {
        let nodes = self.cluster.pacemaker.known().map(|known| known.nodes.as_slice()).unwrap_or_default();
        nodes.iter().any(|node| node.name == name && node.standby)
    }

    /// Returns the etcd member of `node`, matched by the node's address in the present `node_ip_map`; `None` if there
    /// is none.
    pub(super) fn member(&self, node: &str) -> Option<&Member> {
        let members = &self.members.as_ref().ok()?.membership.members;
        members.iter().find(|member| member.node.as_deref() == Some(node))
    }

    fn serves(&self, old: &str) -> bool {
        let votes = self.member(old).is_some_and(|member| !member.is_learner);
        votes || nodes::runs_etcd(&self.cluster, &self.context.resource, old)
    }

    pub(super) fn devices(&self, node: &str) -> Vec<&FenceDevice> {
        nodes::devices(&self.cluster, node)
    }

    /// Returns the node's addresses on Corosync's links other than the first. Host names are left out, because 'tandem member' passes
    /// only addresses on.
    pub(super) fn links(&self, node: &str) -> Vec<IpAddr> {
        let mut all: Vec<_> = self.corosync.node(node).map(|node| node.addresses.clone()).unwrap_or_default();
        all.sort_unstable();
        all.iter().skip(1).filter_map(|(_, address)| address.parse().ok()).collect()
    }

    /// Returns whether every fence device of `node` runs. A device that is banned from `node` must run on `other`.
    pub(super) fn is_fenced_from(&self, node: &str, other: &str) -> bool {
        nodes::is_fenced_from(&self.cluster, node, other)
    }

    /// Returns the failure that Pacemaker reports for a fence device of the node `new`; `None` if it reports none.
    pub(super) fn device_failure(&self, new: &str) -> Option<String> {
        let ids: Vec<&str> = self.devices(new).iter().map(|device| device.resource.id.as_str()).collect();
        let failures = self.cluster.pacemaker.known().map(|known| known.failures.as_slice()).unwrap_or_default();
        let failure = failures.iter().find(|failure| ids.contains(&failure.resource.as_str()))?;
        Some(if failure.reason.is_empty() { failure.status.clone() } else { failure.reason.clone() })
    }
}
