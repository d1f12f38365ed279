//! Sealed datagrams. Each is encrypted and authenticated with a key that only members have.
//!
//! A datagram is a header (the sender's name, its start, and a counter) and a sealed payload. The key of the seal is derived from
//! the shared key for one group, one sender and one of its starts. So the counter is a nonce that is never used twice with a key.
//! The header, the receiver and the network are authenticated as well, so that a datagram that is forwarded to another node does
//! not open there.

use std::collections::{BTreeMap, BTreeSet};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};

use crate::os::secret::Secret;

/// The first bytes of each sealed datagram. Datagrams of memberlist begin with a byte below 16, or with 244.
const MAGIC: &[u8; 4] = b"TFA1";
/// The salt of the key derivation, which separates these keys from other keys with the same secret.
const SALT: &[u8] = b"tandem fencing-agent datagrams 1";
/// The number of counters, back from a sender's newest one, that are still accepted. A sender has one counter for all receivers and
/// networks.
const WINDOW: u64 = 4_096;
const WORDS: usize = 64;
const TAG: usize = 16;
/// The size of a [`Start`] in bytes: a number of 8 bytes and 8 random bytes.
const START: usize = 16;

/// The reason why a received datagram is dropped. It is also the label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dropped {
    /// The datagram is of another program.
    Foreign,
    /// The datagram was sealed with the group's key, but its sender is not in the list of members.
    Unlisted,
    /// The datagram's authentication failed: it was sealed with another key, group, receiver or network, or is damaged. It proves
    /// no name of a sender.
    Seal,
    /// The datagram was received before, or is from an earlier start of the sender's agent.
    Replay,
}

impl Dropped {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Unlisted => "unlisted",
            Self::Seal => "seal",
            Self::Replay => "replay",
        }
    }
}

/// The identity of one start of a sender's agent: a number that rises with each start, and random bytes that no other start has.
type Start = [u8; START];

/// The keys and counters with which the datagrams of one group are encrypted and authenticated (sealed) and opened.
#[derive(Debug)]
pub(crate) struct Sealer {
    own: String,
    group: String,
    root: Prk,
    start: Start,
    key: LessSafeKey,
    counter: u64,
    listed: BTreeSet<String>,
    senders: BTreeMap<String, Sender>,
}

/// The data about one sender: the newest known start of the sender's agent, the key of that start, and the counters that were received.
#[derive(Debug)]
struct Sender {
    start: Start,
    key: LessSafeKey,
    seen: Seen,
}

impl Sealer {
    /// Returns the keys and counters for sealed datagrams of this node's start `number`; `None` if the kernel provides no random bytes.
    pub(crate) fn new(secret: &Secret, group: &str, own: &str, number: u64) -> Option<Self> {
        let root = Salt::new(HKDF_SHA256, SALT).extract(secret.reveal());
        let mut start = [0; START];
        start[..8].copy_from_slice(&number.to_be_bytes());
        SystemRandom::new().fill(&mut start[8..]).ok()?;
        let key = derive(&root, group, own, &start)?;
        Some(Self {
            own: own.to_owned(),
            group: group.to_owned(),
            root,
            start,
            key,
            counter: 0,
            listed: BTreeSet::new(),
            senders: BTreeMap::new(),
        })
    }

    /// Replaces the list of members from which datagrams are accepted.
    pub(crate) fn list<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        self.listed = names.into_iter().filter(|name| *name != self.own).map(str::to_owned).collect();
        self.senders.retain(|name, _| self.listed.contains(name));
    }

    /// Returns an encrypted and authenticated datagram for the member `to`; `None` after the last counter was used.
    pub(crate) fn seal(&mut self, to: &str, network: usize, payload: &[u8]) -> Option<Vec<u8>> {
        self.counter = self.counter.checked_add(1)?;
        let mut datagram = header(&self.own, &self.start, self.counter)?;
        let bound = bound(&datagram, to, network);
        let mut sealed = payload.to_vec();
        self.key.seal_in_place_append_tag(nonce(self.counter), Aad::from(bound), &mut sealed).ok()?;
        datagram.extend_from_slice(&sealed);
        Some(datagram)
    }

    /// Authenticates and decrypts a datagram that arrived on `network`. Returns the sender's name and the payload.
    pub(crate) fn open(&mut self, datagram: &[u8], network: usize) -> Result<(String, Vec<u8>), Dropped> {
        let parts = Parts::of(datagram).ok_or(Dropped::Foreign)?;
        let bound = bound(parts.header, &self.own, network);
        let mut sealed = parts.sealed.to_vec();
        let mut unseal = |key: &LessSafeKey| {
            let opened = key.open_in_place(nonce(parts.counter), Aad::from(&bound), &mut sealed);
            opened.map(|payload| payload.to_vec()).map_err(|_| Dropped::Seal)
        };
        if let Some(sender) = self.senders.get_mut(parts.name) {
            if sender.start == parts.start {
                let payload = unseal(&sender.key)?;
                return if sender.seen.note(parts.counter) {
                    Ok((parts.name.to_owned(), payload))
                } else {
                    Err(Dropped::Replay)
                };
            }
            // A start begins with its number. Without a higher number, another start is an old one, or a replay.
            if parts.start[..8] <= sender.start[..8] {
                return Err(Dropped::Replay);
            }
        }
        let key = derive(&self.root, &self.group, parts.name, &parts.start).ok_or(Dropped::Seal)?;
        let payload = unseal(&key)?;
        // The main loop lists the API again for an unlisted sender, so only a sender with the group's key may get here.
        if !self.listed.contains(parts.name) {
            return Err(Dropped::Unlisted);
        }
        let mut seen = Seen::default();
        seen.note(parts.counter);
        self.senders.insert(parts.name.to_owned(), Sender { start: parts.start, key, seen });
        Ok((parts.name.to_owned(), payload))
    }
}

