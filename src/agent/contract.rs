//! Sentences that external tests of Two Node OpenShift search for in the logs. They are logged when they are true.

use std::collections::BTreeSet;

use crate::agent::resource::context::Context;
use crate::decide::{Evidence, Request};

/// Logs Pacemaker's variables about the transition, once in a start or a stop. External tests search the log for these sentences.
pub(super) fn say(context: &Context, request: Request, evidence: &Evidence) {
    let Some(notify) = &context.notify else { return };
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
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
            if peer_is_active && is_sole_voter(evidence) {
                log::info!("peer active but not a voter: this node's data decides");
            }
        }
        Request::Stop => {
            log::info!("found '{}' stopping etcd resources (stop: '{}')", notify.stop.len(), list(&notify.stop));
            let peer = context.peer.as_ref().map(|peer| peer.name.as_str());
            if peer.is_some_and(|peer| is_second_to_stop(&context.me.name, peer, &notify.stop)) {
                log::info!("not delaying stop for {}: both stop, and both stay listed", context.me.name);
            }
        }
        _ => {}
    }
}

/// Returns whether both nodes stop together and this node's name is the later one in the alphabet. The shell agent delays the stop on that
/// node, so that the two members do not leave the member list at once.
fn is_second_to_stop(me: &str, peer: &str, stop: &BTreeSet<String>) -> bool {
    me > peer && stop.contains(me) && stop.contains(peer)
}

/// Returns whether the CIB names this node as the sole voter.
fn is_sole_voter(evidence: &Evidence) -> bool {
    evidence.cib.known().is_some_and(|cib| cib.standalone_node.as_ref() == Some(&evidence.me.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_that_stop_together_the_second_says_that_it_is_not_delayed() {
        let stop = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let both = stop(&["node1", "node2"]);
        assert!(is_second_to_stop("node2", "node1", &both));
        assert!(!is_second_to_stop("node1", "node2", &both), "the first never is");
        assert!(!is_second_to_stop("node2", "node1", &stop(&["node2"])), "it leaves the list then");
    }
}
