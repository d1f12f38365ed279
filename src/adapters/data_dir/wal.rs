//! The records of the WAL, in order, through all files.
//!
//! The reader classifies faults as etcd does when it opens its WAL. A fault that etcd repairs by itself is a torn tail, and a
//! fault that keeps it from starting is damage.
//! etcd refuse to start is damage.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::Message;
use prost::bytes::Bytes;

use super::error::Error;
use super::proto::{WalRecord, record_type};
use crate::os::beneath::Dir;

/// The size of the length field in front of each record.
const FRAME: u64 = 8;
/// The least unit that a disk writes. etcd also uses it to recognise a torn write.
const SECTOR: u64 = 512;
/// The record length from which etcd 3.4 does not start. Later versions treat such a record at the end of the log as torn.
const LONGEST_OF_3_4: u64 = 10 * 1024 * 1024;
/// The most memory that is allocated before the bytes arrive, so that a wrong length field costs none.
const FIRST_CHUNK: usize = 64 * 1024;
/// The largest record. etcd begins another file after 64 MiB, and accepts requests of a few megabytes. A larger record is not
/// etcd's, and could cost unlimited memory and time.
const LARGEST_RECORD: u64 = 64 * 1024 * 1024;
const LARGEST_FILE: u64 = 1024 * 1024 * 1024;

/// One file of the WAL.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// The file's path, which messages also show.
    pub(super) path: PathBuf,
    /// The position in the sequence of files, from the name.
    pub(super) sequence: u64,
    /// The index of the first entry that may be in this file, from the name.
    pub(super) first_index: u64,
    /// The file's bytes, where they do not come from disk.
    pub(super) bytes: Option<Bytes>,
    /// The directory of the file.
    pub(super) from: Option<Arc<Dir>>,
    /// The file, opened when it was listed. A running etcd that purges it meanwhile removes only its name.
    pub(super) held: Option<Arc<File>>,
}

impl Segment {
    /// Parses a file's name; `None` for a name that etcd does not regard as a WAL file either.
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        let stem = path.file_name()?.to_str()?.strip_suffix(".wal")?;
        let (sequence, first_index) = stem.split_once('-')?;
        let hex = |text: &str| {
            let whole = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            whole.then(|| u64::from_str_radix(text, 16).ok()).flatten()
        };
        Some(Self {
            path: path.to_owned(),
            sequence: hex(sequence)?,
            first_index: hex(first_index)?,
            bytes: None,
            from: None,
            held: None,
        })
    }

    /// Opens the file for all later reads. A file that cannot be opened fails when it is read.
    pub(super) fn hold(&mut self) {
        self.held = self.file().ok().map(Arc::new);
    }

    fn file(&self) -> io::Result<File> {
        let place = self.from.as_ref().zip(self.path.file_name());
        place.map_or_else(|| Err(io::ErrorKind::NotFound.into()), |(from, name)| from.file(name))
    }

    fn open(&self) -> Result<Input, Error> {
        if let Some(bytes) = &self.bytes {
            let length = bytes.len() as u64;
            return Ok(Input { source: Box::new(io::Cursor::new(bytes.clone())), length });
        }
        let mut file = match &self.held {
            Some(file) => file.try_clone().map_err(Error::io("opening", &self.path))?,
            None => self.file().map_err(Error::io("opening", &self.path))?,
        };
        // A clone shares its offset with an earlier reader of the file.
        file.rewind().map_err(Error::io("reading", &self.path))?;
        let length = file.metadata().map_err(Error::io("reading the size of", &self.path))?.len();
        Ok(Input { source: Box::new(BufReader::with_capacity(FIRST_CHUNK, file)), length })
    }
}

struct Input {
    source: Box<dyn Read>,
    length: u64,
}

/// The reason why reading stopped before the end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The last file ends in an incomplete record. The text contains etcd's reaction.
    Torn(String),
    /// etcd does not start from this WAL.
    Damaged(String),
    /// An I/O error, or an unknown format.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The position of the next record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WalOffset {
    /// The last file.
    pub(super) path: PathBuf,
    /// The offset after the last intact record.
    pub(super) offset: u64,
    /// The rolling checksum up to that offset.
    pub(super) crc: u32,
}