/// The parts of a received datagram, not yet authenticated.
struct Parts<'a> {
    header: &'a [u8],
    name: &'a str,
    start: Start,
    counter: u64,
    sealed: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(datagram: &'a [u8]) -> Option<Self> {
        let rest = datagram.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (start, rest) = rest.split_first_chunk::<START>()?;
        let (counter, sealed) = rest.split_first_chunk::<8>()?;
        let header = datagram.get(..datagram.len() - sealed.len())?;
        let name = std::str::from_utf8(name).ok()?;
        let is_whole = sealed.len() >= TAG;
        is_whole.then_some(Self { header, name, start: *start, counter: u64::from_be_bytes(*counter), sealed })
    }
}

fn header(name: &str, start: &Start, counter: u64) -> Option<Vec<u8>> {
    let mut header = MAGIC.to_vec();
    header.push(u8::try_from(name.len()).ok()?);
    header.extend_from_slice(name.as_bytes());
    header.extend_from_slice(start);
    header.extend_from_slice(&counter.to_be_bytes());
    Some(header)
}

/// Returns the data that is authenticated together with the payload: the header, the network and the receiver.
fn bound(header: &[u8], to: &str, network: usize) -> Vec<u8> {
    let network = u8::try_from(network).unwrap_or(u8::MAX);
    header.iter().copied().chain([network]).chain(to.bytes()).collect()
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Derives the key for one start of one sender in a group. The length of the group's name is part of the input, so that no other split
/// into group and sender gives the same key.
fn derive(root: &Prk, group: &str, name: &str, start: &Start) -> Option<LessSafeKey> {
    let group_length = u64::try_from(group.len()).ok()?.to_be_bytes();
    let info: [&[u8]; 4] = [&group_length, group.as_bytes(), start, name.as_bytes()];
    let key: UnboundKey = root.expand(&info, &CHACHA20_POLY1305).ok()?.into();
    Some(LessSafeKey::new(key))
}

/// The counters that were received from a sender: the newest one, and those shortly before it.
#[derive(Debug)]
struct Seen {
    newest: u64,
    /// A ring of bits, one for each of the newest [`WINDOW`] counters. The bit of a counter is at the counter modulo `WINDOW`.
    bits: [u64; WORDS],
}

impl Default for Seen {
    fn default() -> Self {
        Self { newest: 0, bits: [0; WORDS] }
    }
}

impl Seen {
    /// Records `counter`, and returns true if it was not received before. A counter that is too old for the ring counts as received.
    fn note(&mut self, counter: u64) -> bool {
        if counter.saturating_add(WINDOW) <= self.newest {
            return false;
        }
        if counter > self.newest {
            if counter - self.newest >= WINDOW {
                self.bits = [0; WORDS];
            } else {
                (self.newest + 1..=counter).for_each(|passed| self.set(passed, false));
            }
            self.newest = counter;
        } else if self.is_set(counter) {
            return false;
        }
        self.set(counter, true);
        true
    }

    fn place(counter: u64) -> (usize, u64) {
        let at = counter % WINDOW;
        (usize::try_from(at / 64).unwrap_or_default() % WORDS, 1 << (at % 64))
    }

    fn set(&mut self, counter: u64, is_seen: bool) {
        let (word, bit) = Self::place(counter);
        if let Some(word) = self.bits.get_mut(word) {
            *word = if is_seen { *word | bit } else { *word & !bit };
        }
    }

    fn is_set(&self, counter: u64) -> bool {
        let (word, bit) = Self::place(counter);
        self.bits.get(word).is_none_or(|word| word & bit != 0)
    }
}

#[cfg(test)]
mod tests;
