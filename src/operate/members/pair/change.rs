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
/// The file of the last finished change.
pub(super) const LAST: &str = "/var/lib/tandem/member-change-last.json";
/// Directory of the objects that were deleted from OpenShift's API.
pub(super) const SAVED: &str = "/var/lib/tandem/member-change-saved";
/// File that a running command keeps locked.
const LOCK: &str = "/var/lib/tandem/member-change.lock";

/// A node with the address of its etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) address: IpAddr,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Replace,
    Add,
    Remove,
}

/// The change in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) kind: Kind,
    /// The node on which the operator typed it. This node stays.
    pub(super) here: Place,
    /// The node that leaves.
    pub(super) old: Option<Place>,
    /// The node that joins.
    pub(super) new: Option<Place>,
    /// The new node's addresses on Corosync's further links.
    #[serde(default)]
    pub(super) links: Vec<IpAddr>,
    /// Options of the new node's fence device.
    pub(super) fence: Vec<(String, String)>,
    /// True once the operator has confirmed that the old machine is off.
    pub(super) old_is_off: bool,
    pub(super) began: u64,
    pub(super) log: Vec<Entry>,
    /// The old node's objects on OpenShift, where the operators do part of the change.
    #[serde(default)]
    pub(super) openshift: Option<Replaced>,
}

/// A piece of finished work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) at: u64,
    pub(super) step: PairStep,
    pub(super) what: String,
}

impl Change {
    /// Returns the text of the lock.
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

    /// Describes the change in a few words.
    pub(super) fn what(&self) -> String {
        let Names { old, new, .. } = self.names();
        match self.kind {
            Kind::Replace if old == new => format!("{old} is replaced by a new machine"),
            Kind::Replace => format!("{old} is replaced by {new}"),
            Kind::Add => format!("{new} is added"),
            Kind::Remove => format!("{old} is removed"),
        }
    }

    /// Returns the command's name, and the node that it was typed with.
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

    /// Returns whether the new machine takes over the name of the old one.
    pub(super) fn keeps_name(&self) -> bool {
        matches!((&self.old, &self.new), (Some(old), Some(new)) if old.name == new.name)
    }

    /// Returns the nodes of the future `node_ip_map`.
    pub(super) fn nodes(&self) -> Vec<&Place> {
        std::iter::once(&self.here).chain(&self.new).collect()
    }

    /// Returns the new parameter `configured_primary` if the old node is the primary. The new node replaces it.
    pub(super) fn configured_primary(&self, primary: Option<&str>) -> Option<String> {
        self.old.as_ref().filter(|old| Some(old.name.as_str()) == primary && !self.keeps_name())?;
        let new = self.new.as_ref().map(|new| new.name.as_str()).unwrap_or_default();
        Some(format!("configured_primary={new}"))
    }

    /// Returns whether `other` asks for the same change.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.here, &self.old, &self.new, &self.links)
            == (other.kind, &other.here, &other.old, &other.new, &other.links)
    }

    /// Removes a finished step from the log, so that it is repeated.
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

/// Returns the parameter `node_ip_map` with these nodes.
pub(super) fn node_ip_map(places: &[&Place]) -> String {
    let nodes: Vec<String> = places.iter().map(|place| format!("{}:{}", place.name, place.address)).collect();
    format!("node_ip_map={}", nodes.join(";"))
}

/// Ends the change by renaming its file to that of the last change.
pub(super) fn close() -> Result<(), Failure> {
    std::fs::rename(FILE, LAST).map_err(|error| Failure(format!("{FILE} cannot be put aside: {error}")))
}

/// Opens the file that a running command keeps locked.
pub(super) fn open_lock() -> Result<std::fs::File, Failure> {
    std::fs::create_dir_all("/var/lib/tandem")?;
    Ok(open_private(Path::new(LOCK))?)
}

fn open_private(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::File::options().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Reads the change in progress; `None` if there is none.
pub(super) fn read() -> Result<Option<Change>, Failure> {
    under_way(state_file::read(Path::new(FILE)))
}

/// Fails if the file is unreadable, because its change may be unfinished.
fn under_way(read: Fact<Change>) -> Result<Option<Change>, Failure> {
    match read {
        Fact::Known(change) => Ok(Some(change)),
        Fact::Absent | Fact::NotAsked => Ok(None),
        Fact::Unknown(why) => Err(Failure(format!(
            "{why}: move the file away, and see with 'tandem member list' and 'pcs status' how far the change came"
        ))),
    }
}

/// Reads the last finished change; `None` also if its file is unreadable.
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

    /// The metric of a change parses this text.
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

    /// Every user that may open the file may keep it locked.
    #[test]
    fn the_lock_is_its_owners() {
        let dir = tempfile::tempdir().unwrap();
        let file = open_private(&dir.path().join("lock")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
