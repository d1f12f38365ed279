//! The `.snap` files: who the members were at one index of the log.

use std::path::{Path, PathBuf};

use prost::Message;
use prost::bytes::Bytes;

use super::error::Error;
use super::membership::Membership;
use super::proto::{SnapFile, Snapshot, WalSnapshot};
use super::wal::Stop;

/// The snapshot that the log is read on top of; the default stands for the log's very beginning.
#[derive(Clone, Debug, Default)]
pub(super) struct Loaded {
    pub(super) index: u64,
    pub(super) term: u64,
    pub(super) membership: Membership,
}

/// Where snapshots come from: a directory, or memory in tests.
pub(super) trait SnapSource {
    /// Names of all `.snap` files.
    fn names(&self) -> Result<Vec<PathBuf>, Error>;
    /// The bytes of one of them.
    fn load(&self, path: &Path) -> Result<Bytes, Error>;
}

impl dyn SnapSource + '_ {
    /// The newest whole snapshot among those that the WAL vouches for. etcd skips unreadable files too (and renames
    /// them), so these are only noted in `damage`.
    pub(super) fn newest_of(&self, valid: &[WalSnapshot], damage: &mut Vec<String>) -> Result<Option<Loaded>, Stop> {
        let mut paths = self.names()?;
        // The names begin with term and index in hex of fixed width.
        paths.sort_unstable_by(|one, other| other.cmp(one));
        for path in paths {
            match parse(self.load(&path)?) {
                Err(why) => damage.push(format!("{}: {why}; etcd skips it", path.display())),
                Ok(snapshot) => {
                    let metadata = snapshot.metadata.unwrap_or_default();
                    let recorded = WalSnapshot { index: metadata.index, term: metadata.term };
                    if !valid.contains(&recorded) {
                        continue;
                    }
                    let state = metadata.conf_state.unwrap_or_default();
                    if !state.voters_outgoing.is_empty() {
                        let what = "a change of members that is half done (a joint configuration)".into();
                        return Err(Stop::Failed(Error::Unsupported { path, what }));
                    }
                    let membership = Membership::from_snapshot(&state, &snapshot.data);
                    if !membership.voters.is_disjoint(&membership.learners) {
                        let why = format!("{} names a member as both voter and learner", path.display());
                        return Err(Stop::Damaged(why));
                    }
                    return Ok(Some(Loaded { index: metadata.index, term: metadata.term, membership }));
                }
            }
        }
        Ok(None)
    }
}

/// Unwraps a file's content, or says what is wrong with it.
fn parse(bytes: Bytes) -> Result<Snapshot, &'static str> {
    let Ok(file) = SnapFile::decode(bytes) else { return Err("the snapshot cannot be decoded") };
    if file.data.is_empty() || file.crc == 0 {
        return Err("the snapshot is empty");
    }
    if crc32c::crc32c(&file.data) != file.crc {
        return Err("the snapshot's checksum is wrong");
    }
    Snapshot::decode(file.data).map_err(|_| "the snapshot's content cannot be decoded")
}
