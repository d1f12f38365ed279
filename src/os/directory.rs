//! Creates directories with a given mode, whatever the umask is.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Creates the directory at `path`, and its missing parents, with `mode`. Does not change an existing directory.
pub(crate) fn make(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(mode)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            make(above.ok_or(error)?, mode)?;
            make(path, mode)
        }
        Err(_) if path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_made_with_the_mode_and_the_rest_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        make(&dir.path().join("a/b"), 0o751).unwrap();
        assert_eq!([mode("a"), mode("a/b")], [0o751; 2]);
        make(&dir.path().join("a"), 0o700).unwrap();
        assert_eq!(mode("a"), 0o751);
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(make(&dir.path().join("file"), 0o700).is_err());
    }
}
