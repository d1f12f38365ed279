//! One number out of etcd's database (`member/snap/db`, a bbolt file): up to which log index it was written.
//!
//! etcd makes the database before it knows whether it can join, so a first start that failed leaves one without a
//! WAL. Only what is inside tells it from the half of a member's data.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::error::Error;
use crate::regular_file;

/// bbolt's mark and format version in a meta page.
const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// The header of every page.
const HEADER: usize = 16;
const LEAF: u16 = 0x02;
const BRANCH: u16 = 0x01;
/// Flag of a leaf element that is a bucket.
const BUCKET: u32 = 0x01;
/// A page of this size or more is none that etcd makes.
const MAX_PAGE: usize = 1 << 20;
/// Trees are shallow; a deeper one goes round in circles.
const MAX_DEPTH: u32 = 16;

/// The answer to what the database holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// Nothing was ever written to it but empty buckets.
    Nothing,
    /// The log up to this index.
    UpTo(u64),
    /// It cannot be read: damaged, in use, or another format.
    Unreadable,
}

impl Applied {
    /// What is wrong with a database that has come this far, if the log was compacted up to `snapshot_index`: it must
    /// hold everything up to there. One that cannot be read proves nothing.
    pub(super) fn lack(self, snapshot_index: u64) -> Option<String> {
        let what = match self {
            Self::UpTo(index) if index < snapshot_index => format!("reaches only up to index {index}"),
            Self::Nothing if snapshot_index > 0 => "is missing or empty".into(),
            Self::UpTo(_) | Self::Nothing | Self::Unreadable => return None,
        };
        Some(format!("the log was compacted up to index {snapshot_index}, but the database {what}"))
    }

    /// What is wrong with a log that ends at `last_index`: all that the database holds was in the log before. etcd starts
    /// all the same, and does not apply what it then numbers anew.
    pub(super) fn excess(self, last_index: u64) -> Option<String> {
        let Self::UpTo(index) = self else { return None };
        let says =
            || format!("the database holds entries up to index {index}, the log ends at {last_index}: its end is lost");
        (index > last_index).then(says)
    }
}

/// Reads the consistent index of the database at `path`.
pub(super) fn applied(path: &Path) -> Result<Applied, Error> {
    let file = match regular_file::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Applied::Nothing),
        file => file.map_err(Error::io("opening", path))?,
    };
    applied_in(file).map_err(Error::io("reading", path))
}

/// As [`applied`], for any source.
pub(super) fn applied_in(mut source: impl Read + Seek) -> io::Result<Applied> {
    let length = source.seek(SeekFrom::End(0))?;
    if length == 0 {
        return Ok(Applied::Nothing);
    }
    let mut database = Database { source, length, page_size: 0 };
    match database.consistent_index() {
        Ok(applied) => Ok(applied),
        Err(Fault::Io(error)) => Err(error),
        Err(Fault::Format) => Ok(Applied::Unreadable),
    }
}

enum Fault {
    Io(io::Error),
    Format,
}

/// What a key leads to.
enum Value {
    Bucket(Vec<u8>),
    Plain(Vec<u8>),
}

struct Database<S> {
    source: S,
    length: u64,
    page_size: usize,
}

impl<S: Read + Seek> Database<S> {
    fn consistent_index(&mut self) -> Result<Applied, Fault> {
        let root = self.root()?;
        let Some(Value::Bucket(meta)) = self.find(root, b"meta", 0)? else { return Ok(Applied::Nothing) };
        let (page, inline) = (number::<8>(&meta, 0).map(u64::from_le_bytes), meta.get(HEADER..).unwrap_or_default());
        let found = match page.ok_or(Fault::Format)? {
            0 => self.find_in(inline, b"consistent_index", 0)?,
            page => self.find(page, b"consistent_index", 0)?,
        };
        match found {
            None => Ok(Applied::Nothing),
            Some(Value::Plain(value)) => match number(&value, 0).map(u64::from_be_bytes) {
                Some(0) => Ok(Applied::Nothing),
                Some(index) => Ok(Applied::UpTo(index)),
                None => Err(Fault::Format),
            },
            Some(Value::Bucket(_)) => Err(Fault::Format),
        }
    }

