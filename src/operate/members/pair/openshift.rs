//! The steps of a pair on OpenShift, where the operators forget the old node, fence and add the new one, and change the map. The
//! operators wait until the old machine's objects are gone, so these steps save and delete them through the API. They create none.

use std::path::Path;

use super::change::{Change, Kind, SAVED};
use super::facts::Look;
use super::operators::api;
use super::plan::{Old, PairSeen};
use super::work::{Took, Work};
use crate::adapters::openshift::replaced::{Api, NodeIs, Replaced, Trouble, Turn};
use crate::operate::failure::Failure;

impl Work {
    fn asked<T>(&self, look: &Look, ask: impl FnOnce(&Api) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let old = self.change.old.as_ref().ok_or_else(|| Trouble::Lasts("there is no old node".to_owned()))?;
        ask(&api(old, &look.context)?)
    }

    /// Checks before a member change that OpenShift's API is usable and has the old node's objects. The check is postponed if the API
    /// does not answer because etcd does not serve, and the operator has declared the old node off.
    pub(super) fn check_objects(&self, look: &Look) -> Result<(), Failure> {
        if self.change.kind != Kind::Replace {
            return Ok(());
        }
        match self.asked(look, Api::find) {
            Ok(()) => Ok(()),
            Err(Trouble::Passes(_)) if self.change.old_is_off => Ok(()),
            Err(Trouble::Passes(why) | Trouble::Lasts(why)) => Err(unusable(look, &why)),
        }
    }

    /// Saves the old node's objects of OpenShift's API as files. Waits while the Node is ready, because a running machine of that name
    /// may be the new one.
    pub(super) fn save_objects(&mut self, look: &Look, seen: &PairSeen) -> Result<Took, Failure> {
        let old = self.change.old.as_ref().map(|old| old.name.clone()).unwrap_or_default();
        // A lost node must also stay out if it comes back before it is replaced.
        if seen.old == Old::Stopped && !look.is_standby(&old) {
            self.typed(&["pcs", "node", "standby", &old])?;
            return Ok(Took::Acted(format!("{old} is in standby, should its old machine come back")));
        }
        let saved = self.asked(look, |api| saved(api, Path::new(SAVED)));
        match saved {
            Ok(Some(replaced)) => {
                let count = replaced.saved.len();
                self.change.openshift = Some(replaced);
                Ok(Took::Over(format!("{count} objects of {old} are saved in {SAVED}")))
            }
            Ok(None) => Ok(Took::Waits(format!("waits until the Node {old} is not ready any more: its machine runs"))),
            Err(trouble) => waits(look, trouble),
        }
    }

    pub(super) fn delete_objects(&mut self, look: &Look) -> Result<Took, Failure> {
        let mut replaced = self.change.openshift.clone().unwrap_or_default();
        let turn = self.asked(look, |api| api.turn(&mut replaced, Path::new(SAVED)));
        if is_noted(&mut self.change, replaced) {
            self.change.save()?;
        }
        match turn {
            Ok(Turn::Did(what)) => Ok(Took::Acted(what)),
            Ok(Turn::Waits(what)) => Ok(Took::Waits(what)),
            Ok(Turn::Over) => Ok(Took::Over("nothing of the old machine is left".to_owned())),
            Err(trouble) => waits(look, trouble),
        }
    }

    /// Waits until the operator has created the new machine's objects in OpenShift's API, and its Node is ready.
    pub(super) fn new_machine(&mut self, look: &Look) -> Result<Took, Failure> {
        let replaced = self.change.openshift.clone().unwrap_or_default();
        let new = self.change.new.as_ref().map(|new| new.name.clone()).unwrap_or_default();
        Ok(match self.asked(look, |api| api.node_is(&replaced)) {
            Ok(NodeIs::New { ready: true }) => Took::Over(format!("the new {new} has a Node, which is ready")),
            Ok(NodeIs::New { ready: false }) => Took::Waits(format!("waits until the new Node {new} is ready")),
            Ok(NodeIs::Absent | NodeIs::TheOld { .. }) => Took::Waits(format!(
                "waits for the new Node {new}: 'oc apply' the BareMetalHost and the Machine of the new machine; the old ones are in \
                 {SAVED}"
            )),
            Err(trouble) => return waits(look, trouble),
        })
    }
}

/// Saves the old node's objects of OpenShift's API in `directory`. Returns `None` if its Node is ready, because the machine runs.
fn saved(api: &Api, directory: &Path) -> Result<Option<Replaced>, Trouble> {
    match api.node_is(&Replaced::default())? {
        NodeIs::New { ready: true } => Ok(None),
        _ => api.save(directory).map(Some),
    }
}

/// Stores in `change` the objects that are deleted next. Returns whether they are new, so that the change's file must be written.
fn is_noted(change: &mut Change, replaced: Replaced) -> bool {
    let before = change.openshift.replace(replaced);
    before != change.openshift
}

fn waits(look: &Look, trouble: Trouble) -> Result<Took, Failure> {
    match trouble {
        Trouble::Passes(why) => Ok(Took::Waits(format!("waits for OpenShift's API: {why}"))),
        Trouble::Lasts(why) => Err(unusable(look, &why)),
    }
}

