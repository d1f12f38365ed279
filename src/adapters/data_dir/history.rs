//! The interpretation of a data dir's bytes: the same two passes over the WAL that etcd makes at its start.

use super::History;
use super::error::Error;
use super::membership::{Change, Membership};
use super::proto::{Entry, HardState, Metadata, WalRecord, WalSnapshot, entry_type, record_type};
use super::snapshot::{Loaded, Skipped, SnapSource};
use super::wal::{Reader, Segment, Stop, WalOffset};
use prost::Message;
use prost::bytes::Bytes;

/// The outcome of reading a data dir with a WAL.
#[derive(Clone, Debug)]
pub(super) enum Reading {
    /// etcd would start from this data.
    Whole(Box<Whole>),
    /// etcd would not start from this data. The text is the reason.
    Broken(String),
}

/// The contents of a data dir, with the details that are needed to append a record to its WAL (write-ahead log).
#[derive(Clone, Debug)]
pub(super) struct Whole {
    /// The member, the end of its log, and the cluster's members. The damage listed here does not include `torn` and
    /// `unfinished`.
    pub(super) history: History,
    /// Raft's term, vote and commit index, from the WAL.
    pub(super) state: HardState,
    /// The position in the WAL's last file where the next record would be appended.
    pub(super) end: WalOffset,
    /// The description of an incomplete record at the position `end`; `None` if there is none.
    pub(super) torn: Option<String>,
    /// The newest `.snap` file and its fault, if it cannot be read; else `None`. A running etcd may be writing it.
    pub(super) unfinished: Option<String>,
    /// The index of the snapshot that the log continues; 0 if there is no snapshot.
    pub(super) snapshot_index: u64,
    /// The index of a snapshot that the WAL records above the commit index; `None` if there is none. This member was receiving
    /// the snapshot from the leader when it stopped.
    pub(super) pending_snapshot: Option<u64>,
    /// True if the log has an uncommitted removal of one of three or more voters. Until the removal is committed, the removed member counts
    /// as a voter.
    pub(super) may_remove: bool,
    /// True if the WAL contains no change of the voters that it does not record as committed.
    pub(super) voters_are_committed: bool,
}

impl Whole {
    /// Returns whether the data ends in an incomplete record or an unreadable newest snapshot. A running etcd leaves the data in this state
    /// while it writes.
    pub(super) fn is_unfinished(&self) -> bool {
        self.torn.is_some() || self.unfinished.is_some()
    }

    /// Returns the history, for data that no etcd uses. In such data, an incomplete last record or an unreadable newest snapshot counts as
    /// damage.
    pub(super) fn into_history(self) -> History {
        let mut history = self.history;
        history.damage.extend(self.torn.into_iter().chain(self.unfinished));
        history
    }
}