    /// The page of the root bucket, from the newer of the two meta pages that is whole.
    fn root(&mut self) -> Result<u64, Fault> {
        let first = self.read_at(0, 4096)?;
        let sizes = [meta(&first).map(|meta| meta.page_size), Some(4096), Some(8192), Some(16384), Some(65536)];
        for size in sizes.into_iter().flatten().filter(|size| *size <= MAX_PAGE) {
            self.page_size = size;
            let second = self.read_at(size as u64, 4096)?;
            let newest = [meta(&first), meta(&second)].into_iter().flatten().max_by_key(|meta| meta.transaction);
            if let Some(meta) = newest.filter(|meta| meta.page_size == size) {
                return Ok(meta.root);
            }
        }
        Err(Fault::Format)
    }

    /// Looks `key` up in the tree below page `id`.
    fn find(&mut self, id: u64, key: &[u8], depth: u32) -> Result<Option<Value>, Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::Format);
        }
        let at = id.checked_mul(self.page_size as u64).ok_or(Fault::Format)?;
        let mut page = self.read_at(at, self.page_size)?;
        let overflow = number(&page, 12).map(u32::from_le_bytes).ok_or(Fault::Format)? as usize;
        let length = overflow.checked_add(1).and_then(|pages| pages.checked_mul(self.page_size));
        // No page that leads to what is wanted here comes near this size.
        let length = length.filter(|length| *length <= MAX_PAGE).ok_or(Fault::Format)?;
        if overflow > 0 {
            page = self.read_at(at, length)?;
        }
        self.find_in(&page, key, depth)
    }

    fn find_in(&mut self, page: &[u8], key: &[u8], depth: u32) -> Result<Option<Value>, Fault> {
        let short = |at| number(page, at).map(u16::from_le_bytes).ok_or(Fault::Format);
        let (flags, count) = (short(8)?, short(10)?);
        let mut child = None;
        for element in (0..usize::from(count)).map(|element| HEADER + element * 16) {
            let field = |at| number(page, element + at).map(u32::from_le_bytes).ok_or(Fault::Format);
            if flags == LEAF {
                let (start, size) = (element + field(4)? as usize, field(8)? as usize);
                if slice(page, start, size)? == key {
                    let value = slice(page, start + size, field(12)? as usize)?.to_vec();
                    return Ok(Some(if field(0)? & BUCKET == 0 { Value::Plain(value) } else { Value::Bucket(value) }));
                }
            } else if flags == BRANCH {
                // Keys are sorted: the last one that is not above the wanted one leads on.
                if slice(page, element + field(0)? as usize, field(4)? as usize)? > key {
                    break;
                }
                child = number(page, element + 8).map(u64::from_le_bytes);
            } else {
                return Err(Fault::Format);
            }
        }
        child.map_or(Ok(None), |child| self.find(child, key, depth + 1))
    }

    /// `length` bytes, which must be there: nothing is allocated for what is not.
    fn read_at(&mut self, at: u64, length: usize) -> Result<Vec<u8>, Fault> {
        if at.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(Fault::Format);
        }
        let mut bytes = vec![0; length];
        self.source.seek(SeekFrom::Start(at)).map_err(Fault::Io)?;
        match self.source.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            // It shrank meanwhile.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Fault::Format),
            Err(error) => Err(Fault::Io(error)),
        }
    }
}

/// What a meta page says.
struct Meta {
    page_size: usize,
    root: u64,
    transaction: u64,
}

/// Reads a meta page whose checksum is right.
fn meta(page: &[u8]) -> Option<Meta> {
    let word = |at| number(page, HEADER + at).map(u32::from_le_bytes);
    let long = |at| number(page, HEADER + at).map(u64::from_le_bytes);
    let is_whole = word(0)? == MAGIC && word(4)? == VERSION && long(56)? == fnv1a(page.get(HEADER..HEADER + 56)?);
    is_whole.then_some(Meta { page_size: word(8)? as usize, root: long(16)?, transaction: long(48)? })
}

/// bbolt's checksum of a meta page.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn slice(bytes: &[u8], at: usize, size: usize) -> Result<&[u8], Fault> {
    at.checked_add(size).and_then(|end| bytes.get(at..end)).ok_or(Fault::Format)
}
