//! The two message streams that etcd sends to a peer. The decoder keeps only what a vote proxy needs: of an entry its kind, term
//! and index, of a snapshot nothing. The sender chooses the lengths, so no memory is allocated by them.

use std::io::{Error, ErrorKind, Read, Result};

use super::wire::{CONF_CHANGE, CONF_CHANGES, REMOVE_NODE, kind};

/// The greatest size in bytes of a Raft message. etcd never sends a larger one.
const MESSAGE_LIMIT: u64 = 512 * 1024 * 1024;
/// The greatest size in bytes of a message's `context`. etcd's contexts have 8 or 16 bytes.
const CONTEXT_LIMIT: u64 = 1024;
/// The size in bytes of the buffer into which skipped bytes are read.
const SKIPPED: usize = 16 * 1024;
/// The greatest number of bytes of an encoded 64-bit varint.
const VARINT: u32 = 10;

/// A `raftpb.Message` from etcd, with only the fields that the vote proxy needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: u64,
    pub(super) to: u64,
    pub(super) from: u64,
    pub(super) term: u64,
    pub(super) log_term: u64,
    pub(super) index: u64,
    pub(super) commit: u64,
    pub(super) reject: bool,
    pub(super) context: Vec<u8>,
    pub(super) entries: Entries,
}

/// A summary of the log entries in a Raft message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) count: u64,
    /// The index of the message's last entry.
    pub(super) last: u64,
    /// The greatest term among the entries, and the index of the first entry with that term; `None` without entries.
    pub(super) newest: Option<(u64, u64)>,
    /// The first and the last index of the entries that change the members, without removals of `dead`; `None` if there are none.
    pub(super) changes: Option<(u64, u64)>,
    /// The id of the dead member. An entry that removes this member does not count as a member change.
    pub(super) dead: u64,
}

impl Entries {
    fn beside(dead: u64) -> Self {
        Self { dead, ..Self::default() }
    }

    fn add(&mut self, kind: u64, term: u64, index: u64, removes: Option<u64>) {
        if CONF_CHANGES.contains(&kind) && removes != Some(self.dead) {
            self.changes = Some((self.changes.map_or(index, |(first, _)| first), index));
        }
        self.count = self.count.saturating_add(1);
        self.last = index;
        if self.newest.is_none_or(|(newest, _)| term > newest) {
            self.newest = Some((term, index));
        }
    }
}

/// The kind of a peer stream: etcd can send every message on `Message`, and only log entries on `Append`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Append,
}

impl Kind {
    /// Returns the name of the stream in the path of an HTTP request.
    pub(super) fn endpoint(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Append => "msgapp",
        }
    }
}

/// A decoder that reads Raft messages from a peer stream.
#[derive(Debug)]
pub(super) struct Decoder<R> {
    kind: Kind,
    reader: R,
    from: u64,
    to: u64,
    /// The term of the previous message's entries. Entries that arrive in the short form name no term and have this one.
    term: u64,
    /// The index of the previous message's last entry. Entries that arrive in the short form name no index and follow it.
    index: u64,
}

impl<R: Read> Decoder<R> {
    /// Creates a decoder for the stream that member `from` sends to member `to`.
    pub(super) fn new(kind: Kind, reader: R, from: u64, to: u64) -> Self {
        Self { kind, reader, from, to, term: 0, index: 0 }
    }

    /// Returns the next Raft message. Skips messages without a sender, which only keep the connection alive.
    pub(super) fn next(&mut self) -> Result<Message> {
        loop {
            let message = match self.kind {
                Kind::Message => self.framed()?,
                Kind::Append => match byte(&mut self.reader)? {
                    0 => continue,
                    1 => self.implied()?,
                    2 => self.whole()?,
                    other => return Err(nonsense(format!("a message of type {other} in the stream of entries"))),
                },
            };
            if message.from != 0 || message.to != 0 {
                return Ok(message);
            }
        }
    }

    /// Reads a Raft message that is preceded by its length in bytes.
    fn framed(&mut self) -> Result<Message> {
        let length = number(&mut self.reader)?;
        if length > MESSAGE_LIMIT {
            return Err(nonsense(format!("a message of {length} bytes")));
        }
        message(&mut self.reader, length, self.to)
    }

    fn whole(&mut self) -> Result<Message> {
        let message = self.framed()?;
        self.term = message.term;
        self.index = if message.entries.count > 0 { message.entries.last } else { message.index };
        Ok(message)
    }

    /// Reads log entries in the short form: they follow the previous message's entries, in the same term.
    fn implied(&mut self) -> Result<Message> {
        let (term, index) = (self.term, self.index);
        let count = number(&mut self.reader)?;
        let (mut entries, mut left) = (Entries::beside(self.to), MESSAGE_LIMIT);
        for _ in 0..count {
            let length = number(&mut self.reader)?;
            left = length
                .checked_add(8)
                .and_then(|taken| left.checked_sub(taken))
                .ok_or_else(|| nonsense(format!("an entry of {length} bytes")))?;
            entry(Scan { reader: &mut self.reader, left: length }, &mut entries)?;
        }
        self.index = self.index.saturating_add(entries.count);
        let commit = number(&mut self.reader)?;
        let (from, to) = (self.from, self.to);
        let kind = kind::APPEND;
        Ok(Message { kind, from, to, term, log_term: term, index, commit, entries, ..Message::default() })
    }
}

