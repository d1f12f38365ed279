//! The file of the change in progress: the order, and the finished work. The progress itself is observed, and not read from the file.

use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::adapters::openshift::replaced::Replaced;
use crate::base::Fact;
use crate::base::utc;
use crate::operate::failure::Failure;
use crate::operate::members::step::{Names, PairStep};
use crate::os::clock;
use crate::records::state_file;

pub(super) const FILE: &str = "/var/lib/tandem/member-change.json";
/// Path of the file that describes the last finished member change.
pub(super) const LAST: &str = "/var/lib/tandem/member-change-last.json";
/// Path of the directory that keeps the objects deleted from OpenShift's API.
pub(super) const SAVED: &str = "/var/lib/tandem/member-change-saved";
/// Path of the file that a running 'tandem member' keeps locked, so that no second one runs on this node.
const LOCK: &str = "/var/lib/tandem/member-change.lock";

/// Name of a node, and the IP address of its etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) address: IpAddr,
}

/// The kind of a member change in a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Replace,
    Add,
    Remove,
}

/// A member change in a pair, as it is stored in [`FILE`] while it is in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) kind: Kind,
    /// The node on which the operator typed the command. It stays in the pair.
    pub(super) here: Place,
    /// The node that leaves the pair; `None` if a node is added.
    pub(super) old: Option<Place>,
    /// The node that joins the pair; `None` if a node is removed.
    pub(super) new: Option<Place>,
    /// The new node's addresses on Corosync's links other than the first.
    #[serde(default)]
    pub(super) links: Vec<IpAddr>,
    /// Options of the new node's fence device, as pairs of name and value.
    pub(super) fence: Vec<(String, String)>,
    /// True once the operator has confirmed that the old machine is off.
    pub(super) old_is_off: bool,
    pub(super) began: u64,
    pub(super) log: Vec<Entry>,
    /// The old node's objects in OpenShift's API; `None` outside of OpenShift.
    #[serde(default)]
    pub(super) openshift: Option<Replaced>,
}

/// A finished step of a member change, with its time and its result in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) at: u64,
    pub(super) step: PairStep,
    pub(super) what: String,
}

impl Change {
    /// Returns the text of the member-change lock in the cluster property: the change, the node and the time.
    pub(super) fn words(&self) -> String {
        format!("{}, by {} since {}", self.what(), self.here.name, utc(self.began))
    }

    pub(super) fn names(&self) -> Names<'_> {
        Names {
            here: &self.here.name,
            old: self.old.as_ref().map_or("", |place| &place.name),
            new: self.new.as_ref().map_or("", |place| &place.name),
            third_voter: false,
        }
    }

    /// Describes the member change in a few words, which [`crate::operate::members::under_way`] parses.
    pub(super) fn what(&self) -> String {
        let Names { old, new, .. } = self.names();
        match self.kind {
            Kind::Replace if old == new => format!("{old} is replaced by a new machine"),
            Kind::Replace => format!("{old} is replaced by {new}"),
            Kind::Add => format!("{new} is added"),
            Kind::Remove => format!("{old} is removed"),
        }
    }

    /// Returns the subcommand of 'tandem member' that began the change, and the node name that it was typed with.
    pub(super) fn wish(&self) -> (&'static str, &str) {
        match (self.kind, &self.old, &self.new) {
            (Kind::Replace, Some(old), _) => ("replace", &old.name),
            (Kind::Remove, Some(old), _) => ("remove", &old.name),
            (Kind::Add, _, Some(new)) => ("add", &new.name),
            _ => ("replace", ""),
        }
    }

    pub(super) fn has(&self, step: PairStep) -> bool {
        self.log.iter().any(|entry| entry.step == step)
    }

    /// Returns whether the new machine has the same node name as the old one.
    pub(super) fn keeps_name(&self) -> bool {
        matches!((&self.old, &self.new), (Some(old), Some(new)) if old.name == new.name)
    }

    /// Returns the nodes that `node_ip_map` has after the change.
    pub(super) fn nodes(&self) -> Vec<&Place> {
        std::iter::once(&self.here).chain(&self.new).collect()
    }

    /// Returns the new setting `configured_primary=NODE` if the old node is the configured primary. Otherwise the parameter stays and
    /// `None` is returned.
    pub(super) fn configured_primary(&self, primary: Option<&str>) -> Option<String> {
        self.old.as_ref().filter(|old| Some(old.name.as_str()) == primary && !self.keeps_name())?;
        let new = self.new.as_ref().map(|new| new.name.as_str()).unwrap_or_default();
        Some(format!("configured_primary={new}"))
    }

    /// Returns whether `other` is the same order: the kind, the nodes and the links are equal.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.here, &self.old, &self.new, &self.links)
            == (other.kind, &other.here, &other.old, &other.new, &other.links)
    }

    /// Deletes the entry of a finished step from the log, so that the step is repeated.
    pub(super) fn takes_back(&mut self, step: PairStep) {
        self.log.retain(|entry| entry.step != step);
    }

    pub(super) fn note(&mut self, step: PairStep, what: &str) -> Result<(), Failure> {
        self.log.push(Entry { at: clock::wall_seconds(), step, what: what.to_owned() });
        self.save()
    }

    pub(super) fn save(&self) -> Result<(), Failure> {
        state_file::write(Path::new(FILE), self).map_err(|error| Failure(format!("cannot write {FILE}: {error}")))
    }
}

