//! The old node goes: out of the member list, out of the cluster, out of the configuration.

use std::time::Duration;

use super::facts::Look;
use super::plan::{Old, Seen};
use super::work::{Took, Work};
use crate::admin::exit::Failure;
use crate::clock::{self, Deadline};
use crate::pacemaker::by_hand;

/// How long Pacemaker has for the fencing of a node that is lost.
const FENCING: Duration = Duration::from_secs(120);
/// Between two looks at a BMC that says Off.
const TWICE: Duration = Duration::from_secs(3);

impl Work {
    fn old(&self) -> String {
        self.change.old.as_ref().map(|old| old.name.clone()).unwrap_or_default()
    }

    /// Pacemaker stops etcd there, whose agent leaves the member list first; or this node's agent goes on alone.
    pub(super) fn leave(&mut self, look: &Look, seen: &Seen) -> Result<Took, Failure> {
        let (old, here) = (self.old(), self.change.here.name.clone());
        match seen.old {
            Old::Online { standby: false } => {
                self.typed(&["pcs", "node", "standby", &old])?;
                Ok(Took::Acted(format!("{old} is in standby")))
            }
            Old::Online { standby: true } => Ok(Took::Waits(format!("waits until etcd has left {old}"))),
            Old::Stopped | Old::Gone => Ok(Took::Waits(format!("waits until {here} serves alone"))),
            Old::Unclean => self.unclean(look),
        }
    }

    /// Pacemaker is stopped there: nothing of the cluster runs any more, and nobody has to fence it.
    pub(super) fn out(&mut self, look: &Look, seen: &Seen) -> Result<Took, Failure> {
        let old = self.old();
        match seen.old {
            Old::Online { .. } => {
                let stop = ["pcs", "cluster", "stop", &old, "--force"];
                self.typed(&stop).map_err(|Failure(why)| {
                    Failure(format!(
                        "{why}: type 'pcs cluster stop' on {old}, or 'pcs stonith fence {old}' here; 'tandem member replace' goes on"
                    ))
                })?;
                Ok(Took::Acted(format!("the cluster is stopped on {old}")))
            }
            Old::Unclean => self.unclean(look),
            Old::Stopped | Old::Gone => Ok(Took::Waits(format!("waits until Pacemaker has {old} stopped"))),
        }
    }

    /// Nobody knows what it does: the fencer finds out, unless its BMC is as dead as the machine.
    fn unclean(&mut self, look: &Look) -> Result<Took, Failure> {
        let old = self.old();
        if self.change.old_is_off {
            by_hand::confirm_off(&self.programs, &old)?;
            return Ok(Took::Acted(format!("Pacemaker is told that {old} is off, by an operator's word")));
        }
        let since = *self.unclean.get_or_insert_with(|| Deadline::after(FENCING));
        if !since.has_passed() {
            return Ok(Took::Waits(format!("waits until {old} is fenced")));
        }
        let is_off = || self.power_of(look, &old).is_some_and(|power| power == "Off");
        if is_off() {
            clock::sleep(TWICE);
            if is_off() {
                by_hand::confirm_off(&self.programs, &old)?;
                return Ok(Took::Acted(format!("Pacemaker is told that {old} is off, as its BMC has said twice")));
            }
        }
        Err(Failure(format!(
            "{old} is not fenced, and its BMC does not say that it is off: 'pcs stonith fence {old}', or 'tandem member replace \
             {old} --old-is-off' with the same options once you have seen that it is"
        )))
    }

    /// What Pacemaker and Corosync have of it, and what was configured for it alone.
    pub(super) fn forget(&mut self, look: &Look) -> Result<Took, Failure> {
        let old = self.old();
        if look.seen(&self.change).old != Old::Gone {
            self.typed(&["pcs", "cluster", "node", "remove", &old, "--skip-offline", "--force"])?;
            return Ok(Took::Acted(format!("pcs has removed {old}")));
        }
        let kept = self.change.keeps_name() && self.change.fence.is_empty();
        let own = self.change.new.as_ref().map(|new| format!("fence-{}", new.name));
        for device in look.devices(&old) {
            let id = &device.resource.id;
            let is_shared = device.targets.len() > 1;
            if kept || is_shared || self.change.keeps_name() && own.as_ref() == Some(id) {
                continue;
            }
            self.typed(&["pcs", "stonith", "delete", id])?;
        }
        if !self.change.keeps_name() {
            for id in self.constraints(&old)? {
                self.typed(&["pcs", "constraint", "delete", &id])?;
            }
        }
        self.forget_in_memory(look)?;
        Ok(Took::Over(format!("{old} is forgotten")))
    }

    /// The constraints that name it.
    fn constraints(&self, old: &str) -> Result<Vec<String>, Failure> {
        let output = self.programs.run("cibadmin", &["--query", "--scope", "constraints"], Duration::from_secs(30))?;
        if output.code != 0 {
            return Ok(Vec::new());
        }
        let document = roxmltree::Document::parse(&output.stdout)?;
        let named = document.descendants().filter(|one| one.attribute("node") == Some(old));
        Ok(named.filter_map(|one| one.attribute("id").map(str::to_owned)).collect())
    }
}
