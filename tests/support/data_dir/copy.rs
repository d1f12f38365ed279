//! Copies of data dirs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Copies a directory with all of its contents.
pub(crate) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
    // etcd requires that no other user can access its directories.
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
}