/// A reader of records up to the end of the last file.
pub(super) struct Reader<'a> {
    segment: &'a Segment,
    rest: &'a [Segment],
    input: Input,
    offset: u64,
    crc: u32,
}

impl<'a> Reader<'a> {
    /// Opens the first of `segments`; `None` if there are none.
    pub(super) fn open(segments: &'a [Segment]) -> Result<Option<Self>, Error> {
        let Some((segment, rest)) = segments.split_first() else { return Ok(None) };
        Ok(Some(Self { segment, rest, input: segment.open()?, offset: 0, crc: 0 }))
    }

    /// Returns the position after the last intact record that was read.
    pub(super) fn position(&self) -> WalOffset {
        WalOffset { path: self.segment.path.clone(), offset: self.offset, crc: self.crc }
    }

    /// Returns the next record with its checksum verified; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<WalRecord>, Stop> {
        loop {
            if let Some(record) = self.next_in_file()? {
                return Ok(Some(record));
            }
            let Some((segment, rest)) = self.rest.split_first() else { return Ok(None) };
            (self.segment, self.rest, self.input, self.offset) = (segment, rest, segment.open()?, 0);
        }
    }

    fn next_in_file(&mut self) -> Result<Option<WalRecord>, Stop> {
        if self.input.length > LARGEST_FILE {
            return Err(Stop::Damaged(self.place("the file is larger than any that etcd writes")));
        }
        let frame = self.read(FRAME)?;
        let Ok(field) = <[u8; 8]>::try_from(frame.as_slice()) else {
            return if frame.is_empty() { Ok(None) } else { Err(self.incomplete("the file ends inside a length")) };
        };
        let field = u64::from_le_bytes(field);
        if field == 0 {
            return Ok(None);
        }
        let (length, padding) = split_frame(field);
        // The subtraction cannot wrap, because a whole frame was just read at this offset.
        let left = self.input.length.saturating_sub(self.offset + FRAME);
        if length.checked_add(padding).is_none_or(|wanted| wanted > left) {
            let what = "a record's length reaches past the end of the file";
            let refused = length >= LONGEST_OF_3_4.saturating_sub(padding);
            return Err(match self.incomplete(what) {
                Stop::Torn(_) if refused => Stop::Torn(format!("{}{REFUSED_BY_3_4}", self.place(what))),
                other => other,
            });
        }
        if length > LARGEST_RECORD {
            return Err(Stop::Damaged(self.place("a record is larger than any that etcd writes")));
        }
        let body = self.read(length + padding)?;
        if (body.len() as u64) < length + padding {
            return Err(self.incomplete("the file ends inside a record"));
        }
        let body = Bytes::from(body);
        // `length` fits, because that many bytes are in memory.
        let record = usize::try_from(length).ok().and_then(|length| WalRecord::decode(body.slice(..length)).ok());
        let Some(record) = record else { return Err(self.unreadable(&body, "a record cannot be decoded")) };
        self.check(&record, &body)?;
        self.offset += FRAME + length + padding;
        Ok(Some(record))
    }

    /// Verifies the rolling checksum and updates it.
    fn check(&mut self, record: &WalRecord, body: &[u8]) -> Result<(), Stop> {
        if record.kind == record_type::CRC {
            // At the very first record there is no checksum yet to compare with.
            if self.crc != 0 && record.crc != self.crc {
                return Err(Stop::Damaged(self.place("the checksum does not continue that of the file before")));
            }
            self.crc = record.crc;
            return Ok(());
        }
        let crc = crc32c::crc32c_append(self.crc, &record.data);
        if record.crc != crc {
            return Err(self.unreadable(body, "a record's checksum is wrong"));
        }
        self.crc = crc;
        Ok(())
    }

    /// Reads at most `wanted` bytes, and fewer only at the end of the file. Memory grows with the bytes that exist.
    fn read(&mut self, wanted: u64) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::with_capacity(usize::try_from(wanted).unwrap_or(FIRST_CHUNK).min(FIRST_CHUNK));
        let read = (&mut self.input.source).take(wanted).read_to_end(&mut bytes);
        read.map_err(Error::io("reading", &self.segment.path))?;
        Ok(bytes)
    }

    /// Returns the stop for a record that exceeds the file.
    fn incomplete(&self, what: &str) -> Stop {
        if self.is_last() { Stop::Torn(self.torn(what)) } else { Stop::Damaged(self.place(what)) }
    }

    /// Returns the stop for a record with wrong content. It is torn if a whole sector of it never reached the disk.
    fn unreadable(&self, body: &[u8], what: &str) -> Stop {
        let torn = self.is_last() && has_unwritten_sector(self.offset + FRAME, body);
        if torn { Stop::Torn(self.torn(what)) } else { Stop::Damaged(self.place(what)) }
    }

    /// Describes a torn end, which every etcd cuts off.
    fn torn(&self, what: &str) -> String {
        format!("{}; etcd cuts it off", self.place(what))
    }

    fn is_last(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns `what` with file and offset.
    fn place(&self, what: &str) -> String {
        format!("{} at byte {}: {what}", self.segment.path.display(), self.offset)
    }
}

