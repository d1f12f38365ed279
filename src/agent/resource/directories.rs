//! Opens the directories in the parameters so that the container cannot redirect the agent. The container writes to the
//! data dir, so directories below that are opened without following links.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::os::beneath::Dir;

/// Opens `directory`. No symbolic link below `data_dir`, etcd's data dir, is followed.
pub(super) fn open(data_dir: &Path, directory: &Path) -> io::Result<Dir> {
    match directory.strip_prefix(data_dir) {
        Ok(beneath) => Dir::open(data_dir)?.below(beneath),
        Err(_) => Dir::open(directory),
    }
}

/// Opens a directory as [`open`] does, after making the part of its path that is missing. A new directory is for root only, because etcd
/// requires a private data dir.
pub(super) fn make(data_dir: &Path, directory: &Path) -> io::Result<Dir> {
    match directory.strip_prefix(data_dir) {
        Ok(beneath) if !beneath.as_os_str().is_empty() => make_path(data_dir)?.make_below(beneath),
        _ => make_path(directory),
    }
}

fn make_path(directory: &Path) -> io::Result<Dir> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    Dir::open(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_out_of_the_data_dir_only_where_root_made_it() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, host, data_dir) = (dir.path().join("disk"), dir.path().join("host"), dir.path().join("etcd"));
        for made in [&disk, &host] {
            make(&data_dir, made).unwrap();
        }
        // The data dir is on another disk.
        std::os::unix::fs::symlink(&disk, &data_dir).unwrap();
        assert!(make(&data_dir, &data_dir).is_ok() && make(&data_dir, &data_dir.join("a/b")).is_ok());
        assert!(disk.join("a/b").is_dir() && open(&data_dir, &data_dir.join("a/b")).is_ok());
        std::os::unix::fs::symlink(&host, disk.join("conf")).unwrap();
        let within = data_dir.join("conf");
        assert!(open(&data_dir, &within).is_err() && make(&data_dir, &within.join("made")).is_err());
        assert!(!host.join("made").exists());
    }
}
