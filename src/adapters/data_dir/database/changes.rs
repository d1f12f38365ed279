//! The changes of keys that a database holds, in the order of their revisions: etcd's bucket `key`, page by page.
//!
//! The database is another program's, so its contents are not trusted. Revisions must rise, and all pages together must not
//! exceed the file's length. So a circular tree ends with an error. One page is in memory at a time.

use std::io::{self, Read, Seek, SeekFrom};

use prost::Message;
use prost::bytes::Bytes;

use super::{BRANCH, BUCKET, Database, Fault, HEADER, LEAF, MAX_DEPTH, Value, inline, number, page_of, slice};
use crate::adapters::data_dir::proto::KeyValue;

/// The greatest size in bytes of a page with its overflow. etcd puts up to four large values into one page, and accepts requests
/// of a few megabytes at most.
const LARGEST_PAGE: u64 = 64 << 20;
/// The length in bytes of a key in etcd's bucket `key`: a revision, `_`, and the change's number in its transaction. A deletion
/// has one more byte.
const REVISION: usize = 17;
const SEPARATOR: u8 = b'_';
const DELETION: u8 = b't';

/// A change of one key, with the revision that etcd gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub revision: u64,
    /// The number of this change among the changes of its revision, from 0.
    pub place: u64,
    pub is_deletion: bool,
    pub key: Bytes,
    /// The revision that created the key; 0 if this change is a deletion.
    pub created: u64,
    /// The number of writes of the key since its creation, including this one.
    pub version: u64,
    pub lease: i64,
    pub value: Bytes,
}

/// The reason why etcd's database cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::adapters::data_dir) enum Damage {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The number of a bbolt page, and the page's fault.
    #[error("page {0} {1}")]
    Page(u64, &'static str),
    #[error("neither of its first two pages is whole")]
    Head,
}

impl From<Fault> for Damage {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Io(error) => Self::Io(error),
            Fault::Format => Self::Head,
        }
    }
}

/// An iterator over the changes of keys in etcd's database, in the order of their revisions.
#[derive(Debug)]
pub(in crate::adapters::data_dir) struct Walk<S> {
    database: Database<S>,
    /// The unread child pages of each branch page from the root to the current leaf. Within a branch, the next page is the last
    /// element.
    left: Vec<Vec<u64>>,
    leaf: Leaf,
    /// The number of bytes of the file that are not in any page read so far.
    unread: u64,
    /// The revision of the database's last compaction; 0 if there was none. Of the changes up to it, only the last one of each
    /// key is left.
    compacted: u64,
    /// The first revision that the caller wants. Changes of earlier revisions are skipped.
    from: u64,
    last: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Leaf {
    id: u64,
    bytes: Vec<u8>,
    count: usize,
    next: usize,
    /// The number of bytes that the leaf's elements so far claim as their keys and values.
    named: usize,
}

impl<S: Read + Seek> Walk<S> {
    /// Opens the database in `source`. The first change that [`Walk::next`] returns is the first one of revision `from` or later.
    pub(in crate::adapters::data_dir) fn open(source: S, from: u64) -> Result<Self, Damage> {
        let mut database = Database::of(source)?;
        let unread = database.length;
        let walk = |database| Self {
            database,
            left: Vec::new(),
            leaf: Leaf::default(),
            unread,
            compacted: 0,
            from,
            last: None,
        };
        if unread == 0 {
            return Ok(walk(database));
        }
        let root = database.root()?;
        let compacted = database.compacted(root)?;
        let bucket = database.find(root, b"key", 0)?;
        let mut walk = Self { compacted, ..walk(database) };
        match bucket {
            None => {}
            Some(Value::Plain(_)) => return Err(Damage::Head),
            Some(Value::Bucket(bucket)) => match page_of(&bucket)? {
                0 => walk.enter_bytes(0, inline(&bucket).to_vec())?,
                page => walk.left.push(vec![page]),
            },
        }
        Ok(walk)
    }

    /// Returns the revision up to which the database was compacted; 0 where it never was.
    pub(in crate::adapters::data_dir) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Reads the next change of a key; `None` after the last one.
    pub(in crate::adapters::data_dir) fn next(&mut self) -> Result<Option<Change>, Damage> {
        loop {
            while self.leaf.next < self.leaf.count {
                if let Some(change) = self.take()? {
                    return Ok(Some(change));
                }
            }
            let Some(left) = self.left.last_mut() else { return Ok(None) };
            match left.pop() {
                Some(page) => self.enter(page)?,
                None => drop(self.left.pop()),
            }
        }
    }