/// The reactions of etcd's versions to such an end.
const REFUSED_BY_3_4: &str = "; etcd 3.5 and later cut it off, and etcd 3.4 does not start from it (max entry size limit \
    exceeded): type 'tandem data-dir advance-commit', which cuts it off";

/// Splits a frame into the lengths of the record and of the padding after it.
fn split_frame(field: u64) -> (u64, u64) {
    let length = field & ((1 << 56) - 1);
    let padding = if field >> 63 == 1 { (field >> 56) & 7 } else { 0 };
    (length, padding)
}

/// Returns whether one of the disk sectors that `body`, written at `offset`, covers holds only zeros.
fn has_unwritten_sector(offset: u64, body: &[u8]) -> bool {
    // The remainder is below 512.
    let head = usize::try_from(SECTOR - offset % SECTOR).unwrap_or_default().min(body.len());
    let (head, tail) = body.split_at(head);
    let zero = |part: &[u8]| part.iter().all(|byte| *byte == 0);
    (!head.is_empty() && zero(head)) || tail.chunks(usize::try_from(SECTOR).unwrap_or(usize::MAX)).any(zero)
}

/// Returns a record with its frame, as etcd would append it after one with the checksum `crc`.
pub(super) fn frame(kind: i64, crc: u32, data: &[u8]) -> Vec<u8> {
    let record = WalRecord { kind, crc: crc32c::crc32c_append(crc, data), data: Bytes::copy_from_slice(data) };
    let body = record.encode_to_vec();
    let padding = (8 - body.len() % 8) % 8;
    let mut field = body.len() as u64;
    if padding != 0 {
        field |= (0x80 | padding as u64) << 56;
    }
    let mut bytes = field.to_le_bytes().to_vec();
    bytes.extend_from_slice(&body);
    bytes.resize(bytes.len() + padding, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the reader's text about `end` after one intact record.
    fn said(end: &[u8]) -> String {
        let bytes = Bytes::from([frame(record_type::STATE, 0, b""), end.to_vec()].concat());
        let (path, held) = (PathBuf::from("/wal"), None);
        let segments = [Segment { path, sequence: 0, first_index: 0, bytes: Some(bytes), held, from: None }];
        let mut reader = Reader::open(&segments).unwrap().unwrap();
        assert!(matches!(reader.next(), Ok(Some(_))));
        match reader.next() {
            Err(Stop::Torn(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_length_that_etcd_3_4_refuses_is_not_said_to_be_cut_off_by_every_etcd() {
        let length = |length: u64, padding: u64| {
            let field = if padding == 0 { length } else { length | (0x80 | padding) << 56 };
            said(&field.to_le_bytes())
        };
        for torn in [length(1000, 0), length(LONGEST_OF_3_4 - 1, 0), length(LONGEST_OF_3_4 - 8, 7), said(&[1, 2, 3])] {
            assert!(torn.ends_with("; etcd cuts it off"), "{torn}");
        }
        for refused in [length(LONGEST_OF_3_4, 0), length(LONGEST_OF_3_4 - 7, 7), said(&[0x55; 100])] {
            assert!(refused.contains("etcd 3.4 does not start from it"), "{refused}");
        }
    }
}