/// Reads a Raft message of `length` bytes. Entries that remove the member `dead` do not count as member changes.
pub(super) fn message(reader: &mut impl Read, length: u64, dead: u64) -> Result<Message> {
    let mut scan = Scan { reader, left: length };
    let mut message = Message { entries: Entries::beside(dead), ..Message::default() };
    while let Some((field, value)) = scan.field()? {
        match (field, value) {
            (1, Value::Number(value)) => message.kind = value,
            (2, Value::Number(value)) => message.to = value,
            (3, Value::Number(value)) => message.from = value,
            (4, Value::Number(value)) => message.term = value,
            (5, Value::Number(value)) => message.log_term = value,
            (6, Value::Number(value)) => message.index = value,
            (8, Value::Number(value)) => message.commit = value,
            (10, Value::Number(value)) => message.reject = value != 0,
            (7, Value::Bytes(length)) => entry(scan.part(length)?, &mut message.entries)?,
            (12, Value::Bytes(length)) if length <= CONTEXT_LIMIT => {
                message.context = vec![0; usize::try_from(length).unwrap_or_default()];
                scan.part(length)?.reader.read_exact(&mut message.context)?;
            }
            (12, Value::Bytes(length)) => return Err(nonsense(format!("a context of {length} bytes"))),
            (_, Value::Number(_)) => {}
            (_, Value::Bytes(length)) => scan.part(length)?.skip()?,
        }
    }
    Ok(message)
}

fn entry<R: Read>(mut scan: Scan<'_, R>, entries: &mut Entries) -> Result<()> {
    let (mut kind, mut term, mut index, mut removes) = (0, 0, 0, None);
    while let Some((field, value)) = scan.field()? {
        match (field, value) {
            (1, Value::Number(value)) => kind = value,
            (2, Value::Number(value)) => term = value,
            (3, Value::Number(value)) => index = value,
            (4, Value::Bytes(length)) if kind == CONF_CHANGE => removes = removal(scan.part(length)?)?,
            (_, Value::Number(_)) => {}
            (_, Value::Bytes(length)) => scan.part(length)?.skip()?,
        }
    }
    entries.add(kind, term, index, removes);
    Ok(())
}

/// Returns the id of the member that a member change removes; `None` if the change is no removal.
fn removal<R: Read>(mut change: Scan<'_, R>) -> Result<Option<u64>> {
    let (mut kind, mut member) = (0, 0);
    while let Some((field, value)) = change.field()? {
        match (field, value) {
            (2, Value::Number(value)) => kind = value,
            (3, Value::Number(value)) => member = value,
            (_, Value::Number(_)) => {}
            (_, Value::Bytes(length)) => change.part(length)?.skip()?,
        }
    }
    Ok((kind == REMOVE_NODE).then_some(member))
}

/// The value of a protobuf field: a number, or the number of bytes that follow.
enum Value {
    Number(u64),
    Bytes(u64),
}

/// A part of a stream, of which `left` bytes are unread.
struct Scan<'r, R> {
    reader: &'r mut R,
    left: u64,
}

impl<R: Read> Scan<'_, R> {
    fn take(&mut self, bytes: u64) -> Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| nonsense("a field that is longer than its message"))?;
        Ok(())
    }

    /// Returns the next `length` bytes as a part of their own. The caller must read or skip that part to its end.
    fn part(&mut self, length: u64) -> Result<Scan<'_, R>> {
        self.take(length)?;
        Ok(Scan { reader: self.reader, left: length })
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for position in 0..VARINT {
            self.take(1)?;
            let byte = byte(self.reader)?;
            value |= u64::from(byte & 127) << (7 * position);
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(nonsense("a number without an end"))
    }

    /// Reads the number and the value of the next protobuf field; `None` at the end.
    fn field(&mut self) -> Result<Option<(u64, Value)>> {
        if self.left == 0 {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(8),
            2 => Value::Bytes(self.varint()?),
            5 => Value::Bytes(4),
            other => return Err(nonsense(format!("a field of wire type {other}"))),
        };
        Ok(Some((key >> 3, value)))
    }

    fn skip(mut self) -> Result<()> {
        let mut thrown_away = [0; SKIPPED];
        while self.left > 0 {
            let piece = usize::try_from(self.left).unwrap_or(SKIPPED).min(SKIPPED);
            self.reader.read_exact(&mut thrown_away[..piece])?;
            self.left -= piece as u64;
        }
        Ok(())
    }
}

fn byte(reader: &mut impl Read) -> Result<u8> {
    let mut byte = [0];
    reader.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Reads a number that is not in a protobuf message: eight bytes, big endian.
fn number(reader: &mut impl Read) -> Result<u64> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}

fn nonsense(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, what.into())
}
