//! The members' names and the last revision in a database, for operators.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use super::{
    BRANCH, Damage, Database, Fault, HEADER, LEAF, MAX_DEPTH, MAX_PAGES, Value, inline, number, open, page_of, slice,
};
use crate::os::beneath::Dir;

/// The greatest length in bytes of a key in etcd's bucket `key`: a revision, `_`, a number, and a deletion mark.
const REVISION_KEY: usize = 18;

/// The data of etcd's database that is shown to operators. No decision uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The revision of the last change of a key; `None` if the database has none or cannot be read.
    pub revision: Option<u64>,
    /// The members' names by their ids.
    pub names: BTreeMap<u64, String>,
}

/// Reads the part of the database in the directory `snap` that is shown to operators. The result is empty where the database cannot be
/// read.
pub(in crate::adapters::data_dir) fn described(snap: &Dir) -> Described {
    let Ok(Some(source)) = open(snap) else { return Described::default() };
    let Ok(mut database) = Database::of(source) else { return Described::default() };
    Described { revision: database.revision().ok().flatten(), names: database.names().unwrap_or_default() }
}

/// Reads the revision of the last change in the database in `source`; `None` if it has no change.
pub(in crate::adapters::data_dir) fn last_revision(source: impl Read + Seek) -> Result<Option<u64>, Damage> {
    Ok(Database::of(source)?.revision()?)
}

/// The part of a member's JSON in the database that this program reads.
#[derive(serde::Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

impl<S: Read + Seek> Database<S> {
    fn names(&mut self) -> Result<BTreeMap<u64, String>, Fault> {
        let root = self.root()?;
        let id = |key: &[u8]| u64::from_str_radix(std::str::from_utf8(key).ok()?, 16).ok();
        let name = |value: &[u8]| serde_json::from_slice::<Named>(value).ok().map(|member| member.name);
        let members = self.entries(root, b"members")?;
        Ok(members.iter().filter_map(|(key, value)| Some((id(key)?, name(value)?))).collect())
    }

    /// Reads the revision of the last key in the bucket `key`, which is sorted by revision.
    fn revision(&mut self) -> Result<Option<u64>, Fault> {
        let root = self.root()?;
        let Some(Value::Bucket(bucket)) = self.find(root, b"key", 0)? else { return Ok(None) };
        let key = match page_of(&bucket)? {
            0 => last_key_in(inline(&bucket))?,
            page => self.last_key(page, 0)?,
        };
        Ok(key.and_then(|key| number(&key, 0)).map(u64::from_be_bytes))
    }

    /// Reads the last key in the tree of pages that begins at page `id`. Reads only the needed parts of a page, because values
    /// may be long.
    fn last_key(&mut self, id: u64, depth: u32) -> Result<Option<Vec<u8>>, Fault> {
        self.pages += 1;
        if depth > MAX_DEPTH || self.pages > MAX_PAGES {
            return Err(Fault::Format);
        }
        let at = id.checked_mul(self.page_size as u64).ok_or(Fault::Format)?;
        let head = self.read_at(at, HEADER)?;
        let short = |at| number(&head, at).map(u16::from_le_bytes).ok_or(Fault::Format);
        let (flags, count) = (short(8)?, short(10)?);
        let Some(last) = usize::from(count).checked_sub(1) else { return Ok(None) };
        let place = (HEADER + last * 16) as u64;
        let element = self.read_at(at.checked_add(place).ok_or(Fault::Format)?, 16)?;
        let field = |at| number(&element, at).map(u32::from_le_bytes).ok_or(Fault::Format);
        match flags {
            LEAF => {
                let start = at.checked_add(place + u64::from(field(4)?)).ok_or(Fault::Format)?;
                Ok(Some(self.read_at(start, (field(8)? as usize).min(REVISION_KEY))?))
            }
            BRANCH => {
                let child = number(&element, 8).map(u64::from_le_bytes).ok_or(Fault::Format)?;
                self.last_key(child, depth + 1)
            }
            _ => Err(Fault::Format),
        }
    }
}

/// Returns the last key of a bucket that is stored in its parent's page.
fn last_key_in(page: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    let count = number(page, 10).map(u16::from_le_bytes).ok_or(Fault::Format)?;
    let Some(last) = usize::from(count).checked_sub(1) else { return Ok(None) };
    let element = HEADER + last * 16;
    let field = |at| number(page, element + at).map(u32::from_le_bytes).ok_or(Fault::Format);
    Ok(Some(slice(page, element + field(4)? as usize, field(8)? as usize)?.to_vec()))
}