/// Reads the WAL files `wals`, which are sorted by their sequence, and the snapshots in `snaps`.
pub(super) fn read(wals: &[Segment], snaps: &dyn SnapSource) -> Result<Reading, Error> {
    match try_read(wals, snaps) {
        Ok(reading) => Ok(reading),
        Err(Stop::Damaged(why) | Stop::Torn(why)) => Ok(Reading::Broken(why)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn try_read(wals: &[Segment], snaps: &dyn SnapSource) -> Result<Reading, Stop> {
    let mut skipped = Skipped::default();
    let (valid, above) = recorded_snapshots(wals)?;
    let snapshot = snaps.newest_of(&valid, &mut skipped)?.unwrap_or_default();
    let (snapshot, wals) = match select(wals, snapshot.index) {
        Ok(wals) => (snapshot, wals),
        Err(stop) => {
            let path = wals.first().map_or(std::path::Path::new(""), |segment| segment.path.as_path());
            let Some(recorded) = snaps.newest_recorded(&valid, path)? else { return Err(stop) };
            let wals = select(wals, recorded.index)?;
            (recorded, wals)
        }
    };
    let log = Log::read(wals, &snapshot)?;
    let metadata = log.verify(&snapshot)?;
    let (state, end, torn) = (log.state, log.end.clone(), log.torn.clone());
    let Replayed { membership, may_remove, voters_are_committed } = log.membership(&snapshot);
    let history = log.into_history(membership, &snapshot, &metadata, skipped.others);
    let pending_snapshot = above.iter().map(|snapshot| snapshot.index).find(|index| *index <= history.last_index);
    let snapshot_index = snapshot.index;
    let unfinished = skipped.newest;
    Ok(Reading::Whole(Box::new(Whole {
        history,
        state,
        end,
        torn,
        unfinished,
        snapshot_index,
        pending_snapshot,
        may_remove,
        voters_are_committed,
    })))
}

/// Returns two lists of the snapshots that the WAL records: those up to the commit index, which are valid, and those above it.
fn recorded_snapshots(wals: &[Segment]) -> Result<(Vec<WalSnapshot>, Vec<WalSnapshot>), Stop> {
    let (mut snapshots, mut commit) = (Vec::new(), 0);
    for_each(wals, |record| {
        match record.kind {
            record_type::SNAPSHOT => snapshots.push(decode::<WalSnapshot>(record.data, "a snapshot record")?),
            record_type::STATE => commit = decode::<HardState>(record.data, "a state record")?.commit,
            _ => {}
        }
        Ok(())
    })?;
    Ok(snapshots.into_iter().partition(|snapshot| snapshot.index <= commit))
}

/// Calls `visit` for each record of the WAL. Returns the end of the WAL, and the description of an incomplete last record; `None` if the
/// last record is complete.
pub(super) fn for_each(
    wals: &[Segment],
    mut visit: impl FnMut(WalRecord) -> Result<(), Stop>,
) -> Result<(WalOffset, Option<String>), Stop> {
    let reader = Reader::open(wals)?;
    let Some(mut reader) = reader else { return Err(Stop::Damaged("there is no WAL file".into())) };
    loop {
        match reader.next() {
            Ok(Some(record)) => visit(record)?,
            Ok(None) => return Ok((reader.position(), None)),
            Err(Stop::Torn(what)) => return Ok((reader.position(), Some(what))),
            Err(stop) => return Err(stop),
        }
    }
}

/// Returns the WAL files that contain the entries after `index`. Returns an error if one of them is missing.
pub(super) fn select(wals: &[Segment], index: u64) -> Result<&[Segment], Stop> {
    let first = wals.iter().rposition(|segment| segment.first_index <= index);
    let Some(wals) = first.and_then(|first| wals.get(first..)) else {
        return Err(Stop::Damaged(format!("the WAL file that continues at index {index} is missing")));
    };
    let gap =
        wals.windows(2).find(|pair| matches!(pair, [one, next] if one.sequence.checked_add(1) != Some(next.sequence)));
    match gap {
        Some([one, _]) => Err(Stop::Damaged(format!("the WAL file after {} is missing", one.path.display()))),
        _ => Ok(wals),
    }
}

/// Decodes a protobuf message from bytes with a correct checksum. `what` describes the message in an error.
pub(super) fn decode<M: Message + Default>(data: Bytes, what: &str) -> Result<M, Stop> {
    M::decode(data).map_err(|error| Stop::Damaged(format!("{what} of the WAL cannot be decoded: {error}")))
}

/// The members after all changes in the log.
struct Replayed {
    membership: Membership,
    may_remove: bool,
    voters_are_committed: bool,
}

/// The part of the log after one snapshot.
struct Log {
    start: u64,
    metadata: Option<Bytes>,
    state: HardState,
    last_term: u64,
    last_index: u64,
    /// The member changes in the log, each with the index of its entry. Changes in overwritten entries are removed.
    changes: Vec<(u64, Change)>,
    is_snapshot_recorded: bool,
    end: WalOffset,
    torn: Option<String>,
}

impl Log {
    fn read(wals: &[Segment], snapshot: &Loaded) -> Result<Self, Stop> {
        let mut log = Self {
            start: snapshot.index,
            metadata: None,
            state: HardState::default(),
            last_term: snapshot.term,
            last_index: snapshot.index,
            changes: Vec::new(),
            is_snapshot_recorded: false,
            end: WalOffset { path: std::path::PathBuf::new(), offset: 0, crc: 0 },
            torn: None,
        };
        let path = wals.first().map(|segment| segment.path.clone()).unwrap_or_default();
        (log.end, log.torn) = for_each(wals, |record| log.take(record, snapshot, &path))?;
        Ok(log)
    }

    fn take(&mut self, record: WalRecord, snapshot: &Loaded, path: &std::path::Path) -> Result<(), Stop> {
        match record.kind {
            record_type::METADATA => return self.take_metadata(record.data),
            record_type::ENTRY => return self.take_entry(decode(record.data, "an entry")?, path),
            record_type::STATE => self.state = decode(record.data, "a state record")?,
            record_type::CRC => {}
            record_type::SNAPSHOT => {
                let recorded: WalSnapshot = decode(record.data, "a snapshot record")?;
                if recorded.index == snapshot.index {
                    if recorded.term != snapshot.term {
                        let index = snapshot.index;
                        return Err(Stop::Damaged(format!("WAL and snapshot name different terms for index {index}")));
                    }
                    self.is_snapshot_recorded = true;
                }
            }
            // The checksum was right, so this is a newer etcd's format and not damage.
            kind => return Err(unsupported(path, format!("a WAL record of type {kind}"))),
        }
        Ok(())
    }

    fn take_metadata(&mut self, data: Bytes) -> Result<(), Stop> {
        if self.metadata.as_ref().is_some_and(|known| *known != data) {
            return Err(Stop::Damaged("the WAL files belong to different members".into()));
        }
        self.metadata = Some(data);
        Ok(())
    }

    /// Adds an entry to the log. If the log already has an entry with the same index, the new entry replaces that one and all entries after
    /// it.
    fn take_entry(&mut self, entry: Entry, path: &std::path::Path) -> Result<(), Stop> {
        if entry.index <= self.start {
            return Ok(());
        }
        if entry.index - 1 > self.last_index {
            let (last, next) = (self.last_index, entry.index);
            return Err(Stop::Damaged(format!("entries are missing in the WAL: {next} follows {last}")));
        }
        while self.changes.last().is_some_and(|(index, _)| *index >= entry.index) {
            self.changes.pop();
        }
        (self.last_term, self.last_index) = (entry.term, entry.index);
        let changes = match entry.kind {
            entry_type::CONF_CHANGE => Change::decode(entry.data).map(|change| vec![change]),
            entry_type::CONF_CHANGE_V2 => Change::decode_v2(entry.data),
            _ => return Ok(()),
        };
        let Some(changes) = changes else {
            return Err(Stop::Damaged(format!("the change of members at index {} cannot be decoded", entry.index)));
        };
        if changes.iter().any(|change| !change.is_known()) {
            return Err(unsupported(path, format!("a change of members of an unknown kind at index {}", entry.index)));
        }
        self.changes.extend(changes.into_iter().map(|change| (entry.index, change)));
        Ok(())
    }

    /// Checks the conditions under which etcd starts. Returns the WAL's metadata.
    fn verify(&self, snapshot: &Loaded) -> Result<Metadata, Stop> {
        let Some(metadata) = &self.metadata else {
            return Err(Stop::Damaged(
                "the WAL is empty or cut off at its very beginning: it does not say whose it is".into(),
            ));
        };
        if !self.is_snapshot_recorded {
            return Err(Stop::Damaged(format!("the WAL does not record the snapshot at index {}", snapshot.index)));
        }
        let (commit, last) = (self.state.commit, self.last_index);
        if commit > last {
            let why = format!("the WAL ends at index {last}, but index {commit} was committed: its end is lost");
            return Err(Stop::Damaged(why));
        }
        decode(metadata.clone(), "the metadata")
    }

    /// Returns the members after all changes in the log. Also returns whether a removal of a voter is uncommitted, and whether
    /// every change of the voters is committed.
    fn membership(&self, snapshot: &Loaded) -> Replayed {
        let mut membership = snapshot.membership.clone();
        let (mut may_remove, mut voters_are_committed) = (false, true);
        for (index, change) in &self.changes {
            // A leader of three voters that was cut off may have a removal in its log that the other two never see. Those two
            // continue with all three. Of two voters, none continues without this log.
            let is_certain = *index <= self.state.commit || membership.voters.len() < 3;
            let voters = membership.voters.clone();
            if is_certain || !change.removes() {
                membership.apply(change);
            } else {
                may_remove = true;
            }
            voters_are_committed &= *index <= self.state.commit || membership.voters == voters;
        }
        Replayed { membership, may_remove, voters_are_committed }
    }

    fn into_history(
        self,
        membership: Membership,
        snapshot: &Loaded,
        metadata: &Metadata,
        damage: Vec<String>,
    ) -> History {
        let me = metadata.node_id;
        let Membership { voters, learners, removed, .. } = membership;
        // Raft takes no snapshot from before a member has joined. So a snapshot without this member is from after its removal.
        let is_missing = snapshot.index > 0 && !voters.contains(&me) && !learners.contains(&me);
        History {
            cluster_id: metadata.cluster_id,
            member_id: me,
            last_term: self.last_term,
            last_index: self.last_index,
            commit_index: self.state.commit,
            has_left: is_missing || removed.contains(&me),
            voters,
            learners,
            database_ahead: None,
            damage,
        }
    }
}

fn unsupported(path: &std::path::Path, what: String) -> Stop {
    Stop::Failed(Error::Unsupported { path: path.to_owned(), what })
}
