//! The directory that does not survive a reboot. An operator's confirmation of a loss is a file there, so only root may
//! write to it.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::records::state_file;

const OTHERS_WRITE: u32 = 0o022;

/// Makes `directory` writable for its owner alone, and deletes the files of `resource` that other users wrote there.
pub(super) fn settle(directory: &Path, resource: &str) -> io::Result<()> {
    let metadata = match fs::metadata(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let own = nix::unistd::geteuid().as_raw();
    if metadata.uid() != own {
        return Err(io::Error::other("it belongs to another user"));
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        log::warn!(
            "the directory {} was writable for other users, and only its owner may write there now",
            directory.display()
        );
        fs::set_permissions(directory, Permissions::from_mode(metadata.mode() & 0o7777 & !OTHERS_WRITE))?;
    }
    let files = [
        state_file::confirmation_path,
        state_file::memory_path,
        state_file::process_path,
        state_file::recent_monitor_path,
        state_file::pace_path,
        state_file::lone_boot_path,
    ];
    for path in files.map(|path| path(directory, resource)) {
        if fs::symlink_metadata(&path).is_ok_and(|found| found.uid() != own) {
            log::warn!("the file {} was written by another user and is deleted", path.display());
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::lchown;

    use super::*;

    #[test]
    fn no_other_user_accepts_a_loss() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("resource-agents");
        settle(&directory, "etcd").unwrap();
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o1777)).unwrap();
        let [word, memory] =
            [state_file::confirmation_path, state_file::memory_path].map(|path| path(&directory, "etcd"));
        fs::write(&word, "{}").unwrap();
        fs::write(&memory, "{}").unwrap();
        let is_root = nix::unistd::geteuid().is_root();
        if is_root {
            lchown(&word, Some(1), None).unwrap();
        }
        settle(&directory, "etcd").unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o7777, 0o1755);
        assert_eq!((word.exists(), memory.exists()), (!is_root, true));
        if is_root {
            lchown(&directory, Some(1), None).unwrap();
            assert!(settle(&directory, "etcd").is_err());
        }
    }
}
