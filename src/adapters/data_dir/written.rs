//! The time of the last write to a data dir, for operators. A machine's clock may be wrong, so no decision uses it.

use std::ffi::OsString;
use std::path::Path;

use super::{layout, lock};
use crate::os::beneath::Dir;

/// Returns the time of the last write to the WAL in the data dir `dir`, in seconds since 1970; `None` where there is no WAL.
pub fn last_written(dir: &Path) -> Option<u64> {
    let (wal, names) = lock::directory(dir, layout::WAL).ok()??;
    newest(&wal, &names)
}

/// Returns the time of the last write to the WAL in the renamed `member` directory at `path`, in seconds since 1970; `None` if it has no
/// WAL.
pub fn last_written_aside(path: &Path) -> Option<u64> {
    let wal = layout::below(&layout::open(path).ok()??, layout::WAL).ok()??;
    newest(&wal, &layout::names(&wal).ok()?)
}

fn newest(wal: &Dir, names: &[OsString]) -> Option<u64> {
    // etcd prepares the next segment under another name, which is no write to the log.
    let segments = names.iter().filter(|name| Path::new(name).extension() == Some("wal".as_ref()));
    let newest = segments.filter_map(|name| Some(wal.stat(name).ok()?.st_mtime)).max()?;
    u64::try_from(newest).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::*;

    fn touch(path: &Path, seconds: u64) {
        let at: SystemTime = UNIX_EPOCH + Duration::from_secs(seconds);
        File::create(path).unwrap().set_modified(at).unwrap();
    }

    #[test]
    fn the_newest_segment_tells_and_a_prepared_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(last_written(dir.path()), None);
        let wal = dir.path().join("member/wal");
        fs::create_dir_all(&wal).unwrap();
        assert_eq!(last_written(dir.path()), None);
        touch(&wal.join("0000000000000000-0000000000000000.wal"), 1_000);
        touch(&wal.join("0000000000000001-0000000000000064.wal"), 2_000);
        touch(&wal.join("0.tmp"), 3_000);
        assert_eq!(last_written(dir.path()), Some(2_000));
    }
}
