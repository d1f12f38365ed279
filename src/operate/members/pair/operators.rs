//! Rules of a change on OpenShift that need no step: orders that make no sense there, the owner of a Node's name, and the commands that
//! undo a change.

use super::change::{Change, Kind, Place, SAVED};
use super::plan::{Old, PairSeen, PairStep};
use super::wrong::Typed;
use crate::adapters::openshift::replaced::{Api, NodeIs, PATIENCE, Replaced, Trouble};
use crate::agent::resource::context::Context;

/// Refuses orders that OpenShift's operators carry out themselves, such as adding a node.
pub(super) fn wrong(typed: &Typed) -> Result<(), String> {
    if typed.kind == Some(Kind::Add) {
        return Err("OpenShift's etcd operator adds nodes: 'oc apply' the BareMetalHost and the Machine of the new one; a node in \
                    standby is back with 'pcs node unstandby NODE'"
            .to_owned());
    }
    if typed.new.is_some() || !typed.fence.is_empty() || !typed.links.is_empty() {
        return Err(
            "on OpenShift a new machine takes the name and the address of the old one, and its BMC is in the Secret \
                    fencing-credentials-NODE of openshift-etcd: leave --new and --fence out"
                .to_owned(),
        );
    }
    Ok(())
}

pub(super) fn api(old: &Place, context: &Context) -> Result<Api, Trouble> {
    Api::of(&context.params.kubeconfig, &old.name, old.address.to_string(), PATIENCE)
}

/// Returns whether the Node in OpenShift's API that has the old node's name belongs to the new machine. Returns `None` if the API does
/// not answer. Also returns `None` before the old objects are saved and after the new Node is recorded, because nothing uses the answer
/// at these times.
pub(super) fn is_new_node(change: &Change, context: &Context) -> Option<bool> {
    let (replaced, old) = (change.openshift.as_ref()?, change.old.as_ref()?);
    if !change.has(PairStep::Save) || change.has(PairStep::Node) {
        return None;
    }
    let node = api(old, context).and_then(|api| api.node_is(replaced)).ok()?;
    Some(matches!(node, NodeIs::New { .. }))
}

/// Returns the commands that undo a member change on OpenShift, and a message about the objects that were deleted. They are not restored,
/// because OpenShift's operators would take them for those of a new machine.
pub(super) fn taken_back(change: &Change, seen: &PairSeen, replaced: &Replaced) -> (Vec<Vec<String>>, Option<String>) {
    let old = change.old.as_ref().map(|old| old.name.as_str()).unwrap_or_default();
    let mut typed = Vec::new();
    if seen.old != Old::Gone {
        if seen.old == Old::Stopped && !change.has(PairStep::Save) {
            typed.push(["pcs", "cluster", "start", old]);
        }
        typed.push(["pcs", "node", "unstandby", old]);
    }
    let told = (!replaced.saved.is_empty()).then(|| {
        format!(
            "what OpenShift's API had of {old} is in {SAVED}: 'oc get machines,bmh -n openshift-machine-api' shows what of it is gone, \
             which is not brought back"
        )
    });
    (typed.into_iter().map(|words| words.map(str::to_owned).into()).collect(), told)
}

#[cfg(test)]
mod tests {
    use super::super::fake_node1::Node1;
    use super::super::plan::tests::{change, pair, place};
    use super::*;
    use crate::adapters::kubernetes::kubeconfig::for_server;
    use crate::adapters::openshift::machines::fake_api::FakeApi;
    use crate::adapters::openshift::replaced::Saved;
    use crate::decide::members::Newcomer;
    use crate::operate::health::samples;

