//! The steps that remove the old node: from the member list, the cluster and the configuration.

use std::time::Duration;

use super::arrive::goes_on;
use super::change::Change;
use super::facts::Look;
use super::plan::{Old, PairSeen};
use super::work::{Took, Work};
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::adapters::pacemaker::{by_hand, exit_code};
use crate::operate::failure::Failure;
use crate::os::clock::Deadline;

/// Time that Pacemaker gets to fence a lost node before 'tandem member' asks the fencer itself.
const FENCING: Duration = Duration::from_secs(120);
/// Timeout of the request by which 'tandem member' asks the fencer to power a lost node off.
const ONCE_MORE: Duration = Duration::from_secs(60);

impl Work {
    fn old(&self) -> String {
        self.change.old.as_ref().map(|old| old.name.clone()).unwrap_or_default()
    }

    /// Puts the old node in standby, so that its agent leaves the member list and Pacemaker stops its etcd. If the old node is dead,
    /// waits until this node runs standalone.
    pub(super) fn leave(&mut self, seen: &PairSeen) -> Result<Took, Failure> {
        let (old, here) = (self.old(), self.change.here.name.clone());
        match seen.old {
            Old::Online { standby: false } => {
                self.typed(&["pcs", "node", "standby", &old])?;
                Ok(Took::Acted(format!("{old} is in standby")))
            }
            Old::Online { standby: true } => Ok(Took::Waits(format!("waits until etcd has left {old}"))),
            Old::Stopped | Old::Gone => Ok(Took::Waits(format!("waits until {here} serves alone"))),
            Old::Unclean => self.unclean(),
        }
    }

    /// Stops Pacemaker on the old node. After that, nothing of the cluster runs on the old node, and it needs no fencing.
    pub(super) fn out(&mut self, seen: &PairSeen) -> Result<Took, Failure> {
        let old = self.old();
        match seen.old {
            Old::Online { .. } => {
                let stop = ["pcs", "cluster", "stop", &old, "--force"];
                self.typed(&stop).map_err(|Failure(why)| {
                    Failure(format!(
                        "{why}: type 'pcs cluster stop' on {old}, or 'pcs stonith fence {old}' here; 'tandem member replace' continues"
                    ))
                })?;
                Ok(Took::Acted(format!("the cluster is stopped on {old}")))
            }
            Old::Unclean => self.unclean(),
            Old::Stopped | Old::Gone => Ok(Took::Waits(format!("waits until Pacemaker has {old} stopped"))),
        }
    }

    /// Handles an old node that Pacemaker reports as unclean. The node counts as off once the fencer proves it or the operator has
    /// confirmed it.
    pub(super) fn unclean(&mut self) -> Result<Took, Failure> {
        let old = self.old();
        let by_word = self.change.old_is_off;
        let fencing = *self.unclean.get_or_insert_with(|| Deadline::after(FENCING));
        let ask = || {
            self.progress.say(&format!("asks the fencer to power {old} off"));
            by_hand::fence(&self.programs, &old, ONCE_MORE).map_err(|error| error.to_string())
        };
        match lost(by_word, fencing.has_passed(), ask) {
            Lost::ByWord => {
                by_hand::confirm_off(&self.programs, &old)?;
                Ok(Took::Acted(format!("Pacemaker is told that {old} is off, by an operator's word")))
            }
            Lost::IsFenced => Ok(Took::Waits(format!("waits until {old} is fenced"))),
            Lost::IsOff => {
                // Pacemaker gets the same time again to notice it.
                self.unclean = None;
                Ok(Took::Acted(format!("the fencer has powered {old} off")))
            }
            Lost::MayRun(why) => Err(Failure(format!(
                "{old} is not fenced, and the fencer does not prove that it is off ({why}): 'pcs stonith fence {old}', or 'tandem member \
                 replace {old} --old-is-off' with the same options once you have seen that it is"
            ))),
        }
    }

    /// Removes the old node from Pacemaker and Corosync, with the fence devices and constraints that are only for it.
    pub(super) fn forget(&mut self, look: &Look) -> Result<Took, Failure> {
        let old = self.old();
        if look.seen(&self.change).old != Old::Gone {
            self.typed(&["pcs", "cluster", "node", "remove", &old, "--skip-offline", "--force"])?;
            return Ok(Took::Acted(format!("pcs has removed {old}")));
        }
        for device in look.devices(&old).into_iter().filter(|device| goes(&self.change, device)) {
            self.typed(&["pcs", "stonith", "delete", &device.resource.id])?;
        }
        if !self.change.keeps_name() {
            for id in self.constraints(&old)? {
                self.typed(&["pcs", "constraint", "delete", &id])?;
            }
        }
        self.forget_in_memory(look)?;
        Ok(Took::Over(format!("{old} is forgotten")))
    }

