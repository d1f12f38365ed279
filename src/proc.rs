//! Who has a file open, by the kernel's own account: whatever path a container sees it under.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file as the kernel knows it.
pub(crate) type Inode = (u64, u64);

/// The regular file at `path`.
pub(crate) fn inode(path: &Path) -> Option<Inode> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((metadata.dev(), metadata.ino()))
}

/// The other processes that have one of `files` open.
pub(crate) fn holders(files: &BTreeSet<Inode>) -> io::Result<BTreeSet<i32>> {
    let myself = i32::try_from(std::process::id()).unwrap_or_default();
    let pids = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids.filter(|pid| *pid != myself && has_open(*pid, files)).collect())
}

/// A process that ends while it is looked at has nothing open.
fn has_open(pid: i32, files: &BTreeSet<Inode>) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries.flatten().filter_map(|entry| inode(&entry.path())).any(|inode| files.contains(&inode))
}
