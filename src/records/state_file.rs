//! Small files of the agent, such as this boot's memory. Each is replaced as a whole, so that a crash leaves the old or the new
//! one. No link in place of one is followed. `own_dir` has the files in the data dir.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::Fact;
use crate::os::beneath::Dir;
use crate::os::directory;

/// The greatest size in bytes of a file that is read in a directory to which other programs write.
pub const SMALL: u64 = 64 * 1024;
/// The greatest size in bytes of a file that is read in a directory to which only this program writes.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Returns the path of the file in which the agent of `resource` stores facts until the next reboot.
pub fn memory_path(volatile_dir: &Path, resource: &str) -> PathBuf {
    volatile_dir.join(format!("podman-etcd-{resource}.json"))
}

/// Returns the path of the operator's confirmation by `tandem confirm-recovery` for `resource`. A reboot deletes the file.
pub fn confirmation_path(volatile_dir: &Path, resource: &str) -> PathBuf {
    volatile_dir.join(format!("podman-etcd-{resource}-recovery.json"))
}

/// Returns the path of the record of the first Corosync process that `tandem lone-boot` found in this boot.
pub fn lone_boot_path(volatile_dir: &Path, resource: &str) -> PathBuf {
    volatile_dir.join(format!("podman-etcd-{resource}-lone-boot.json"))
}

/// Returns the path of the record of the process of etcd's container for `resource`. A reboot deletes the file.
pub fn process_path(volatile_dir: &Path, resource: &str) -> PathBuf {
    volatile_dir.join(format!("podman-etcd-{resource}-process.json"))
}

/// Returns the path of the lock file for the container of `resource`: see `podman::container_lock`.
pub fn container_lock_path(volatile_dir: &Path, resource: &str) -> PathBuf {
    volatile_dir.join(format!("podman-etcd-{resource}.turn"))
}

/// Returns the path of the result of the last complete monitor of `resource`: see `agent::recent_monitor`.
pub fn recent_monitor_path(volatile_dir: &Path, resource: &str) -> PathBuf {
    volatile_dir.join(format!("podman-etcd-{resource}-monitor.json"))
}

/// Returns the path of the durations that the agent has measured in this boot: see `pace`.
pub fn pace_path(volatile_dir: &Path, resource: &str) -> PathBuf {
    volatile_dir.join(format!("podman-etcd-{resource}-pace.json"))
}

/// Reads a value from a file that [`write`] has written.
pub fn read<T: DeserializeOwned>(path: &Path) -> Fact<T> {
    parsed(path, place(path).and_then(|(directory, name)| Dir::open(directory)?.own_file(name, LIMIT)))
}

/// Parses `bytes`, the contents of the file at `path`.
pub(super) fn parsed<T: DeserializeOwned>(path: &Path, bytes: io::Result<Vec<u8>>) -> Fact<T> {
    let text = match bytes {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Fact::Absent,
        Err(error) => return Fact::Unknown(format!("cannot read {}: {error}", path.display())),
    };
    match serde_json::from_slice(&text) {
        Ok(value) => Fact::Known(value),
        Err(error) => Fact::Unknown(format!("{} is damaged: {error}", path.display())),
    }
}

/// Replaces the file at `path`, and reads the new one to check it, because later decisions rely on it.
pub fn write<T: Serialize + DeserializeOwned + PartialEq>(path: &Path, value: &T) -> io::Result<()> {
    let text = serde_json::to_vec(value)?;
    replace(path, &text, 0o600)?;
    match read::<T>(path) {
        Fact::Known(found) if found == *value => Ok(()),
        _ => Err(not_as_written(path)),
    }
}

pub(super) fn not_as_written(path: &Path) -> io::Error {
    io::Error::other(format!("{} does not read back as it was written", path.display()))
}

/// Replaces the file at `path` with `text`, so that the new contents survive a power cut. The text is written under another name, synced
/// and renamed, and the directory is synced.
pub fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    replace_as(path, text, mode, None)
}

/// Replaces a file as [`replace`] does, and gives the new file to `owner`, a user and a group. The new file gets its owner before it is
/// renamed to `path`. A link at `path` is replaced, and its target keeps its owner.
pub fn replace_as(path: &Path, text: &[u8], mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    let (parent, name) = place(path)?;
    directory::make(parent, 0o755)?;
    Dir::open(parent)?.replace_with(name, mode, |file| {
        if let Some((user, group)) = owner {
            fchown(&*file, Some(user), Some(group))?;
        }
        file.write_all(text)
    })
}

/// Splits a file's path into its directory and its name.
fn place(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent().zip(path.file_name()).ok_or_else(|| ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::decide::evidence::{DurableState, Lineage};

    #[test]
    fn what_is_written_reads_back_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note.json");
        assert!(read::<DurableState>(&path).is_absent());
        let note = DurableState { lineage: Lineage { forks: 2, by: "node1".to_owned() }, ..DurableState::default() };
        write(&path, &note).unwrap();
        assert_eq!(read(&path), Fact::Known(note));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_note_is_unknown_not_absent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note.json");
        fs::write(&path, "{").unwrap();
        assert!(matches!(read::<DurableState>(&path), Fact::Unknown(_)));
    }

    /// Asserts that a FIFO in place of a file is refused. A read of the FIFO would wait for ever.
    #[test]
    fn what_would_make_a_reader_wait_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note.json");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(matches!(read::<DurableState>(&path), Fact::Unknown(why) if why.contains("a FIFO")));
    }

    /// Asserts that a link in place of a file is not followed. etcd's container may leave a link in the data dir.
    #[test]
    fn what_leads_elsewhere_is_neither_read_nor_written() {
        let (dir, host) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, secret) = (dir.path().join("note.json"), host.path().join("secret"));
        fs::write(&secret, "{}").unwrap();
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        std::os::unix::fs::symlink(&secret, path.with_extension("new")).unwrap();
        assert!(matches!(read::<DurableState>(&path), Fact::Unknown(why) if why.contains("a link")));
        write(&path, &DurableState::default()).unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "{}");
        fs::remove_file(&path).unwrap();
        fs::hard_link(&secret, &path).unwrap();
        assert!(matches!(read::<DurableState>(&path), Fact::Unknown(why) if why.contains("a hard link")));
        write(&path, &DurableState::default()).unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "{}");
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(read::<DurableState>(&path), Fact::Unknown(why) if why.contains("too large")));
    }
}