    /// Returns the ids of the CIB's location constraints that name the node `old`.
    fn constraints(&self, old: &str) -> Result<Vec<String>, Failure> {
        let output = self.programs.run("cibadmin", &["--query", "--scope", "constraints"], Duration::from_secs(30))?;
        match output.code {
            0 => {}
            exit_code::NO_SUCH => return Ok(Vec::new()),
            _ => return Err(goes_on(Failure(format!("'cibadmin --query' failed: {}", output.complaint())))),
        }
        let document = roxmltree::Document::parse(&output.stdout)?;
        let named = document.descendants().filter(|one| one.attribute("node") == Some(old));
        Ok(named.filter_map(|one| one.attribute("id").map(str::to_owned)).collect())
    }
}

/// The decision about an old node that Pacemaker reports as unclean.
///
/// A BMC's power state is no proof here, because some BMCs report Off for a host that they do not know. The fence agent's plan has the
/// rules for that, and the fencer runs the agent.
#[derive(Debug, PartialEq, Eq)]
enum Lost {
    ByWord,
    /// Pacemaker still has time to fence the node.
    IsFenced,
    /// The fencer has proven that the node is off.
    IsOff,
    /// The node may run, for the reason in the field.
    MayRun(String),
}

fn lost(by_word: bool, had_its_time: bool, ask_the_fencer: impl FnOnce() -> Result<(), String>) -> Lost {
    if by_word {
        Lost::ByWord
    } else if !had_its_time {
        Lost::IsFenced
    } else {
        ask_the_fencer().map_or_else(Lost::MayRun, |()| Lost::IsOff)
    }
}

/// Returns whether a fence device is deleted with the old node. A device stays if it also fences other nodes, or a new machine with the
/// old node's name.
fn goes(change: &Change, device: &FenceDevice) -> bool {
    let keeps = change.keeps_name() && change.fence.is_empty();
    let is_of_new = change.keeps_name()
        && change.new.as_ref().is_some_and(|new| device.resource.id == format!("fence-{}", new.name));
    !keeps && !is_of_new && device.targets.len() == 1
}

#[cfg(test)]
mod tests {
    use super::super::change::Kind;
    use super::super::fake_node1::{Node1, parts};
    use super::super::plan::tests::{change, pair, place};
    use super::*;
    use crate::adapters::command::fake_program;
    use crate::adapters::pacemaker::seen::Resource;
    use crate::operate::health::samples;

    fn waits(what: &str) -> Took {
        Took::Waits(what.to_owned())
    }

