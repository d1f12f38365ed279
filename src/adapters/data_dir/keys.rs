//! The keys of data at rest: the changes in its database, and the requests in its log after that.

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use super::backup::AsideKind;
use super::database::{self, Applied, Change, Damage, Walk};
use super::error::Error;
use super::history::{self, Reading};
use super::layout::{self, Layout};
use super::memory::MemoryDir;
use super::requests::{self, Logged};
use super::wal::Stop;
use crate::os::beneath::Dir;
use crate::records::kept_history::KeptHistory;

/// The keys of a data dir that no etcd uses, or of a `member` directory that was renamed to keep its data.
#[derive(Debug)]
pub struct Keys {
    database: PathBuf,
    file: File,
    compacted: u64,
    above: Vec<Logged>,
    noted: Option<KeptHistory>,
}

impl Keys {
    /// Opens the data in the directory `name` of the data dir `dir`: `member`, or a former `member` that was renamed. No etcd may write
    /// there meanwhile.
    pub fn open(dir: &Path, name: impl AsRef<Path>) -> Result<Self, Error> {
        let member = dir.join(&name);
        let unusable = |why: String| Error::Refused { path: member.clone(), why };
        let nothing = || unusable("holds no data of a member: type a data dir, a backup or a history".to_owned());
        let below = |dir: Dir| layout::below(&dir, name.as_ref());
        let Some(dir) = layout::open(dir)?.map_or(Ok(None), below)? else { return Err(nothing()) };
        let files = match layout::look_into(&dir)? {
            Layout::Blank => return Err(nothing()),
            Layout::Broken(why) => return Err(unusable(format!("cannot be used: {why}"))),
            Layout::Files(files) => files,
        };
        let snapshot = match history::read(&files.wals, &files.snaps)? {
            Reading::Broken(why) => return Err(unusable(format!("cannot be used: {why}"))),
            Reading::Whole(whole) => whole.snapshot_index,
        };
        let Some((database, file)) = files.snaps.database(snapshot)? else {
            return Err(unusable("has no database: its keys are not known".to_owned()));
        };
        let walk = Walk::open(&file, 0).map_err(damaged(&database))?;
        let compacted = walk.compacted();
        let applied = database::applied_in(&file).map_err(Error::io("reading", &database))?;
        let applied = match applied {
            Applied::UpTo(index) => index,
            Applied::Nothing => 0,
            Applied::Unreadable => return Err(damaged(&database)(Damage::Head)),
        };
        let wals = history::select(&files.wals, snapshot);
        let above = match wals.and_then(|wals| requests::above(wals, applied.max(snapshot))) {
            Ok(above) => above,
            Err(Stop::Damaged(why) | Stop::Torn(why)) => return Err(unusable(format!("cannot be used: {why}"))),
            Err(Stop::Failed(error)) => return Err(error),
        };
        // A data dir that is in use again has no note of its own, even if it contains one.
        let noted = AsideKind::of(&member).filter(|kind| *kind == AsideKind::History);
        let noted = noted.and_then(|_| KeptHistory::read(&dir).known().cloned());
        Ok(Self { database, file, compacted, above, noted })
    }

    /// Returns the revision up to which the database was compacted; 0 if it never was.
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Returns the revision of the last change in the database; 0 if it has no change.
    pub fn last_revision(&self) -> Result<u64, Error> {
        database::last_revision(&self.file).map(Option::unwrap_or_default).map_err(damaged(&self.database))
    }

    /// Returns the record of the point where this data diverged from the other node's data; `None` if there is no such record. The agent
    /// wrote the record when it gave this data up for the other node's data.
    pub fn noted(&self) -> Option<&KeptHistory> {
        self.noted.as_ref()
    }

    /// Returns the clients' requests that are in the log and not in the database yet, in the order of the log.
    pub fn above(&self) -> &[Logged] {
        &self.above
    }

    /// Returns the changes in the database, from revision `from` on.
    pub fn changes(&self, from: u64) -> Result<Changes<File>, Error> {
        let file = self.file.try_clone().map_err(Error::io("opening", &self.database))?;
        Changes::open(file, self.database.clone(), from)
    }
}

/// The changes of keys in etcd's database, in the order of their revisions.
#[derive(Debug)]
pub struct Changes<S> {
    walk: Walk<S>,
    database: PathBuf,
}

impl<S: Read + Seek> Changes<S> {
    fn open(source: S, database: PathBuf, from: u64) -> Result<Self, Error> {
        let walk = Walk::open(source, from).map_err(damaged(&database))?;
        Ok(Self { walk, database })
    }

    /// Reads the next change of a key; `None` after the last one.
    pub fn next_change(&mut self) -> Result<Option<Change>, Error> {
        self.walk.next().map_err(damaged(&self.database))
    }
}

impl MemoryDir {
    /// Returns all changes of keys in the database.
    pub fn changes(&self) -> Result<Changes<Cursor<&[u8]>>, Error> {
        Changes::open(Cursor::new(&self.database), PathBuf::new(), 0)
    }

    /// Returns the clients' requests in the whole log.
    pub fn above(&self) -> Result<Vec<Logged>, Error> {
        let unusable = |why| Error::Refused { path: PathBuf::new(), why };
        requests::above(&self.segments(), 0).map_err(|stop| match stop {
            Stop::Damaged(why) | Stop::Torn(why) => unusable(why),
            Stop::Failed(error) => error,
        })
    }
}

fn damaged(database: &Path) -> impl Fn(Damage) -> Error {
    let path = database.to_owned();
    move |damage| match damage {
        Damage::Io(source) => Error::Io { action: "reading", path: path.clone(), source },
        damage => Error::Database { path: path.clone(), why: damage.to_string() },
    }
}
