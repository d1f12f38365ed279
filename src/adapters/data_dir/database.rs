//! etcd's database (`member/snap/db`, a bbolt file): the log index that it has applied, its members, and each change of a key
//! ([`Walk`]).
//!
//! etcd creates the database before it knows whether it can join. So a failed first start leaves a database without a WAL. Only
//! the contents distinguish it from the half of a member's data.

mod changes;
mod described;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom};

use super::error::Error;
use crate::os::beneath::Dir;

pub use changes::Change;
pub(super) use changes::{Damage, Walk};
pub use described::Described;
pub(super) use described::{described, last_revision};

/// The name of etcd's database file in `member/snap`.
pub(super) const DATABASE: &str = "db";

/// The magic number in a meta page of a bbolt file.
const MAGIC: u32 = 0xED0C_DAED;
/// The version of bbolt's file format, which follows the magic number in a meta page.
const VERSION: u32 = 2;
/// The size of the header of a bbolt page, in bytes.
const HEADER: usize = 16;
const LEAF: u16 = 0x02;
const BRANCH: u16 = 0x01;
/// The flag of an element of a leaf page that holds a bucket.
const BUCKET: u32 = 0x01;
/// The greatest size of a page with its overflow pages, in bytes. In etcd's databases, the pages that lead to the wanted keys are much
/// smaller.
const MAX_PAGE: usize = 1 << 20;
/// The greatest depth of a tree of pages. A deeper tree is circular.
const MAX_DEPTH: u32 = 16;
/// The greatest number of keys that are read. A cluster has far fewer members, so a larger tree is circular.
const MAX_KEYS: usize = 10_000;
const MAX_PAGES: u32 = 10_000;
/// The greatest number of bytes that are collected as keys and values. Several elements may refer to the same bytes, so that even a small
/// file can have any amount of values.
const MAX_BYTES: usize = 16 << 20;
/// The greatest number of bytes that are read from one database.
const MAX_READ: u64 = 256 << 20;

/// The index up to which etcd's database has applied the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// The database is missing, or holds only empty buckets.
    Nothing,
    /// The database has applied the log up to this index.
    UpTo(u64),
    /// The database cannot be read, because it is damaged, in use, or of another format.
    Unreadable,
}

impl Applied {
    /// Returns why etcd cannot start from the database and a log that was compacted up to `snapshot_index`: the database has not applied
    /// the log up to that index. Returns `None` if the database has applied the log that far. Also returns `None` for an unreadable
    /// database, which proves nothing.
    pub(super) fn lack(self, snapshot_index: u64) -> Option<String> {
        let what = match self {
            Self::UpTo(index) if index < snapshot_index => format!("reaches only up to index {index}"),
            Self::Nothing if snapshot_index > 0 => "is missing or empty".into(),
            Self::UpTo(_) | Self::Nothing | Self::Unreadable => return None,
        };
        Some(format!("the log was compacted up to index {snapshot_index}, but the database {what}"))
    }

    /// Returns the index up to which the database has applied the log, if that index is above `last_index`; else `None`. `last_index` is
    /// the index of the log's last entry, so such a log has lost its end. etcd starts nevertheless, but does not apply new entries that
    /// have the indexes of the lost ones.
    pub(super) fn ahead_of(self, last_index: u64) -> Option<u64> {
        match self {
            Self::UpTo(index) if index > last_index => Some(index),
            Self::UpTo(_) | Self::Nothing | Self::Unreadable => None,
        }
    }
}

/// The members that etcd's database lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) peer_urls: BTreeMap<u64, Vec<String>>,
    pub(super) removed: BTreeSet<u64>,
    /// The cluster's version, major and minor; `None` if the database has none.
    pub(super) version: Option<(u64, u64)>,
}

/// Reads the log index that the database in the directory `snap` has applied.
pub(super) fn applied(snap: &Dir) -> Result<Applied, Error> {
    let Some(file) = open(snap)? else { return Ok(Applied::Nothing) };
    applied_in(file).map_err(Error::io("reading", snap.path().join(DATABASE)))
}

/// Reads the members from the database in the directory `snap`; `None` where the database is missing or cannot be read.
pub(super) fn members(snap: &Dir) -> Result<Option<Members>, Error> {
    let Some(file) = open(snap)? else { return Ok(None) };
    members_in(file).map_err(Error::io("reading", snap.path().join(DATABASE)))
}

fn open(snap: &Dir) -> Result<Option<std::fs::File>, Error> {
    match snap.file(DATABASE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some).map_err(Error::io("opening", snap.path().join(DATABASE))),
    }
}

/// Reads the members from the database in `source`; `None` if it cannot be read.
pub(super) fn members_in(source: impl Read + Seek) -> io::Result<Option<Members>> {
    let mut database = Database::of(source)?;
    match database.members() {
        Ok(members) => Ok(Some(members)),
        Err(Fault::Io(error)) => Err(error),
        Err(Fault::Format) => Ok(None),
    }
}

