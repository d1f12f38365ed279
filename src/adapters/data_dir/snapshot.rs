//! The members at one index of the log. They are in the `.snap` files, or in the WAL's own records of snapshots. etcd 3.7 starts
//! without these files, and later versions write none.

use std::path::{Path, PathBuf};

use prost::Message;
use prost::bytes::Bytes;

use super::database::Members;
use super::error::Error;
use super::membership::Membership;
use super::proto::{ConfState, SnapFile, Snapshot, WalSnapshot};
use super::wal::Stop;

/// The snapshot after which the log is read. The default is the beginning of the log, without a snapshot.
#[derive(Clone, Debug, Default)]
pub(super) struct Loaded {
    pub(super) index: u64,
    pub(super) term: u64,
    pub(super) membership: Membership,
}

/// The `.snap` files that cannot be read, each with its fault.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    /// The newest `.snap` file, if it cannot be read; else `None`. A running etcd may be writing it.
    pub(super) newest: Option<String>,
    pub(super) others: Vec<String>,
}

/// The source from which snapshots are read: the directory `member/snap`, or memory in tests.
pub(super) trait SnapSource {
    /// Returns the paths of all `.snap` files.
    fn names(&self) -> Result<Vec<PathBuf>, Error>;
    /// Returns the bytes of the `.snap` file at `path`; `None` if it is larger than any snapshot of etcd.
    fn load(&self, path: &Path) -> Result<Option<Bytes>, Error>;
    /// Returns the members in etcd's database; `None` where it cannot be read.
    fn members(&self) -> Result<Option<Members>, Error>;
}

/// The first version of etcd, major and minor, that starts without a `.snap` file.
const WITHOUT_FILES: (u64, u64) = (3, 7);

impl dyn SnapSource + '_ {
    /// Returns the newest intact snapshot among `valid`, the snapshots that the WAL records up to its commit index. Unreadable
    /// files are added to `skipped`, because etcd skips them, too, and starts.
    pub(super) fn newest_of(&self, valid: &[WalSnapshot], skipped: &mut Skipped) -> Result<Option<Loaded>, Stop> {
        let mut paths = self.names()?;
        // The names begin with term and index in hexadecimal of fixed width.
        paths.sort_unstable_by(|one, other| other.cmp(one));
        for (place, path) in paths.into_iter().enumerate() {
            match self.load(&path)?.ok_or("it is larger than any snapshot of etcd").and_then(parse) {
                Err(why) => {
                    let what = format!("{}: {why}; etcd skips it", path.display());
                    if place == 0 { skipped.newest = Some(what) } else { skipped.others.push(what) }
                }
                Ok(snapshot) => {
                    let metadata = snapshot.metadata.unwrap_or_default();
                    let place = (metadata.index, metadata.term);
                    if !valid.iter().any(|recorded| (recorded.index, recorded.term) == place) {
                        continue;
                    }
                    let state = metadata.conf_state.unwrap_or_default();
                    check(&state, &path)?;
                    let membership = Membership::from_snapshot(&state, &snapshot.data);
                    return Ok(Some(Loaded { index: metadata.index, term: metadata.term, membership }));
                }
            }
        }
        Ok(None)
    }

    /// Returns the newest snapshot that the WAL at `wal` records together with its members; `None` if there is none. Also returns `None` if
    /// the cluster's version is below 3.7, because only etcd 3.7 and later start without a `.snap` file. An unreadable database does not
    /// make the data invalid.
    pub(super) fn newest_recorded(&self, valid: &[WalSnapshot], wal: &Path) -> Result<Option<Loaded>, Stop> {
        let newest = valid.iter().filter(|recorded| recorded.index > 0).max_by_key(|recorded| recorded.index);
        let Some((recorded, state)) = newest.and_then(|recorded| Some((recorded, recorded.conf_state.as_ref()?)))
        else {
            return Ok(None);
        };
        let members = self.members()?.unwrap_or_default();
        if members.version.is_some_and(|version| version < WITHOUT_FILES) {
            return Ok(None);
        }
        check(state, wal)?;
        let membership = Membership::from_record(state, members);
        Ok(Some(Loaded { index: recorded.index, term: recorded.term, membership }))
    }
}

/// Returns an error if a snapshot's list of members is of an unknown kind, or contradicts itself.
fn check(state: &ConfState, path: &Path) -> Result<(), Stop> {
    if !state.voters_outgoing.is_empty() {
        let what = "a change of members that is half done (a joint configuration)".into();
        return Err(Stop::Failed(Error::Unsupported { path: path.to_owned(), what }));
    }
    if state.voters.iter().any(|id| state.learners.contains(id)) {
        return Err(Stop::Damaged(format!("{} names a member as both voter and learner", path.display())));
    }
    Ok(())
}

/// Decodes the contents of a `.snap` file. The error describes what is wrong with the file.
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
