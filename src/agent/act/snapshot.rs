//! Copies of the database, where administrators of the shell agent look for them: `snapshot-YYYYMMDD-HHMMSS.db`. The data
//! that was backed up is never written again, so a second name for its file is a copy that costs nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::os::clock;

const PREFIX: &str = "snapshot-";
const SUFFIX: &str = ".db";

/// Keeps the database of the data dir `aside` in `directory`, and the newest `keep` of such copies. No failure keeps a
/// node from joining.
pub(super) fn keep(aside: &Path, directory: &Path, keep: usize) {
    if keep == 0 {
        return;
    }
    match copy(&aside.join("snap/db"), directory) {
        Ok(copy) => {
            log::info!("its database is kept as {}, too", copy.display());
            prune(directory, keep);
        }
        Err(error) => log::warn!("its database is not kept in {}: {error}", directory.display()),
    }
}

fn copy(database: &Path, directory: &Path) -> std::io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let stamp: String = clock::utc_stamp().replace('T', "-").trim_end_matches('Z').to_owned();
    let copy = directory.join(format!("{PREFIX}{stamp}{SUFFIX}"));
    // Another file system knows no second name.
    fs::hard_link(database, &copy).or_else(|_| fs::copy(database, &copy).map(drop))?;
    Ok(copy)
}

fn prune(directory: &Path, keep: usize) {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PREFIX) && name.ends_with(SUFFIX)
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut copies: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_ours).collect();
    copies.sort();
    let surplus = copies.len().saturating_sub(keep);
    for old in copies.iter().take(surplus) {
        if let Err(error) = fs::remove_file(old) {
            log::warn!("{} stays: {error}", old.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_none_where_none_are_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let (aside, backups) = (dir.path().join("member-backup-1"), dir.path().join("backups"));
        fs::create_dir_all(aside.join("snap")).unwrap();
        fs::write(aside.join("snap/db"), "data").unwrap();
        fs::create_dir_all(&backups).unwrap();
        for name in ["snapshot-20200101-000000.db", "snapshot-20200102-000000.db", "other.db"] {
            fs::write(backups.join(name), "").unwrap();
        }
        keep(&aside, &backups, 0);
        assert_eq!(fs::read_dir(&backups).unwrap().count(), 3);
        keep(&aside, &backups, 2);
        let mut names: Vec<String> =
            fs::read_dir(&backups).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names.contains(&"other.db".to_owned()) && !names.contains(&"snapshot-20200101-000000.db".to_owned()));
        assert_eq!(fs::read_to_string(backups.join(&names[2])).unwrap(), "data");
    }
}