/// Reads the log index that the database in `source` has applied.
pub(super) fn applied_in(source: impl Read + Seek) -> io::Result<Applied> {
    let mut database = Database::of(source)?;
    if database.length == 0 {
        return Ok(Applied::Nothing);
    }
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

/// The value of a key in a bbolt bucket: a nested bucket, or bytes.
enum Value {
    Bucket(Vec<u8>),
    Plain(Vec<u8>),
}

/// A key of a bbolt bucket, and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// The part of a member's JSON in the database that this program reads.
#[derive(serde::Deserialize)]
struct Urls {
    #[serde(rename = "peerURLs", default)]
    peer_urls: Vec<String>,
}

#[derive(Debug)]
struct Database<S> {
    source: S,
    length: u64,
    page_size: usize,
    /// The number of pages that have been read from the database.
    pages: u32,
    /// The number of bytes that have been read from the database.
    read: u64,
    collected: usize,
}

impl<S: Read + Seek> Database<S> {
    fn of(mut source: S) -> io::Result<Self> {
        let length = source.seek(SeekFrom::End(0))?;
        Ok(Self { source, length, page_size: 0, pages: 0, read: 0, collected: 0 })
    }

    fn consistent_index(&mut self) -> Result<Applied, Fault> {
        let root = self.root()?;
        match self.value(root, b"meta", b"consistent_index")? {
            None => Ok(Applied::Nothing),
            Some(value) => match number(&value, 0).map(u64::from_be_bytes) {
                Some(0) => Ok(Applied::Nothing),
                Some(index) => Ok(Applied::UpTo(index)),
                None => Err(Fault::Format),
            },
        }
    }

    fn members(&mut self) -> Result<Members, Fault> {
        let root = self.root()?;
        let id = |key: &[u8]| u64::from_str_radix(std::str::from_utf8(key).ok()?, 16).ok();
        let urls = |value: &[u8]| serde_json::from_slice::<Urls>(value).ok().map(|member| member.peer_urls);
        let members = self.entries(root, b"members")?;
        let removed = self.entries(root, b"members_removed")?;
        let version = self.value(root, b"cluster", b"clusterVersion")?;
        Ok(Members {
            peer_urls: members.iter().filter_map(|(key, value)| Some((id(key)?, urls(value)?))).collect(),
            removed: removed.iter().filter_map(|(key, _)| id(key)).collect(),
            version: version.and_then(|version| major_and_minor(&version)),
        })
    }

    /// Reads the value of `key` in the bucket `name`; `None` if the bucket or the key is missing. `root` is the root bucket's
    /// page.
    fn value(&mut self, root: u64, name: &[u8], key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let Some(Value::Bucket(bucket)) = self.find(root, name, 0)? else { return Ok(None) };
        let found = match page_of(&bucket)? {
            0 => self.find_in(inline(&bucket), key, 0)?,
            page => self.find(page, key, 0)?,
        };
        match found {
            None => Ok(None),
            Some(Value::Plain(value)) => Ok(Some(value)),
            Some(Value::Bucket(_)) => Err(Fault::Format),
        }
    }

    /// Reads all entries of the bucket `name`. `root` is the root bucket's page.
    fn entries(&mut self, root: u64, name: &[u8]) -> Result<Vec<Entry>, Fault> {
        let Some(Value::Bucket(bucket)) = self.find(root, name, 0)? else { return Ok(Vec::new()) };
        let mut entries = Vec::new();
        match page_of(&bucket)? {
            0 => self.collect_in(inline(&bucket), 0, &mut entries)?,
            page => self.collect(page, 0, &mut entries)?,
        }
        Ok(entries)
    }

    fn collect(&mut self, id: u64, depth: u32, entries: &mut Vec<Entry>) -> Result<(), Fault> {
        let page = self.page(id, depth)?;
        self.collect_in(&page, depth, entries)
    }

    fn collect_in(&mut self, page: &[u8], depth: u32, entries: &mut Vec<Entry>) -> Result<(), Fault> {
        let short = |at| number(page, at).map(u16::from_le_bytes).ok_or(Fault::Format);
        let (flags, count) = (short(8)?, short(10)?);
        for element in (0..usize::from(count)).map(|element| HEADER + element * 16) {
            if entries.len() >= MAX_KEYS {
                return Err(Fault::Format);
            }
            let field = |at| number(page, element + at).map(u32::from_le_bytes).ok_or(Fault::Format);
            if flags == LEAF {
                let (start, size) = (element + field(4)? as usize, field(8)? as usize);
                let (key, value) = (slice(page, start, size)?, slice(page, start + size, field(12)? as usize)?);
                self.collected += key.len() + value.len();
                if self.collected > MAX_BYTES {
                    return Err(Fault::Format);
                }
                entries.push((key.to_vec(), value.to_vec()));
            } else if flags == BRANCH {
                let child = number(page, element + 8).map(u64::from_le_bytes).ok_or(Fault::Format)?;
                self.collect(child, depth + 1, entries)?;
            } else {
                return Err(Fault::Format);
            }
        }
        Ok(())
    }

    /// Returns the number of the root bucket's page, from the newer one of the valid meta pages.
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

    /// Finds `key` in the tree of pages that begins at page `id`.
    fn find(&mut self, id: u64, key: &[u8], depth: u32) -> Result<Option<Value>, Fault> {
        let page = self.page(id, depth)?;
        self.find_in(&page, key, depth)
    }

    /// Reads the page `id`, with its overflow pages.
    fn page(&mut self, id: u64, depth: u32) -> Result<Vec<u8>, Fault> {
        self.pages += 1;
        if depth > MAX_DEPTH || self.pages > MAX_PAGES {
            return Err(Fault::Format);
        }
        let at = id.checked_mul(self.page_size as u64).ok_or(Fault::Format)?;
        let mut page = self.read_at(at, self.page_size)?;
        let overflow = number(&page, 12).map(u32::from_le_bytes).ok_or(Fault::Format)? as usize;
        let length = overflow.checked_add(1).and_then(|pages| pages.checked_mul(self.page_size));
        // No page on the way to the wanted keys has nearly this size.
        let length = length.filter(|length| *length <= MAX_PAGE).ok_or(Fault::Format)?;
        if overflow > 0 {
            page = self.read_at(at, length)?;
        }
        Ok(page)
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
                // Keys are sorted, so the last key that is not above the wanted one leads to it.
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

    /// Reads `length` bytes at offset `at`. If the file ends earlier, returns an error without allocating memory for the bytes.
    fn read_at(&mut self, at: u64, length: usize) -> Result<Vec<u8>, Fault> {
        if at.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(Fault::Format);
        }
        self.read += length as u64;
        if self.read > MAX_READ {
            return Err(Fault::Format);
        }
        let mut bytes = vec![0; length];
        self.source.seek(SeekFrom::Start(at)).map_err(Fault::Io)?;
        match self.source.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            // The file has shrunk meanwhile.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Fault::Format),
            Err(error) => Err(Fault::Io(error)),
        }
    }
}

