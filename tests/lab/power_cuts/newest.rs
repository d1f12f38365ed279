//! The log that holds every acknowledged write, and the search for it on the disks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::host::disks;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::sh::Result;

/// The write-ahead log of an etcd: each file's name and contents, without the zeros that pad it. etcd only appends to
/// these files.
#[derive(Debug)]
pub(super) struct Log(BTreeMap<String, Vec<u8>>);

impl Log {
    /// Reads the write-ahead log in a `member` directory.
    pub(super) fn of(member: &Path) -> Result<Self> {
        let directory = member.join("wal");
        let entries = fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut files = BTreeMap::new();
        for entry in entries.flatten().filter(|entry| entry.path().extension().is_some_and(|kind| kind == "wal")) {
            let mut bytes = fs::read(entry.path())?;
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(end);
            files.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
        }
        Ok(Self(files))
    }

    /// Returns whether this write-ahead log begins with all of `other`.
    fn continues(&self, other: &Self) -> bool {
        let has = |(name, bytes): (&String, &Vec<u8>)| self.0.get(name).is_some_and(|own| own.starts_with(bytes));
        other.0.iter().all(has)
    }

    /// Returns the directory on either node that holds this log or a continuation of it. That is the `member` of a
    /// data dir, or a `member` that was moved aside. `None` if there is no such directory.
    pub(super) fn lies_in(&self, lab: &Lab) -> Result<Option<PathBuf>> {
        for node in NODES {
            for dir in [disks::data_dir(lab, node), disks::mount_point(lab, node)] {
                for entry in fs::read_dir(dir)?.flatten() {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    let is_kept = name == "member" || name.starts_with("member-");
                    if is_kept && Self::of(&entry.path()).is_ok_and(|log| log.continues(self)) {
                        return Ok(Some(entry.path()));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// Returns whether [`Log::continues`] accepts a log to which etcd appended, and rejects shorter and rewritten ones.
/// The lab's self-test calls it.
pub fn tells_logs_apart() -> bool {
    let log =
        |files: &[(&str, &[u8])]| Log(files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect());
    let newest = log(&[("0.wal", b"abc"), ("1.wal", b"de")]);
    let longer = log(&[("0.wal", b"abc"), ("1.wal", b"def"), ("2.wal", b"g")]);
    let shorter = log(&[("0.wal", b"abc")]);
    let rewritten = log(&[("0.wal", b"abc"), ("1.wal", b"dx")]);
    longer.continues(&newest) && !shorter.continues(&newest) && !rewritten.continues(&newest)
}
