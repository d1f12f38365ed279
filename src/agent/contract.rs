//! Sentences that external tests of Two Node OpenShift search the logs for, where they are true.

use super::context::Context;
use crate::decide::Request;
use crate::pacemaker::cib;

/// Says what Pacemaker's variables tell of the transition, as a start or a stop begins.
pub(super) fn say(context: &Context, request: Request) {
    let Some(notify) = &context.notify else { return };
    let list = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    match request {
        Request::Start => {
            let active: Vec<&String> = notify.active.difference(&notify.stop).collect();
            log::info!(
                "found '{}' active etcd resources (active: '{}', stop: '{}')",
                active.len(),
                list(&notify.active),
                list(&notify.stop)
            );
            let peer_is_active = context.peer.as_ref().is_some_and(|peer| active.contains(&&peer.name));
            if peer_is_active && is_sole_voter(context) {
                log::info!("peer active but not a voter: this node's data decides");
            }
        }
        Request::Stop => {
            log::info!("found '{}' stopping etcd resources (stop: '{}')", notify.stop.len(), list(&notify.stop));
        }
        Request::Monitor | Request::Probe | Request::Notify | Request::Promote | Request::Demote => {}
    }
}

fn is_sole_voter(context: &Context) -> bool {
    let peer = context.peer.as_ref().map(|peer| peer.name.as_str());
    cib::query(&context.resource, &context.me.name, peer)
        .is_ok_and(|cib| cib.standalone_node.as_ref() == Some(&context.me.name))
}