    #[test]
    fn a_node_leaves_by_a_standby_and_its_cluster_is_stopped_once_it_is_out() {
        let node1 = Node1::new();
        let mut work = node1.work(change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3))), "");
        let online = |standby| PairSeen { old: Old::Online { standby }, ..pair() };
        assert_eq!(work.leave(&online(false)).unwrap(), Took::Acted("node2 is in standby".to_owned()));
        assert_eq!(node1.typed(), ["pcs node standby node2"]);
        assert_eq!(work.leave(&online(true)).unwrap(), waits("waits until etcd has left node2"));
        let stopped = PairSeen { old: Old::Stopped, ..pair() };
        assert_eq!(work.leave(&stopped).unwrap(), waits("waits until node1 serves alone"));
        assert!(node1.typed().is_empty());
        work.out(&online(true)).unwrap();
        assert_eq!(node1.typed(), ["pcs cluster stop node2 --force"]);
    }

    /// Asserts that a lost node is confirmed as off only by the fencer or by the operator. Confirming a running node as off would allow
    /// two writers.
    #[test]
    fn a_lost_node_is_off_by_an_operators_word_or_by_the_fencer_alone() {
        let node1 = Node1::new();
        let seen = PairSeen { old: Old::Unclean, ..pair() };
        for step in [Work::leave, Work::out] {
            let mut work = node1.work(change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3))), "");
            assert_eq!(step(&mut work, &seen).unwrap(), waits("waits until node2 is fenced"));
            assert!(node1.typed().is_empty());
            work.unclean = Some(Deadline::after(Duration::ZERO));
            let fenced = "the fencer has powered node2 off".to_owned();
            assert_eq!(step(&mut work, &seen).unwrap(), Took::Acted(fenced));
            assert_eq!(node1.typed(), ["stonith_admin --fence node2 --timeout 60"], "nothing is confirmed beside it");
            assert_eq!(step(&mut work, &seen).unwrap(), waits("waits until node2 is fenced"), "Pacemaker takes note");
            let fails = "echo 'its chassis says On' >&2; exit 1";
            fake_program(node1.dir.path(), "stonith_admin", fails);
            work.unclean = Some(Deadline::after(Duration::ZERO));
            let Failure(why) = step(&mut work, &seen).unwrap_err();
            let begins = "node2 is not fenced, and the fencer does not prove that it is off (";
            assert!(
                why.starts_with(begins) && why.contains("its chassis says On): 'pcs stonith fence node2'"),
                "{why}"
            );
            assert!(node1.typed().is_empty());
            let mut work = node1.work(work.change.clone(), "");
            work.change.old_is_off = true;
            assert!(matches!(step(&mut work, &seen), Ok(Took::Acted(_))));
            assert_eq!(node1.typed(), ["stonith_admin --confirm node2"]);
        }
    }

    #[test]
    fn what_is_forgotten_is_what_was_there_for_the_old_node_alone() {
        let constraints = "<constraints><rsc_location id=\"of-node1\" node=\"node1\"/><rsc_location id=\"of-node2\" \
                           node=\"node2\"/></constraints>";
        let node1 = Node1::new();
        let mut look = node1.look(samples::read("healthy"));
        let other = change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3)));
        let mut work = node1.work(other, constraints);
        assert!(matches!(work.forget(&look), Ok(Took::Acted(_))));
        assert_eq!(node1.typed(), ["pcs cluster node remove node2 --skip-offline --force"]);
        let (pacemaker, configuration) = parts(&mut look.cluster);
        pacemaker.nodes.retain(|node| node.name != "node2");
        configuration.nodes.retain(|node| node != "node2");
        let mut shared = configuration.fence_devices[1].clone();
        shared.resource.id = "fence-all".to_owned();
        shared.targets.push("node1".to_owned());
        configuration.fence_devices.push(shared);
        assert_eq!(work.forget(&look).unwrap(), Took::Over("node2 is forgotten".to_owned()));
        // Pacemaker's memory is checked even if the new machine has the same name.
        let in_memory = "crm_node --force --remove node9";
        assert_eq!(node1.typed(), ["pcs stonith delete fence-node2", "pcs constraint delete of-node2", in_memory]);
        // The constraints must be read, because some may name the old node.
        for (script, forgets) in [("echo 'no connection' >&2; exit 102", false), ("exit 105", true)] {
            fake_program(node1.dir.path(), "cibadmin", script);
            assert_eq!(work.forget(&look).is_ok(), forgets, "{script}");
        }
        node1.typed();
        let same = change(Kind::Replace, Some(place("node2", 2)), Some(place("node2", 2)));
        assert!(matches!(node1.work(same, constraints).forget(&look), Ok(Took::Over(_))));
        assert!(!node1.typed().iter().any(|line| line.starts_with("pcs")), "the new machine takes them over");
    }

    #[test]
    fn the_fencer_has_its_time_before_it_is_asked_once_more() {
        fn unasked() -> Result<(), String> {
            panic!("the fencer has not had its time")
        }
        assert_eq!(lost(true, false, unasked), Lost::ByWord);
        assert_eq!(lost(false, false, unasked), Lost::IsFenced);
        assert_eq!(lost(false, true, || Ok(())), Lost::IsOff);
        assert_eq!(lost(false, true, || Err("why".to_owned())), Lost::MayRun("why".to_owned()));
    }

    #[test]
    fn a_device_goes_with_its_node_alone() {
        let device = |id: &str, targets: &[&str]| FenceDevice {
            resource: Resource { id: id.to_owned(), ..Resource::default() },
            targets: targets.iter().map(|&target| target.to_owned()).collect(),
            ..FenceDevice::default()
        };
        let other = change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3)));
        assert!(goes(&other, &device("fence-node2", &["node2"])));
        assert!(!goes(&other, &device("fence-all", &["node1", "node2"])), "it fences the node that stays, too");
        let mut same = change(Kind::Replace, Some(place("node2", 2)), Some(place("node2", 2)));
        for id in ["fence-node2", "ipmi-node2"] {
            assert!(!goes(&same, &device(id, &["node2"])), "the new machine has the same BMC");
        }
        same.fence = vec![("ip".to_owned(), "192.0.2.103".to_owned())];
        assert!(goes(&same, &device("ipmi-node2", &["node2"])), "another one is typed");
        assert!(!goes(&same, &device("fence-node2", &["node2"])), "it is that of the new machine, or becomes it");
    }
}
