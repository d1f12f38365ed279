//! The number of times that etcd crashed over its data, in the agent's own directory. It is valid for one `member` directory and
//! one image. Other data in its place, or another etcd, start a new count.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::base::Fact;
use crate::decide::evidence::FailedStarts;
use crate::records::own_dir::{self, FAILED_STARTS};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Recorded {
    of: Directory,
    image: String,
    failed: FailedStarts,
}

/// The identity of a `member` directory, by inode number and creation time. A backup that is put back has another inode number. A directory
/// that reuses the number of a deleted one has a later creation time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Directory {
    inode: u64,
    born: Option<u128>,
}

impl Directory {
    fn of(data_dir: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(data_dir.join("member"))?;
        // Some file systems have no creation time.
        let born = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Ok(Self { inode: metadata.ino(), born: born.map(|since| since.as_nanos()) })
    }
}

/// Reads how often an etcd from the image `image` has crashed over the data in `data_dir`. Returns `None` if there is no readable record,
/// or if the record is about other data or another image.
pub fn read(data_dir: &Path, image: &str) -> Option<FailedStarts> {
    let recorded: Fact<Recorded> = own_dir::read(data_dir, FAILED_STARTS);
    let recorded = recorded.known()?;
    let is_of_these = recorded.image == image && Directory::of(data_dir).is_ok_and(|found| found == recorded.of);
    is_of_these.then(|| recorded.failed.clone())
}

/// Records how often (`failed`) an etcd from the image `image` has crashed over the data in `data_dir`.
pub fn write(data_dir: &Path, image: &str, failed: &FailedStarts) -> io::Result<()> {
    let recorded = Recorded { of: Directory::of(data_dir)?, image: image.to_owned(), failed: failed.clone() };
    own_dir::write(data_dir, FAILED_STARTS, &recorded)
}

/// Deletes the record of etcd's crashes, because etcd has served from the data in `data_dir`.
pub fn forget(data_dir: &Path) -> io::Result<()> {
    own_dir::remove(data_dir, FAILED_STARTS)
}

/// Returns the path of the record of etcd's crashes over the data in `data_dir`.
pub fn path(data_dir: &Path) -> PathBuf {
    own_dir::path(data_dir, FAILED_STARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_keeps_its_form() {
        let text = include_str!("../../tests/data/fixtures/formats/0.1.0/failed-starts.json");
        let (last_at, last_words) = ("2026-11-22T10:00:00Z".to_owned(), "cannot open the database".to_owned());
        let recorded = Recorded {
            of: Directory { inode: 7, born: Some(1_795_263_642_000_000_000) },
            image: "quay.io/coreos/etcd:v3.5.16".to_owned(),
            failed: FailedStarts { count: 2, last_at, last_words },
        };
        assert_eq!(serde_json::from_str::<Recorded>(text).unwrap(), recorded);
        assert_eq!(serde_json::to_string(&recorded).unwrap(), text.trim_end());
    }

    #[test]
    fn a_count_is_of_one_directory_and_one_image() {
        let dir = tempfile::tempdir().unwrap();
        let member = dir.path().join("member");
        let failed = FailedStarts { count: 2, last_at: "then".to_owned(), last_words: "panic: x".to_owned() };
        assert!(write(dir.path(), "etcd:1", &failed).is_err(), "there is no data");
        fs::create_dir(&member).unwrap();
        assert_eq!(read(dir.path(), "etcd:1"), None);
        write(dir.path(), "etcd:1", &failed).unwrap();
        assert_eq!(read(dir.path(), "etcd:1"), Some(failed.clone()));
        assert_eq!(read(dir.path(), "etcd:2"), None, "another etcd may start from it");
        fs::rename(&member, dir.path().join("member-backup")).unwrap();
        assert_eq!(read(dir.path(), "etcd:1"), None, "backed up");
        fs::create_dir(&member).unwrap();
        assert_eq!(read(dir.path(), "etcd:1"), None, "other data");
        fs::remove_dir(&member).unwrap();
        fs::rename(dir.path().join("member-backup"), &member).unwrap();
        assert_eq!(read(dir.path(), "etcd:1"), Some(failed));
        fs::write(path(dir.path()), "{").unwrap();
        assert_eq!(read(dir.path(), "etcd:1"), None);
        forget(dir.path()).unwrap();
        assert!(!path(dir.path()).exists());
        forget(dir.path()).unwrap();
    }
}
