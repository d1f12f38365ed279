//! The check whether systemd starts a unit at boot. It reads files only, because a daemon that is asked might hang.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The unit that lets a sole voter's node serve after the node has booted without its peer; see `tandem lone-boot`.
pub const LONE_BOOT: &str = "tandem-lone-boot";
/// The units that systemd must start at boot, so that the cluster returns after a power cut.
const UNITS: [&str; 4] = ["corosync", "pacemaker", "pcsd", LONE_BOOT];
/// The directories of systemd's units and of their dependencies, relative to the root directory.
const DIRECTORIES: [&str; 5] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];
/// The target of the symbolic link that masks a unit.
const NOTHING: &str = "/dev/null";

/// Returns, for each of the `UNITS` that exists, whether systemd starts it at boot; empty if systemd does not run. `root` is `/`
/// except in tests.
pub fn enabled(root: &Path) -> BTreeMap<String, bool> {
    if !root.join("run/systemd/system").is_dir() {
        return BTreeMap::new();
    }
    let directories: Vec<PathBuf> = DIRECTORIES.iter().map(|directory| root.join(directory)).collect();
    let units = UNITS.iter().filter_map(|unit| Some(((*unit).to_owned(), is_enabled(&directories, unit)?)));
    units.collect()
}

/// Returns whether systemd starts `unit` at boot; `None` where there is no such unit.
fn is_enabled(directories: &[PathBuf], unit: &str) -> Option<bool> {
    let file = format!("{unit}.service");
    let found =
        directories.iter().map(|directory| directory.join(&file)).find(|path| fs::symlink_metadata(path).is_ok())?;
    let is_masked = fs::read_link(found).is_ok_and(|target| target == Path::new(NOTHING));
    Some(!is_masked && directories.iter().any(|directory| is_wanted(directory, &file)))
}

/// Returns whether one of the directories `TARGET.wants` and `TARGET.requires` in `directory` has the unit `file`.
fn is_wanted(directory: &Path, file: &str) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut lists = entries.filter(|path| path.extension().is_some_and(|kind| kind == "wants" || kind == "requires"));
    lists.any(|list| fs::symlink_metadata(list.join(file)).is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_unit_is_enabled_where_a_target_wants_it_and_it_is_not_masked() {
        let root = tempfile::tempdir().unwrap();
        let (own, lib) = (root.path().join("etc/systemd/system"), root.path().join("usr/lib/systemd/system"));
        let wants = own.join("multi-user.target.wants");
        for directory in [&wants, &lib, &root.path().join("run/systemd/system")] {
            fs::create_dir_all(directory).unwrap();
        }
        for unit in ["corosync", "pacemaker"] {
            fs::write(lib.join(format!("{unit}.service")), "[Unit]").unwrap();
        }
        symlink(lib.join("corosync.service"), wants.join("corosync.service")).unwrap();
        let is = |corosync, pacemaker| {
            BTreeMap::from([("corosync".to_owned(), corosync), ("pacemaker".to_owned(), pacemaker)])
        };
        assert_eq!(enabled(root.path()), is(true, false), "and there is no pcsd");
        symlink(NOTHING, own.join("corosync.service")).unwrap();
        assert_eq!(enabled(root.path()), is(false, false));
        fs::remove_dir_all(root.path().join("run")).unwrap();
        assert_eq!(enabled(root.path()), BTreeMap::new());
    }
}
