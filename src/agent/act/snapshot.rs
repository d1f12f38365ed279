//! Copies of the database where administrators of the shell agent expect them: `snapshot-YYYYMMDD-HHMMSS.db`. The copy
//! is a hard link, which costs nothing, because backed-up data is never written again.

use std::io;
use std::path::Path;

use crate::agent::resource::context::Context;
use crate::os::beneath::Dir;
use crate::os::clock;

const PREFIX: &str = "snapshot-";
const SUFFIX: &str = ".db";

/// Copies the database of the data dir `aside`, which was moved away for a join, to the directory for backups. Keeps only the newest
/// copies, as many as the parameter `max_backup_snapshots` allows. A failure does not prevent the join.
pub(super) fn keep(context: &Context, aside: &Path) {
    let (keep, location) = (context.params.max_backups, &context.params.backup_location);
    if keep == 0 {
        return;
    }
    let kept = context.open(aside).and_then(|aside| {
        let directory = context.make(location)?;
        Ok((copy(&aside, &directory)?, directory))
    });
    match kept {
        Ok((name, directory)) => {
            log::info!("the database of {} is also kept as {}", aside.display(), location.join(name).display());
            prune(&directory, keep);
        }
        Err(error) => {
            log::warn!("the database of {} cannot be kept in {}: {error}", aside.display(), location.display());
        }
    }
}

fn copy(aside: &Dir, directory: &Dir) -> io::Result<String> {
    let stamp: String = clock::utc_stamp().replace('T', "-").trim_end_matches('Z').to_owned();
    let name = format!("{PREFIX}{stamp}{SUFFIX}");
    let mut database = aside.file("snap/db")?;
    // A hard link is impossible across file systems.
    directory.link(&database, &name).or_else(|_| {
        let mut made = directory.create_new(&name)?;
        io::copy(&mut database, &mut made).map(drop)
    })?;
    Ok(name)
}

fn prune(directory: &Dir, keep: usize) {
    let names = directory.names().unwrap_or_default().into_iter().filter_map(|name| name.into_string().ok());
    let copies: Vec<String> = names.filter(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX)).collect();
    let surplus = copies.len().saturating_sub(keep);
    for old in copies.iter().take(surplus) {
        if let Err(error) = directory.remove(old) {
            log::warn!("the old copy {} cannot be deleted: {error}", directory.path().join(old).display());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn keep(aside: &Path, backups: &Path, count: usize) {
        let (place, location) = (aside.parent().unwrap().display().to_string(), backups.display().to_string());
        let files = [("trusted_ca_file", "/c/ca.crt"), ("cert_file", "/c/etcd.crt"), ("key_file", "/c/etcd.key")];
        let more = [("image", "etcd:test"), ("data_dir", place.as_str()), ("backup_location", &location)];
        let mut context = Context::of_test(aside.parent().unwrap(), &[&files[..], &more].concat());
        context.params.max_backups = count;
        super::keep(&context, aside);
    }

    /// Asserts that the database is not copied if it is a link, because etcd's container may have put that link there.
    #[test]
    fn a_database_that_is_a_link_is_not_copied() {
        let (dir, host) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (aside, backups) = (dir.path().join("member-backup-1"), dir.path().join("backups"));
        fs::write(host.path().join("db"), "secret").unwrap();
        fs::create_dir_all(&aside).unwrap();
        std::os::unix::fs::symlink(host.path(), aside.join("snap")).unwrap();
        keep(&aside, &backups, 2);
        fs::remove_file(aside.join("snap")).unwrap();
        fs::create_dir(aside.join("snap")).unwrap();
        std::os::unix::fs::symlink(host.path().join("db"), aside.join("snap/db")).unwrap();
        keep(&aside, &backups, 2);
        assert_eq!(fs::read_dir(&backups).unwrap().count(), 0);
    }

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