/// The fields of a bbolt meta page that this program reads.
struct Meta {
    page_size: usize,
    root: u64,
    transaction: u64,
}

/// Parses a meta page; `None` if its magic number, its version or its checksum is wrong.
fn meta(page: &[u8]) -> Option<Meta> {
    let word = |at| number(page, HEADER + at).map(u32::from_le_bytes);
    let long = |at| number(page, HEADER + at).map(u64::from_le_bytes);
    let is_whole = word(0)? == MAGIC && word(4)? == VERSION && long(56)? == fnv1a(page.get(HEADER..HEADER + 56)?);
    is_whole.then_some(Meta { page_size: word(8)? as usize, root: long(16)?, transaction: long(48)? })
}

/// Returns bbolt's checksum of a meta page.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the number of the page where a bucket's tree begins; 0 for a bucket that is stored in its parent's page.
fn page_of(bucket: &[u8]) -> Result<u64, Fault> {
    number::<8>(bucket, 0).map(u64::from_le_bytes).ok_or(Fault::Format)
}

fn inline(bucket: &[u8]) -> &[u8] {
    bucket.get(HEADER..).unwrap_or_default()
}

fn major_and_minor(version: &[u8]) -> Option<(u64, u64)> {
    let mut numbers = std::str::from_utf8(version).ok()?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn slice(bytes: &[u8], at: usize, size: usize) -> Result<&[u8], Fault> {
    at.checked_add(size).and_then(|end| bytes.get(at..end)).ok_or(Fault::Format)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Asserts that reading stops at [`MAX_BYTES`], because 2,000 elements of this page claim the same megabyte as their value.
    #[test]
    fn values_that_overlap_are_not_collected_without_end() {
        let (count, value) = (2_000_u16, 1 << 20);
        let mut page = [&[0; 8][..], &LEAF.to_le_bytes(), &count.to_le_bytes(), &[0; 4]].concat();
        for element in 0..u32::from(count) {
            let start = u32::from(count) * 16 - element * 16;
            page.extend([0, start, 0, value].into_iter().flat_map(u32::to_le_bytes));
        }
        page.resize(page.len() + value as usize, 0);
        let mut database = Database::of(Cursor::new([])).unwrap();
        let mut entries = Vec::new();
        assert!(matches!(database.collect_in(&page, 0, &mut entries), Err(Fault::Format)));
        assert_eq!(entries.len(), MAX_BYTES / value as usize);
    }
}
