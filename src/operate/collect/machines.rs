//! Upkeep of the voters' Machines: their hooks, and a replacement that is due. Only the collector of the leader's node does it.

use std::path::Path;

use crate::agent::resource::params;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::health::view;
use crate::operate::members::watch::{self, Due, Kept};
use crate::operate::node;
use crate::records::events::{Event, Repeat, Type, reason};

/// Time after which the collector reports a pending replacement of a Machine again, in milliseconds.
const AGAIN: u64 = 24 * 60 * 60 * 1000;
/// Period of the queries to OpenShift's API about Machines if `machine_hooks` is off, in seconds. The collector runs every 30 s. It
/// queries only in the first [`SLOT`] seconds of each period, which is once or twice per period.
const EVERY: u64 = 300;
const SLOT: u64 = 45;

/// Maintains the deletion hooks on the two voters' Machines in OpenShift, if this node's etcd leads and the kubeconfig exists.
/// Otherwise does nothing, and returns an empty result.
pub fn keep(cluster: &Cluster, resource: Option<&str>) -> Result<Kept, Failure> {
    let Some(writes) = is_due(cluster) else { return Ok(Kept::default()) };
    let kept = node::context(resource).and_then(|context| watch::of_pair(&context, Path::new(watch::PATH), writes));
    // Without hooks to write, an unreachable API is no problem of this node.
    if writes { kept } else { Ok(Kept { problems: Vec::new(), ..kept.unwrap_or_default() }) }
}

/// Returns whether the deletion hooks on the Machines are to be written. Returns `None` if etcd on this node does not lead, or if
/// OpenShift's API need not be queried now.
fn is_due(cluster: &Cluster) -> Option<bool> {
    let leads = cluster.etcd.get(&cluster.here)?.known().is_some_and(view::leads);
    let configuration = cluster.configuration.known()?;
    let hooks = configuration.etcd.as_ref()?.parameters.get("machine_hooks");
    let writes = params::keeps_machine_hooks(hooks.map(String::as_str));
    // A missing kubeconfig is a problem only if `machine_hooks` asks for hooks.
    let asks = writes || cluster.at % EVERY < SLOT && super::kubeconfig(configuration).exists();
    (leads && asks).then_some(writes)
}

/// Returns the events to record after [`keep`], each with the condition under which the event may repeat.
pub fn events(cluster: &Cluster, kept: &Kept) -> Vec<(Event, Repeat<'static>)> {
    let told = |reason: &str, node: &str, message: String, cause: String| {
        Event::new(cluster.at * 1000, Type::Warning, reason, node, message, cause)
    };
    let given_up = kept.given_up.iter().map(|node| {
        let cause = format!("{} {node} {}", reason::HOOK_GIVEN_UP, cluster.at);
        (told(reason::HOOK_GIVEN_UP, node, Kept::gave_up(node), cause), Repeat::Never)
    });
    let due = kept.due.iter().map(|due| {
        let Due { old, new, command } = due;
        let event =
            told(reason::REPLACEMENT_DUE, old, due.sentence(), format!("{} {old} {new}", reason::REPLACEMENT_DUE));
        let details = [("old", old.clone()), ("new", new.clone()), ("command", command.clone())];
        (event.with_details(details), Repeat::Until { ends: &[], within: AGAIN })
    });
    given_up.chain(due).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Fact;
    use crate::operate::health::samples;
    use crate::records::events::append;

    fn with(parameters: &[(&str, &str)], here: &str) -> Cluster {
        let mut cluster = Cluster { here: here.to_owned(), at: 10 * EVERY, ..samples::read("healthy") };
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!("it is known") };
        let etcd = configuration.etcd.as_mut().unwrap();
        for (name, value) in parameters {
            etcd.parameters.insert((*name).to_owned(), (*value).to_owned());
        }
        cluster
    }

    #[test]
    fn only_the_leaders_node_looks_after_machines_and_only_where_an_api_has_some() {
        let leads = |node: &str| with(&[], node).etcd[node].known().is_some_and(view::leads);
        let (leader, other) = if leads("node1") { ("node1", "node2") } else { ("node2", "node1") };
        let dir = tempfile::tempdir().unwrap();
        let (file, none) = (dir.path().join("kubeconfig"), dir.path().join("none"));
        std::fs::write(&file, "").unwrap();
        let due = |hooks: &str, path: &Path, here: &str| {
            is_due(&with(&[("machine_hooks", hooks), ("kubeconfig", path.to_str().unwrap())], here))
        };
        assert_eq!((due("yes", &file, leader), due("yes", &file, other)), (Some(true), None));
        assert_eq!((due("no", &file, leader), due("no", &none, leader)), (Some(false), None));
        assert_eq!((due("", &file, leader), due("perhaps", &file, leader)), (Some(false), Some(false)));
        assert_eq!(due("yes", &none, leader), Some(true), "what is wanted and cannot be done is a problem");
        let later = |hooks: &str| {
            let cluster = with(&[("machine_hooks", hooks), ("kubeconfig", file.to_str().unwrap())], leader);
            is_due(&Cluster { at: cluster.at + 60, ..cluster })
        };
        assert_eq!((later("yes"), later("no")), (Some(true), None), "without hooks the API is asked each five minutes");
    }

    #[test]
    fn a_replacement_that_stays_due_is_told_once_a_day() {
        let command = "tandem member replace node2 --new node4=192.0.2.4".to_owned();
        let due = vec![Due { old: "node2".to_owned(), new: "node4".to_owned(), command: command.clone() }];
        let kept = Kept { due, given_up: vec!["node1".to_owned()], ..Kept::default() };
        let dir = tempfile::tempdir().unwrap();
        let told = |at: u64| -> Vec<(String, bool)> {
            let events = events(&Cluster { at, ..samples::read("healthy") }, &kept);
            let append =
                |(event, repeat): (Event, Repeat<'_>)| (event.reason.clone(), append(dir.path(), event, repeat));
            events.into_iter().map(append).map(|(reason, told)| (reason, told.unwrap())).collect()
        };
        let (gave_up, due) =
            (|told| ("MachineHookGivenUp".to_owned(), told), |told| ("MemberReplacementDue".to_owned(), told));
        let day = 24 * 60 * 60;
        assert_eq!(told(1_000_000), [gave_up(true), due(true)]);
        assert_eq!(told(1_000_030), [gave_up(true), due(false)]);
        assert_eq!(told(1_000_030 + day), [gave_up(true), due(true)]);
        let event = &events(&samples::read("healthy"), &kept)[1].0;
        assert!(event.message.ends_with(&format!("type '{command}'")), "{}", event.message);
        assert_eq!((event.node.as_str(), &event.details["command"]), ("node2", &command));
    }
}