fn unusable(look: &Look, why: &str) -> Failure {
    let file = look.context.params.kubeconfig.display();
    Failure(format!(
        "OpenShift's API is of no use here, asked with {file}: {why}: put that right; 'tandem member replace' continues"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::fake_node1::{Node1, parts};
    use super::super::plan::tests::{change, pair, place};
    use super::*;
    use crate::adapters::kubernetes::kubeconfig::for_server;
    use crate::adapters::openshift::machines::fake_api::FakeApi;
    use crate::adapters::openshift::replaced::{PATIENCE, Saved};
    use crate::operate::health::samples;

    const NODE: &str = "/api/v1/nodes/node2";

    fn replaced() -> Change {
        let node2 = Some(place("node2", 2));
        Change { openshift: Some(Replaced::default()), ..change(Kind::Replace, node2.clone(), node2) }
    }

    /// Returns a fake of OpenShift's API with two Nodes, and an observation on node1 of a pair that uses this API.
    fn of_openshift(node1: &Node1) -> (FakeApi, Look) {
        let fake_api = FakeApi::start(true);
        fake_api.add_node("node1", "192.0.2.1");
        fake_api.add_node("node2", "192.0.2.2");
        let mut look = node1.look(samples::read("healthy"));
        look.context.params.kubeconfig = for_server(&node1.dir, &fake_api.server);
        (fake_api, look)
    }

    #[test]
    fn nothing_begins_beside_an_api_that_is_of_no_use() {
        let node1 = Node1::new();
        let (fake_api, look) = of_openshift(&node1);
        let by_word = Change { old_is_off: true, ..replaced() };
        let removed = Change { kind: Kind::Remove, ..replaced() };
        for (change, status, may) in [
            (&replaced(), "", true),
            (&replaced(), "503 Service Unavailable", false),
            (&replaced(), "403 Forbidden", false),
            (&by_word, "503 Service Unavailable", true),
            (&by_word, "403 Forbidden", false),
            (&removed, "403 Forbidden", true),
        ] {
            fake_api.fail(usize::from(!status.is_empty()), status);
            let found = node1.work(change.clone(), "").check_objects(&look);
            fake_api.fail(0, "");
            assert_eq!(found.is_ok(), may, "{:?} {status}", change.kind);
        }
        fake_api.fail(1, "403 Forbidden");
        let Failure(why) = node1.work(replaced(), "").check(&look).unwrap_err();
        assert!(why.starts_with("OpenShift's API is of no use here"), "{why}");
    }

    /// Asserts that no objects of a running machine are saved. Saved objects are deleted later, and the running
    /// machine may be the new one.
    #[test]
    fn nothing_is_saved_of_a_machine_that_runs_and_an_old_one_that_comes_back_stays_out() {
        let node1 = Node1::new();
        let (fake_api, mut look) = of_openshift(&node1);
        let mut work = node1.work(replaced(), "");
        let stopped = PairSeen { old: Old::Stopped, ..pair() };
        assert!(matches!(work.save_objects(&look, &stopped), Ok(Took::Acted(_))));
        assert_eq!(node1.typed(), ["pcs node standby node2"]);
        parts(&mut look.cluster).0.nodes.iter_mut().for_each(|node| node.standby = node.name == "node2");
        let took = work.save_objects(&look, &stopped).unwrap();
        assert!(matches!(&took, Took::Waits(why) if why.contains("is not ready any more")), "{took:?}");
        let api = Api::of(&look.context.params.kubeconfig, "node2", "192.0.2.2".to_owned(), PATIENCE).unwrap();
        let directory = node1.dir.path().join("saved");
        assert_eq!((saved(&api, &directory), directory.exists()), (Ok(None), false));
        fake_api.stop_kubelet("node2");
        assert_eq!(saved(&api, &directory).unwrap().unwrap().saved.len(), 2, "its host and its Machine");
    }

    #[test]
    fn what_is_saved_is_noted_where_it_is_new() {
        let mut change = replaced();
        let one = Saved { path: "/p".to_owned(), uid: "u".to_owned(), file: "/f".into() };
        let more = Replaced { node: None, saved: vec![one] };
        assert!(!is_noted(&mut change, Replaced::default()));
        assert!(is_noted(&mut change, more.clone()) && !is_noted(&mut change, more.clone()));
        assert_eq!(change.openshift, Some(more));
    }

    #[test]
    fn the_new_machine_is_there_once_another_node_is_ready() {
        let node1 = Node1::new();
        let (fake_api, look) = of_openshift(&node1);
        let uid = fake_api.get(NODE).unwrap()["metadata"]["uid"].as_str().map(str::to_owned);
        let openshift = Some(Replaced { node: uid, ..Replaced::default() });
        let mut work = node1.work(Change { openshift, ..replaced() }, "");
        let waits = |took: Result<Took, Failure>, what: &str| {
            assert!(matches!(&took, Ok(Took::Waits(why)) if why.starts_with(what)), "{took:?}");
        };
        waits(work.new_machine(&look), "waits for the new Node node2");
        fake_api.remove(NODE);
        fake_api.add_node("node2", "192.0.2.2");
        fake_api.stop_kubelet("node2");
        waits(work.new_machine(&look), "waits until the new Node node2 is ready");
        fake_api.fail(1, "503 Service Unavailable");
        waits(work.new_machine(&look), "waits for OpenShift's API");
        fake_api.fail(1, "403 Forbidden");
        assert!(work.new_machine(&look).is_err(), "that does not pass by itself");
        fake_api.put(NODE, |node| node["status"]["conditions"][0]["status"] = serde_json::json!("True"));
        assert!(matches!(work.new_machine(&look), Ok(Took::Over(_))));
    }
}
