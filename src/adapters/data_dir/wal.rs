//! The records of the WAL, in order, through all files.
//!
//! The reader classifies faults as etcd does when it opens its WAL. A fault that etcd repairs by itself is a torn tail, and a
//! fault that keeps it from starting is damage.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::Message;
use prost::bytes::Bytes;

use super::error::Error;
use super::proto::{WalRecord, record_type};
use crate::os::beneath::Dir;

/// The size in bytes of the length field in front of each record of the WAL.
const FRAME: u64 = 8;
/// The smallest unit in bytes that a disk writes. etcd uses it, too, to recognise an incomplete write.
const SECTOR: u64 = 512;
/// The length in bytes from which on a WAL record keeps etcd 3.4 from starting. Later versions treat such a record at the end of the log as
/// incomplete.
const LONGEST_OF_3_4: u64 = 10 * 1024 * 1024;
/// The greatest number of bytes that are allocated before any is read, so that a wrong length field costs no memory.
const FIRST_CHUNK: usize = 64 * 1024;
/// The largest record in bytes. etcd begins another WAL file after 64 MiB, and accepts requests of a few megabytes. A larger
/// record is not etcd's, and could cost unlimited memory and time.
const LARGEST_RECORD: u64 = 64 * 1024 * 1024;
const LARGEST_FILE: u64 = 1024 * 1024 * 1024;

/// One file of the WAL.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// The path of the WAL file, which messages also show.
    pub(super) path: PathBuf,
    /// The number of the file in the sequence of WAL files, from its name.
    pub(super) sequence: u64,
    /// The index of the first log entry that may be in this file, from its name.
    pub(super) first_index: u64,
    /// The bytes of a file in memory, for tests; `None` for a file on disk.
    pub(super) bytes: Option<Bytes>,
    /// The directory of the WAL file; `None` for a file in memory.
    pub(super) from: Option<Arc<Dir>>,
    /// The WAL file, if it was opened when it was listed. An open file can be read even after etcd has purged it.
    pub(super) held: Option<Arc<File>>,
}

impl Segment {
    /// Parses the name of a WAL file; `None` for a name that etcd does not regard as a WAL file either.
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

    /// Opens the WAL file for all later reads. A file that cannot be opened here causes an error only when it is read.
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

/// The reason why reading the WAL stopped before its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The last WAL file ends in an incomplete record. The text describes it, and what etcd does about it.
    Torn(String),
    /// etcd does not start from this WAL. The text is the reason.
    Damaged(String),
    /// An I/O error occurred, or the WAL has an unknown format.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The position in the WAL where the next record would be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WalOffset {
    /// The path of the WAL's last file.
    pub(super) path: PathBuf,
    /// The offset in bytes after the last intact record of the file.
    pub(super) offset: u64,
    /// The rolling checksum of the WAL up to `offset`.
    pub(super) crc: u32,
}

/// A reader of the WAL's records, from the first of its files to the end of the last one.
pub(super) struct Reader<'a> {
    segment: &'a Segment,
    rest: &'a [Segment],
    input: Input,
    offset: u64,
    crc: u32,
}

impl<'a> Reader<'a> {
    /// Opens the first of the WAL files `segments`; `None` if there are none.
    pub(super) fn open(segments: &'a [Segment]) -> Result<Option<Self>, Error> {
        let Some((segment, rest)) = segments.split_first() else { return Ok(None) };
        Ok(Some(Self { segment, rest, input: segment.open()?, offset: 0, crc: 0 }))
    }

    /// Returns the position after the last intact record that was read.
    pub(super) fn position(&self) -> WalOffset {
        WalOffset { path: self.segment.path.clone(), offset: self.offset, crc: self.crc }
    }

    /// Returns the next record of the WAL, after its checksum was verified; `None` at the end of the last file.
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

    /// Compares the record's checksum with the rolling checksum of the WAL, and updates the latter.
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

    /// Reads `wanted` bytes, or fewer at the end of the file. Allocates memory only for bytes that exist, so that a wrong length field
    /// costs no memory.
    fn read(&mut self, wanted: u64) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::with_capacity(usize::try_from(wanted).unwrap_or(FIRST_CHUNK).min(FIRST_CHUNK));
        let read = (&mut self.input.source).take(wanted).read_to_end(&mut bytes);
        read.map_err(Error::io("reading", &self.segment.path))?;
        Ok(bytes)
    }

    /// Returns the [`Stop`] for a record that reaches past the end of its file. In the last file, this is an incomplete write; in any other
    /// file it is damage.
    fn incomplete(&self, what: &str) -> Stop {
        if self.is_last() { Stop::Torn(self.torn(what)) } else { Stop::Damaged(self.place(what)) }
    }

    /// Returns the [`Stop`] for a record with wrong content. The record is an incomplete write if it is in the last file and a
    /// whole sector of it is zero; else it is damaged.
    fn unreadable(&self, body: &[u8], what: &str) -> Stop {
        let torn = self.is_last() && has_unwritten_sector(self.offset + FRAME, body);
        if torn { Stop::Torn(self.torn(what)) } else { Stop::Damaged(self.place(what)) }
    }

    /// Returns the description of an incomplete record at the end of the WAL, which every version of etcd cuts off.
    fn torn(&self, what: &str) -> String {
        format!("{}; etcd cuts it off", self.place(what))
    }

    fn is_last(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns `what`, preceded by the file's path and the offset.
    fn place(&self, what: &str) -> String {
        format!("{} at byte {}: {what}", self.segment.path.display(), self.offset)
    }
}

/// The text about an incomplete record at the end of the WAL with a length that etcd 3.4 refuses.
const REFUSED_BY_3_4: &str = "; etcd 3.5 and later cut it off, and etcd 3.4 does not start from it (max entry size limit \
    exceeded): type 'tandem data-dir advance-commit', which cuts it off";

/// Splits the length field in front of a record into the lengths of the record and of the padding after it, both in bytes.
fn split_frame(field: u64) -> (u64, u64) {
    let length = field & ((1 << 56) - 1);
    let padding = if field >> 63 == 1 { (field >> 56) & 7 } else { 0 };
    (length, padding)
}

/// Returns whether `body`, which was written at `offset`, has only zeros in one of the disk sectors that it covers.
fn has_unwritten_sector(offset: u64, body: &[u8]) -> bool {
    // The remainder is below 512.
    let head = usize::try_from(SECTOR - offset % SECTOR).unwrap_or_default().min(body.len());
    let (head, tail) = body.split_at(head);
    let zero = |part: &[u8]| part.iter().all(|byte| *byte == 0);
    (!head.is_empty() && zero(head)) || tail.chunks(usize::try_from(SECTOR).unwrap_or(usize::MAX)).any(zero)
}

/// Returns the bytes of a WAL record with its length field. `crc` is the checksum of the record before it.
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

    /// Returns the text of the error for a WAL file with one intact record and then the bytes `end`.
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
