//! The page as a file that node_exporter reads.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The usual directories of node_exporter's textfile collector: of Debian's and Fedora's packages, of OpenShift, and of manual
/// installations.
pub const DIRECTORIES: &[&str] =
    &["/var/lib/prometheus/node-exporter", "/var/node_exporter/textfile", "/var/lib/node_exporter/textfile_collector"];

const FILE: &str = "tandem.prom";
/// Name of the metrics file while it is incomplete. node_exporter ignores files with this ending, and so never reads half a page. The dot
/// hides the file in lists.
const ASIDE: &str = ".tandem.prom.new";

/// Replaces the metrics file in `dir`, or in the first of [`DIRECTORIES`] that exists. Returns the file's path, or `None` if there is no
/// such directory. Does not sync the file, to leave the disk to etcd. After a power cut the next run replaces the file anyway.
pub fn write(dir: Option<&Path>, text: &str) -> io::Result<Option<PathBuf>> {
    let usual = || DIRECTORIES.iter().map(Path::new).find(|dir| dir.is_dir());
    let Some(dir) = dir.or_else(usual) else { return Ok(None) };
    let (path, aside) = (dir.join(FILE), dir.join(ASIDE));
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Creates a new file instead of following a link, because the directory may belong to node_exporter's user.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&aside)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&aside, &path)?;
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_replaced_whole_and_everybody_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["tandem_etcd_serving 1\n", "tandem_etcd_serving 0\n"] {
            let path = write(Some(dir.path()), text).unwrap().unwrap();
            assert_eq!(path, dir.path().join("tandem.prom"));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn no_link_leads_elsewhere_and_no_directory_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, dir.path().join(ASIDE)).unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.path().join(FILE)).unwrap();
        write(Some(dir.path()), "x 1\n").unwrap();
        assert!(!elsewhere.exists());
        assert_eq!(write(Some(&elsewhere), "x 1\n").unwrap_err().kind(), ErrorKind::NotFound);
    }
}
