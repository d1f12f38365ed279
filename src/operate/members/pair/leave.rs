//! The old node goes: out of the member list, out of the cluster, out of the configuration.

use std::time::Duration;

use super::arrive::goes_on;
use super::change::Change;
use super::facts::Look;
use super::plan::{Old, PairSeen};
use super::work::{Took, Work};
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::adapters::pacemaker::{by_hand, exit_code};
use crate::operate::failure::Failure;
use crate::os::clock::{self, Deadline};

/// How long Pacemaker has for the fencing of a node that is lost.
const FENCING: Duration = Duration::from_secs(120);
/// Between two looks at a BMC that says Off.
const TWICE: Duration = Duration::from_secs(3);

impl Work {
    fn old(&self) -> String {
        self.change.old.as_ref().map(|old| old.name.clone()).unwrap_or_default()
    }

    /// Pacemaker stops etcd there, whose agent leaves the member list first; or this node's agent goes on alone.
    pub(super) fn leave(&mut self, look: &Look, seen: &PairSeen) -> Result<Took, Failure> {
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
    pub(super) fn out(&mut self, look: &Look, seen: &PairSeen) -> Result<Took, Failure> {
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
        let by_word = self.change.old_is_off;
        let fencing = *self.unclean.get_or_insert_with(|| Deadline::after(FENCING));
        let ask = || self.power_of(look, &old);
        let why = match lost(by_word, fencing.has_passed(), || says_off_twice(ask, || clock::sleep(TWICE))) {
            Lost::IsOff(why) => why,
            Lost::IsFenced => return Ok(Took::Waits(format!("waits until {old} is fenced"))),
            Lost::MayRun => {
                return Err(Failure(format!(
                    "{old} is not fenced, and its BMC does not say that it is off: 'pcs stonith fence {old}', or 'tandem member replace \
                     {old} --old-is-off' with the same options once you have seen that it is"
                )));
            }
        };
        by_hand::confirm_off(&self.programs, &old)?;
        Ok(Took::Acted(format!("Pacemaker is told that {old} is off, {why}")))
    }

    /// What Pacemaker and Corosync have of it, and what was configured for it alone.
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

    /// The constraints that name it.
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

/// What is to be done about a node of which nobody knows what it does.
#[derive(Debug, PartialEq, Eq)]
enum Lost {
    /// It is off: by whom that is known.
    IsOff(&'static str),
    /// The fencer has its time.
    IsFenced,
    MayRun,
}

fn lost(by_word: bool, had_its_time: bool, is_off: impl FnOnce() -> bool) -> Lost {
    if by_word {
        Lost::IsOff("by an operator's word")
    } else if !had_its_time {
        Lost::IsFenced
    } else if is_off() {
        Lost::IsOff("as its BMC has said twice")
    } else {
        Lost::MayRun
    }
}

/// A machine that is being switched on says Off for a moment, too.
fn says_off_twice(ask: impl Fn() -> Option<String>, between: impl FnOnce()) -> bool {
    let says_off = || ask().is_some_and(|power| power == "Off");
    if !says_off() {
        return false;
    }
    between();
    says_off()
}

/// Whether a device of the old node goes with it: not one that fences others, too, nor the one of a new machine with its name.
fn goes(change: &Change, device: &FenceDevice) -> bool {
    let keeps = change.keeps_name() && change.fence.is_empty();
    let is_of_new = change.keeps_name()
        && change.new.as_ref().is_some_and(|new| device.resource.id == format!("fence-{}", new.name));
    !keeps && !is_of_new && device.targets.len() == 1
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

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
        let look = node1.look(samples::read("healthy"));
        let mut work = node1.work(change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3))), "");
        let online = |standby| PairSeen { old: Old::Online { standby }, ..pair() };
        assert_eq!(work.leave(&look, &online(false)).unwrap(), Took::Acted("node2 is in standby".to_owned()));
        assert_eq!(node1.typed(), ["pcs node standby node2"]);
        assert_eq!(work.leave(&look, &online(true)).unwrap(), waits("waits until etcd has left node2"));
        let stopped = PairSeen { old: Old::Stopped, ..pair() };
        assert_eq!(work.leave(&look, &stopped).unwrap(), waits("waits until node1 serves alone"));
        assert!(node1.typed().is_empty());
        work.out(&look, &online(true)).unwrap();
        assert_eq!(node1.typed(), ["pcs cluster stop node2 --force"]);
    }

    /// Whoever tells Pacemaker that a machine is off which runs has two that write.
    #[test]
    fn pacemaker_is_told_that_a_node_is_off_by_a_word_or_by_its_bmc_alone() {
        let node1 = Node1::new();
        let look = node1.look(samples::read("peer-unclean"));
        let seen = PairSeen { old: Old::Unclean, ..pair() };
        for step in [Work::leave, Work::out] {
            let mut work = node1.work(change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3))), "");
            assert_eq!(step(&mut work, &look, &seen).unwrap(), waits("waits until node2 is fenced"));
            work.unclean = Some(Deadline::after(Duration::ZERO));
            let Failure(why) = step(&mut work, &look, &seen).unwrap_err();
            assert!(why.starts_with("node2 is not fenced, and its BMC does not say that it is off"), "{why}");
            assert!(node1.typed().is_empty());
            work.change.old_is_off = true;
            assert!(matches!(step(&mut work, &look, &seen), Ok(Took::Acted(_))));
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
        // Its place in Pacemaker's memory is looked after even where the machine that comes has the same name.
        let in_memory = "crm_node --force --remove node9";
        assert_eq!(node1.typed(), ["pcs stonith delete fence-node2", "pcs constraint delete of-node2", in_memory]);
        // Constraints that nobody could read may be there.
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
    fn a_node_is_off_by_a_word_or_where_its_bmc_says_so_twice_and_the_fencer_has_its_time_first() {
        fn unasked() -> bool {
            panic!("the fencer has not had its time")
        }
        assert_eq!(lost(true, false, unasked), Lost::IsOff("by an operator's word"));
        assert_eq!(lost(false, false, unasked), Lost::IsFenced);
        assert_eq!(lost(false, true, || true), Lost::IsOff("as its BMC has said twice"));
        assert_eq!(lost(false, true, || false), Lost::MayRun);
    }

    #[test]
    fn off_is_what_a_bmc_says_twice() {
        for (said, is_off, looks) in [
            (&[Some("Off"), Some("Off")][..], true, 2),
            (&[Some("Off"), Some("On")], false, 2),
            (&[Some("Off"), None], false, 2),
            (&[Some("On")], false, 1),
            (&[Some("PoweringOff")], false, 1),
            (&[None], false, 1),
        ] {
            let asked = RefCell::new(Vec::new());
            let ask = || {
                let answer = said[asked.borrow().iter().filter(|what| **what == "asks").count()].map(str::to_owned);
                asked.borrow_mut().push("asks");
                answer
            };
            assert_eq!(says_off_twice(ask, || asked.borrow_mut().push("waits")), is_off, "{said:?}");
            let expected = &["asks", "waits", "asks"][..if looks == 2 { 3 } else { 1 }];
            assert_eq!(asked.borrow().as_slice(), expected, "{said:?}");
        }
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
