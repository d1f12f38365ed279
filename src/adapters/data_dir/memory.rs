//! A data dir in memory, for fuzzing and property tests of the readers without a file system.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use prost::bytes::Bytes;

use super::database::{self, Applied, Members};
use super::error::Error;
use super::history::{self, Reading};
use super::snapshot::SnapSource;
use super::wal::Segment;
use super::{DataDir, layout};

/// A data dir in memory, for tests. Each file has a name and its bytes.
#[derive(Clone, Debug, Default)]
pub struct MemoryDir {
    /// The files of `member/wal`.
    pub wals: Vec<(String, Vec<u8>)>,
    /// The `.snap` files of `member/snap`.
    pub snaps: Vec<(String, Vec<u8>)>,
    /// The contents of `member/snap/db`.
    pub database: Vec<u8>,
}

impl MemoryDir {
    /// Interprets these files as [`read`](super::read) does with a data dir on disk.
    pub fn read(&self) -> Result<DataDir, Error> {
        let segments = self.segments();
        let applied = database::applied_in(Cursor::new(&self.database)).unwrap_or(Applied::Unreadable);
        Ok(match history::read(&segments, self)? {
            Reading::Broken(why) => DataDir::Broken { why },
            Reading::Whole(mut whole) => {
                if let Some(why) = applied.lack(whole.snapshot_index) {
                    return Ok(DataDir::Broken { why });
                }
                if let Some(ahead) = applied.ahead_of(whole.history.last_index) {
                    super::set_ahead(&mut whole.history, ahead);
                }
                DataDir::Present(whole.into_history())
            }
        })
    }
}

impl MemoryDir {
    pub(super) fn segments(&self) -> Vec<Segment> {
        let segment = |(name, bytes): &(String, Vec<u8>)| {
            let segment = Segment::from_path(Path::new(name))?;
            Some(Segment { bytes: Some(Bytes::from(bytes.clone())), ..segment })
        };
        layout::in_order(self.wals.iter().filter_map(segment).collect())
    }
}

impl SnapSource for MemoryDir {
    fn names(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(self.snaps.iter().map(|(name, _)| PathBuf::from(name)).collect())
    }

    fn load(&self, path: &Path) -> Result<Option<Bytes>, Error> {
        let found = self.snaps.iter().find(|(name, _)| Path::new(name) == path);
        Ok(Some(found.map(|(_, bytes)| Bytes::from(bytes.clone())).unwrap_or_default()))
    }

    fn members(&self) -> Result<Option<Members>, Error> {
        Ok(database::members_in(Cursor::new(&self.database)).unwrap_or_default())
    }
}
