//! Until when the data of a data dir reaches, for people. The clock of a machine may be wrong, so it decides nothing.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::layout;

/// When the log in `dir` was last written to, in seconds since 1970; nothing where there is none.
pub fn last_written(dir: &Path) -> Option<u64> {
    let files = fs::read_dir(dir.join(layout::MEMBER).join("wal")).ok()?.flatten();
    // etcd prepares the next segment under another name; that is no write.
    let segments = files.filter(|file| file.path().extension() == Some("wal".as_ref()));
    let newest = segments.filter_map(|file| file.metadata().ok()?.modified().ok()).max()?;
    newest.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, SystemTime};

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