    #[test]
    fn what_the_operators_do_is_told_and_not_done() {
        let replaced = || Typed { kind: Some(Kind::Replace), old: Some("node2".to_owned()), ..Typed::default() };
        assert_eq!(wrong(&replaced()), Ok(()));
        assert_eq!(wrong(&Typed { kind: Some(Kind::Remove), ..replaced() }), Ok(()));
        assert_eq!(wrong(&Typed::default()), Ok(()), "one that is under way goes on");
        let new = Some(Newcomer { name: "node3".to_owned(), peer_url: "https://192.0.2.3:2380".to_owned() });
        let fence = vec![("ip".to_owned(), "192.0.2.103".to_owned())];
        let links = vec!["198.51.100.3".parse().unwrap()];
        for typed in
            [Typed { new: new.clone(), ..replaced() }, Typed { fence, ..replaced() }, Typed { links, ..replaced() }]
        {
            assert!(wrong(&typed).unwrap_err().ends_with("leave --new and --fence out"), "{typed:?}");
        }
        assert!(wrong(&Typed { kind: Some(Kind::Add), new, ..Typed::default() }).unwrap_err().contains("adds nodes"));
    }

    fn did(change: &mut Change, step: PairStep) {
        change.log.push(super::super::change::Entry { at: 0, step, what: String::new() });
    }

    /// Asserts that OpenShift's API is asked which machine has the old node's name only during a part of the change. That part begins
    /// when the old Node may have been deleted, and ends when the new Node is recorded.
    #[test]
    fn the_api_says_whose_the_name_is_once_the_old_node_may_be_gone() {
        let node1 = Node1::new();
        let fake_api = FakeApi::start(true);
        fake_api.add_node("node2", "192.0.2.2");
        let uid = || Some(fake_api.get("/api/v1/nodes/node2")?["metadata"]["uid"].as_str()?.to_owned());
        let mut context = node1.look(samples::read("healthy")).context;
        context.params.kubeconfig = for_server(&node1.dir, &fake_api.server);
        let node2 = Some(place("node2", 2));
        let replaced = Replaced { node: uid(), ..Replaced::default() };
        let mut change = Change { openshift: Some(replaced), ..change(Kind::Replace, node2.clone(), node2) };
        assert_eq!(is_new_node(&change, &context), None, "nothing was deleted");
        did(&mut change, PairStep::Save);
        assert_eq!(is_new_node(&change, &context), Some(false));
        fake_api.remove("/api/v1/nodes/node2");
        assert_eq!(is_new_node(&change, &context), Some(false), "there is none");
        fake_api.add_node("node2", "192.0.2.2");
        assert_eq!(is_new_node(&change, &context), Some(true));
        fake_api.fail(1, "503 Service Unavailable");
        assert_eq!(is_new_node(&change, &context), None, "nobody knows");
        did(&mut change, PairStep::Node);
        assert_eq!(is_new_node(&change, &context), None, "it is written down");
    }

    #[test]
    fn what_was_deleted_is_not_brought_back_and_it_is_told_where_it_is() {
        let node2 = Some(place("node2", 2));
        let mut change = Change { openshift: Some(Replaced::default()), ..change(Kind::Replace, node2.clone(), node2) };
        let back = |change: &Change, old, replaced: &Replaced| {
            let (typed, told) = taken_back(change, &PairSeen { old, ..pair() }, replaced);
            (typed.iter().map(|words| words.join(" ")).collect::<Vec<_>>(), told)
        };
        let (typed, told) = back(&change, Old::Stopped, &Replaced::default());
        assert_eq!((typed.join("; ").as_str(), told), ("pcs cluster start node2; pcs node unstandby node2", None));
        let standby = Old::Online { standby: true };
        assert_eq!(back(&change, standby, &Replaced::default()).0, ["pcs node unstandby node2"], "its Pacemaker runs");
        did(&mut change, PairStep::Save);
        let saved = Saved { path: "/p".to_owned(), uid: "u".to_owned(), file: "/f".into() };
        let replaced = Replaced { node: None, saved: vec![saved] };
        let (typed, told) = back(&change, Old::Stopped, &replaced);
        assert_eq!(typed, ["pcs node unstandby node2"], "its machine may be off for good");
        assert!(told.unwrap().contains(SAVED));
        assert!(back(&change, Old::Gone, &replaced).0.is_empty());
    }
}
