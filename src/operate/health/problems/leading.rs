//! Problems with the configured primary: parameters that name no node, and a primary that follows.

use super::{Found, on};
use crate::adapters::pacemaker::seen::Resource;
use crate::agent::resource::params::leading::{self, Leading};
use crate::agent::resource::params::{self, NodeIp};
use crate::base::shell::command;
use crate::decide::TRIES_OF_A_HAND_OVER;
use crate::decide::evidence::Cause;
use crate::operate::cluster::{Cluster, DueHandOver};
use crate::operate::health::view;

/// The configured etcd resource, and the nodes in its `node_ip_map`.
struct Configured<'a> {
    etcd: &'a Resource,
    nodes: Vec<NodeIp>,
}

impl<'a> Configured<'a> {
    fn of(cluster: &'a Cluster) -> Option<Self> {
        let etcd = cluster.configuration.known()?.etcd.as_ref()?;
        let nodes = params::node_ip_map(etcd.parameters.get("node_ip_map")?).ok()?;
        Some(Self { etcd, nodes })
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.etcd.parameters.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn leading(&self) -> Leading {
        leading::read(|name| self.get(name), &self.nodes)
    }
}

/// Returns the node that is configured as primary (`configured_primary`); `None` if there is none.
pub fn primary(cluster: &Cluster) -> Option<String> {
    Configured::of(cluster)?.leading().primary
}

/// Returns what the agents do after both nodes ran standalone: `primary` or `refuse`, as `two_histories` configures.
pub fn two_histories(cluster: &Cluster) -> Option<&'static str> {
    Some(if Configured::of(cluster)?.leading().keeps_its_history { "primary" } else { "refuse" })
}

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    let Some(configured) = Configured::of(cluster) else { return };
    let id = configured.etcd.id.as_str();
    if let Some(why) = leading::fault(|name| configured.get(name), &configured.nodes, id) {
        let name = why.split('=').next().unwrap_or_default().to_owned();
        found.warning("primary-unknown", None, why).typed(command!("pcs resource update {} {}=", id, name));
    }
    follows(cluster, &configured.leading(), found);
}

/// Returns in words when the other node lets the primary run standalone: a time from now, or a time after the loss of its leader.
/// Returns `None` if the other node is not configured to do so, or unless Pacemaker sees both nodes as online.
pub(super) fn yields(cluster: &Cluster) -> Option<String> {
    let wanted = Configured::of(cluster)?.leading();
    let primary = wanted.primary.filter(|_| wanted.patience_s > 0)?;
    let names = view::names(cluster);
    let other = names.iter().find(|name| **name != primary)?;
    if !names.iter().all(|name| view::is_online(cluster, name)) {
        return None;
    }
    let patience_s = wanted.patience_s;
    Some(match cluster.leaderless_for_s.filter(|_| *other == cluster.here) {
        Some(for_s) => {
            let left_s = patience_s.saturating_sub(for_s);
            format!("{other} gives its claim up in {left_s} s, and {primary} runs standalone")
        }
        None => {
            format!("{other} gives its claim up {patience_s} s after it lost its leader, and {primary} runs standalone")
        }
    })
}

/// Reports that another node than the configured primary leads, although the primary's etcd runs.
fn follows(cluster: &Cluster, wanted: &Leading, found: &mut Found) {
    let Some(primary) = wanted.primary.as_deref().filter(|_| wanted.failback) else { return };
    let Some((leader, _)) = view::leading(cluster).filter(|(name, etcd)| view::leads(etcd) && *name != primary) else {
        return;
    };
    if view::etcd(cluster, primary).is_none() {
        return;
    }
    let due = cluster.hand_over.filter(|due| due.cause == Cause::Primary && *leader == cluster.here);
    let when = when(due, wanted.delay_s);
    let text = format!("{leader} leads in the place of {primary}, the configured primary: {when}");
    found.notice("primary-follows", Some(primary), text).typed(on(cluster, leader, "tandem explain"));
}

fn when(due: Option<DueHandOver>, delay_s: u64) -> String {
    match due {
        Some(due) if due.tries >= TRIES_OF_A_HAND_OVER => "tries to hand it back were in vain".to_owned(),
        Some(due) => format!("leadership goes back to it in {} s", delay_s.saturating_sub(due.for_s)),
        None => format!("leadership goes back to it once it has been well for {delay_s} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_says_when_as_explain_does() {
        let due = |tries, for_s| Some(DueHandOver { cause: Cause::Primary, for_s, tries });
        assert_eq!(when(None, 60), "leadership goes back to it once it has been well for 60 s");
        assert_eq!(when(due(0, 20), 60), "leadership goes back to it in 40 s");
        // The next try follows after another delay.
        assert_eq!(when(due(2, 0), 60), "leadership goes back to it in 60 s");
        assert_eq!(when(due(2, 90), 60), "leadership goes back to it in 0 s");
        // The last try begins the delay anew, and none follows it.
        assert_eq!(when(due(3, 0), 60), "tries to hand it back were in vain");
    }
}