    fn enter(&mut self, id: u64) -> Result<(), Damage> {
        let wrong = |what| Damage::Page(id, what);
        if self.left.len() > MAX_DEPTH as usize {
            return Err(wrong("is deeper in the tree than any that etcd makes"));
        }
        let size = self.database.page_size as u64;
        let at = id.checked_mul(size).filter(|at| at.checked_add(size).is_some_and(|end| end <= self.database.length));
        let at = at.ok_or(wrong("is behind the end of the file"))?;
        let mut head = [0; HEADER];
        self.read(at, &mut head)?;
        let overflow = number(&head, 12).map(u32::from_le_bytes).map_or(0, u64::from);
        let length = (overflow + 1).saturating_mul(size);
        if length > LARGEST_PAGE {
            return Err(wrong("is larger than any that etcd makes"));
        }
        if at.saturating_add(length) > self.database.length {
            return Err(wrong("reaches behind the end of the file"));
        }
        self.unread = self.unread.checked_sub(length).ok_or(wrong("leads to pages that were read before"))?;
        let mut bytes = std::mem::take(&mut self.leaf.bytes);
        bytes.clear();
        bytes.resize(usize::try_from(length).map_err(|_| wrong("is larger than any that etcd makes"))?, 0);
        self.read(at, &mut bytes)?;
        self.enter_bytes(id, bytes)
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Damage> {
        self.database.source.seek(SeekFrom::Start(at))?;
        Ok(self.database.source.read_exact(into)?)
    }

    fn enter_bytes(&mut self, id: u64, bytes: Vec<u8>) -> Result<(), Damage> {
        let short = |at| number(&bytes, at).map(u16::from_le_bytes);
        let (Some(flags), Some(count)) = (short(8), short(10)) else { return Err(Damage::Page(id, "has no head")) };
        let count = usize::from(count);
        match flags {
            LEAF => self.leaf = Leaf { id, bytes, count, next: 0, named: 0 },
            BRANCH => {
                let below = children(&bytes, count, self.from).ok_or(Damage::Page(id, "names keys outside of it"))?;
                self.left.push(below);
                self.leaf = Leaf { bytes, ..Leaf::default() };
            }
            _ => return Err(Damage::Page(id, "is no page of keys")),
        }
        Ok(())
    }

    /// Reads the next element of the leaf page; `None` if its revision is before the first one that the caller wants.
    fn take(&mut self) -> Result<Option<Change>, Damage> {
        let leaf = &mut self.leaf;
        let wrong = |what| Damage::Page(leaf.id, what);
        let element = HEADER + leaf.next * 16;
        leaf.next += 1;
        let field = |at| number(&leaf.bytes, element + at).map(u32::from_le_bytes).map(|field| field as usize);
        let fields = (|| Some((field(0)?, field(4)?, field(8)?, field(12)?)))();
        let (flags, start, key_size, size) = fields.ok_or(wrong("names keys outside of it"))?;
        if flags & BUCKET as usize != 0 {
            return Err(wrong("has a bucket among the keys"));
        }
        let start = element + start;
        let outside = |_| wrong("names keys outside of it");
        let key = slice(&leaf.bytes, start, key_size).map_err(outside)?;
        let value = slice(&leaf.bytes, start + key_size, size).map_err(outside)?;
        leaf.named += key_size + size;
        if leaf.named > leaf.bytes.len() {
            return Err(wrong("names the same bytes twice"));
        }
        let (revision, place, is_deletion) = revision(key).ok_or(wrong("has a key that is no revision"))?;
        if self.last.replace((revision, place)).is_some_and(|last| last >= (revision, place)) {
            return Err(wrong("has revisions that do not rise"));
        }
        if revision < self.from {
            return Ok(None);
        }
        let pair = KeyValue::decode(value).map_err(|_| wrong("has a value that cannot be decoded"))?;
        Ok(Some(Change {
            revision,
            place,
            is_deletion,
            key: pair.key,
            created: u64::try_from(pair.create_revision).unwrap_or_default(),
            version: u64::try_from(pair.version).unwrap_or_default(),
            lease: pair.lease,
            value: pair.value,
        }))
    }
}

impl<S: Read + Seek> Database<S> {
    /// Reads the revision of the last compaction, or of one that is scheduled. A scheduled compaction counts, because an
    /// interrupted one has deleted a part of the changes.
    fn compacted(&mut self, root: u64) -> Result<u64, Fault> {
        let mut compacted = 0;
        for name in ["scheduledCompactRev", "finishedCompactRev"] {
            if let Some(value) = self.value(root, b"meta", name.as_bytes())? {
                compacted = compacted.max(number(&value, 0).map(u64::from_be_bytes).ok_or(Fault::Format)?);
            }
        }
        Ok(compacted)
    }
}

/// Splits a key of etcd's bucket `key` into revision, number in the transaction, and whether the change is a deletion.
fn revision(key: &[u8]) -> Option<(u64, u64, bool)> {
    let is_deletion = match key.get(REVISION..)? {
        [] => false,
        [DELETION] => true,
        _ => return None,
    };
    (key.get(8) == Some(&SEPARATOR)).then_some(())?;
    Some((number(key, 0).map(u64::from_be_bytes)?, number(key, 9).map(u64::from_be_bytes)?, is_deletion))
}

/// Returns the child pages of a branch page that can hold revision `from` or a later one, in reverse order.
fn children(page: &[u8], count: usize, from: u64) -> Option<Vec<u64>> {
    let mut below = Vec::new();
    for element in (0..count).map(|element| HEADER + element * 16) {
        let start = element + number(page, element).map(u32::from_le_bytes)? as usize;
        let size = number(page, element + 4).map(u32::from_le_bytes)? as usize;
        // All keys of the page before are below this one.
        let first = slice(page, start, size).ok().and_then(|key| number(key, 0)).map(u64::from_be_bytes)?;
        if first < from {
            below.clear();
        }
        below.push(number(page, element + 8).map(u64::from_le_bytes)?);
    }
    below.reverse();
    Some(below)
}