/// Returns the setting `node_ip_map=NODE:ADDRESS;...` with the nodes `places`.
pub(super) fn node_ip_map(places: &[&Place]) -> String {
    let nodes: Vec<String> = places.iter().map(|place| format!("{}:{}", place.name, place.address)).collect();
    format!("node_ip_map={}", nodes.join(";"))
}

/// Ends the member change by renaming its file [`FILE`] to [`LAST`].
pub(super) fn close() -> Result<(), Failure> {
    std::fs::rename(FILE, LAST).map_err(|error| Failure(format!("{FILE} cannot be put aside: {error}")))
}

/// Opens the file that a running 'tandem member' keeps locked, and creates it if needed.
pub(super) fn open_lock() -> Result<std::fs::File, Failure> {
    std::fs::create_dir_all("/var/lib/tandem")?;
    Ok(open_private(Path::new(LOCK))?)
}

fn open_private(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::File::options().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Reads the member change in progress from [`FILE`]. Returns `None` if the file does not exist.
pub(super) fn read() -> Result<Option<Change>, Failure> {
    under_way(state_file::read(Path::new(FILE)))
}

/// Returns the member change that was read; `None` if there is no file. Fails if the file is unreadable, because the
/// change may be unfinished.
fn under_way(read: Fact<Change>) -> Result<Option<Change>, Failure> {
    match read {
        Fact::Known(change) => Ok(Some(change)),
        Fact::Absent | Fact::NotAsked => Ok(None),
        Fact::Unknown(why) => Err(Failure(format!(
            "{why}: move the file away, and see with 'tandem member list' and 'pcs status' how far the change came"
        ))),
    }
}

/// Reads the last finished member change. Returns `None` if its file is missing or unreadable.
pub(super) fn last() -> Option<Change> {
    state_file::read(Path::new(LAST)).known().cloned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::plan::tests::{change, place};
    use super::*;
    use crate::operate::members::under_way::{Parts, UnderWay};

    #[test]
    fn a_file_that_cannot_be_read_is_a_change_that_may_be_under_way() {
        let one = change(Kind::Remove, Some(place("node2", 2)), None);
        assert_eq!(under_way(Fact::Known(one.clone())).unwrap(), Some(one));
        assert_eq!(under_way(Fact::Absent).unwrap(), None);
        let why = under_way(Fact::Unknown("it is damaged".to_owned())).unwrap_err().0;
        assert!(why.starts_with("it is damaged: move the file away"), "{why}");
    }

    /// Asserts that the lock's text of each kind of change is parsed by `UnderWay::parts`, which the metric uses.
    #[test]
    fn the_words_of_each_kind_name_the_nodes_for_programs_too() {
        let (node2, node3) = (|| Some(place("node2", 2)), || Some(place("node3", 3)));
        for (change, kind, old, new) in [
            (change(Kind::Replace, node2(), node3()), "replace", "node2", "node3"),
            (change(Kind::Replace, node2(), node2()), "replace", "node2", "node2"),
            (change(Kind::Add, None, node3()), "add", "", "node3"),
            (change(Kind::Remove, node2(), None), "remove", "node2", ""),
        ] {
            let under_way = UnderWay { words: change.words(), since: 0 };
            assert_eq!(under_way.parts(), Parts { kind, old, new });
        }
    }

    #[test]
    fn a_step_that_is_done_anew_is_not_noted_any_more_and_the_others_are() {
        let mut one = change(Kind::Add, None, Some(place("node3", 3)));
        one.log.extend([PairStep::Check, PairStep::Prepare].map(|step| Entry { at: 0, step, what: String::new() }));
        one.takes_back(PairStep::Prepare);
        assert_eq!((one.has(PairStep::Check), one.has(PairStep::Prepare)), (true, false));
    }

    /// Asserts that only the owner may open the lock file, because each user that can open it could keep it locked.
    #[test]
    fn the_lock_is_its_owners() {
        let dir = tempfile::tempdir().unwrap();
        let file = open_private(&dir.path().join("lock")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
