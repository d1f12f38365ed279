//! A pair of OpenShift's: its operators forget the old node, fence and add the new one, and change the map. What they wait for is done
//! here, through the API: the old machine's objects are saved and deleted. None is made.

use std::path::Path;

use super::change::{Kind, SAVED};
use super::facts::Look;
use super::operators::api;
use super::plan::{Old, Seen};
use super::work::{Took, Work};
use crate::admin::exit::Failure;
use crate::openshift::replaced::{Api, NodeIs, Replaced, Trouble, Turn};

impl Work {
    fn asked<T>(&self, look: &Look, ask: impl FnOnce(&Api) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let old = self.change.old.as_ref().ok_or_else(|| Trouble::Lasts("there is no old node".to_owned()))?;
        ask(&api(old, &look.context)?)
    }

    /// Before anything is changed: whether the API is of use, and knows whose objects are meant. One without an etcd is asked later.
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

    /// While its kubelet says that it is ready, the machine of that name may be the new one.
    pub(super) fn save_objects(&mut self, look: &Look, seen: &Seen) -> Result<Took, Failure> {
        let old = self.change.old.as_ref().map(|old| old.name.clone()).unwrap_or_default();
        // One that was lost stays out, too, where it comes back before it is replaced.
        if seen.old == Old::Stopped && !look.is_standby(&old) {
            self.typed(&["pcs", "node", "standby", &old])?;
            return Ok(Took::Acted(format!("{old} is in standby, should its old machine come back")));
        }
        let saved = self.asked(look, |api| match api.node_is(&Replaced::default())? {
            NodeIs::New { ready: true } => Ok(None),
            _ => api.save(Path::new(SAVED)).map(Some),
        });
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
        if self.change.openshift.as_ref() != Some(&replaced) {
            // What is deleted next is written down first.
            self.change.openshift = Some(replaced);
            self.change.save()?;
        }
        match turn {
            Ok(Turn::Did(what)) => Ok(Took::Acted(what)),
            Ok(Turn::Waits(what)) => Ok(Took::Waits(what)),
            Ok(Turn::Over) => Ok(Took::Over("nothing of the old machine is left".to_owned())),
            Err(trouble) => waits(look, trouble),
        }
    }

    /// Somebody gives the new machine its objects.
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

fn waits(look: &Look, trouble: Trouble) -> Result<Took, Failure> {
    match trouble {
        Trouble::Passes(why) => Ok(Took::Waits(format!("waits for OpenShift's API: {why}"))),
        Trouble::Lasts(why) => Err(unusable(look, &why)),
    }
}

fn unusable(look: &Look, why: &str) -> Failure {
    let file = look.context.params.kubeconfig.display();
    Failure(format!(
        "OpenShift's API is of no use here, asked with {file}: {why}: put that right; 'tandem member replace' goes on"
    ))
}
