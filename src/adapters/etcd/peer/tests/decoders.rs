//! Tests of the streams: etcd's messages are decoded, and everything else ends in an error.

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message as _;

use super::super::stream::{Decoder, Entries, Kind, Message};
use super::super::wire::{Entry, Outgoing, kind};

const FROM: u64 = 0xa;
const TO: u64 = 0xb;

pub(super) fn framed(message: &Outgoing) -> Vec<u8> {
    let bytes = message.encode_to_vec();
    [&(bytes.len() as u64).to_be_bytes()[..], &bytes].concat()
}

/// Encodes log entries in the short form of a peer stream, in which they follow the previous message's entries.
pub(super) fn implied(entries: &[Entry], commit: u64) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend((entries.len() as u64).to_be_bytes());
    for entry in entries {
        let entry = entry.encode_to_vec();
        bytes.extend((entry.len() as u64).to_be_bytes());
        bytes.extend(entry);
    }
    bytes.extend(commit.to_be_bytes());
    bytes
}

fn entries(term: u64, after: u64, sizes: &[usize]) -> Vec<Entry> {
    let entry = |(index, size): (u64, &usize)| Entry { kind: 0, term, index, data: vec![7; *size] };
    (after + 1..).zip(sizes).map(entry).collect()
}

fn outgoing() -> impl Strategy<Value = Outgoing> {
    let numbers = (0..20_u64, any::<u64>(), any::<u64>(), any::<u64>(), any::<bool>());
    let rest = (1..1000_u64, 0..u64::from(u32::MAX), vec(0..3000_usize, 0..5), vec(any::<u8>(), 0..40));
    (numbers, rest).prop_map(|((kind, log_term, commit, reject_hint, reject), (term, index, sizes, context))| {
        let context = Some(context).filter(|context| !context.is_empty());
        let entries = entries(term, index, &sizes);
        Outgoing { kind, to: TO, from: FROM, term, log_term, index, entries, commit, reject, reject_hint, context }
    })
}

/// Returns the message that a decoder should return for the encoded `sent`.
fn expected(sent: &Outgoing) -> Message {
    let mut entries = Entries { count: sent.entries.len() as u64, dead: TO, ..Entries::default() };
    if let (Some(first), Some(last)) = (sent.entries.first(), sent.entries.last()) {
        entries.last = last.index;
        entries.newest = Some((first.term, first.index));
    }
    let &Outgoing { kind, to, from, term, log_term, index, commit, reject, .. } = sent;
    let context = sent.context.clone().unwrap_or_default();
    Message { kind, to, from, term, log_term, index, commit, reject, context, entries }
}

/// Decodes `bytes` until an error. Returns the decoded messages and the error.
fn all(kind: Kind, bytes: &[u8]) -> (Vec<Message>, std::io::Error) {
    let mut decoder = Decoder::new(kind, bytes, FROM, TO);
    let mut read = Vec::new();
    loop {
        match decoder.next() {
            Ok(message) => read.push(message),
            Err(error) => return (read, error),
        }
    }
}

proptest! {
    #[test]
    fn what_is_sent_is_read(sent in vec(outgoing(), 0..4)) {
        let wanted: Vec<Message> = sent.iter().map(expected).collect();
        let bytes: Vec<u8> = sent.iter().flat_map(framed).collect();
        prop_assert_eq!(&all(Kind::Message, &bytes).0, &wanted);
        let bytes: Vec<u8> = sent.iter().flat_map(|message| [&[0, 0, 2][..], &framed(message)].concat()).collect();
        prop_assert_eq!(&all(Kind::Append, &bytes).0, &wanted);
    }

    #[test]
    fn appends_go_on_where_the_last_one_ended(first in vec(0..2000_usize, 0..4), more in vec(vec(0..2000_usize, 0..4), 0..4)) {
        let (term, mut index) = (7, 100);
        let whole = Outgoing {
            kind: kind::APPEND, to: TO, from: FROM, term, index, entries: entries(term, index, &first), ..Outgoing::default()
        };
        let mut bytes = [&[2][..], &framed(&whole)].concat();
        index += first.len() as u64;
        let mut wanted = vec![expected(&whole)];
        for sizes in more {
            let entries = entries(term, index, &sizes);
            bytes.extend(implied(&entries, index));
            wanted.push(expected(&Outgoing { log_term: term, index, commit: index, entries, ..whole.clone() }));
            index += sizes.len() as u64;
        }
        prop_assert_eq!(all(Kind::Append, &bytes).0, wanted);
    }

    /// Asserts that random bytes end in an error, and never decode to more than was sent.
    #[test]
    fn nonsense_ends(bytes in vec(any::<u8>(), 0..4000)) {
        for kind in [Kind::Message, Kind::Append] {
            let (read, _) = all(kind, &bytes);
            let kept: usize = read.iter().map(|message| message.context.len()).sum();
            prop_assert!(read.len() <= bytes.len() && kept <= bytes.len());
        }
    }

    /// Asserts that decoding also ends for a message of which some bytes were changed.
    #[test]
    fn near_nonsense_ends(sent in vec(outgoing(), 1..3), at in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        for kind in [Kind::Message, Kind::Append] {
            let mut bytes: Vec<u8> = sent.iter().flat_map(|message| [&[2][..], &framed(message)].concat()).collect();
            for (at, byte) in &at {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            prop_assert!(all(kind, &bytes).0.len() <= bytes.len());
        }
    }
}

#[test]
fn lengths_that_are_named_allocate_nothing() {
    let huge = u64::MAX.to_be_bytes();
    let told = |kind, bytes: &[u8]| all(kind, bytes).1.to_string();
    assert!(told(Kind::Message, &huge).starts_with("a message of "));
    assert!(told(Kind::Append, &[&[2][..], &huge].concat()).starts_with("a message of "));
    assert!(told(Kind::Append, &[&[1][..], &huge, &huge].concat()).starts_with("an entry of "));
    assert!(told(Kind::Append, &[3]).starts_with("a message of type 3 "));
    // The length is within the limit, but no bytes follow. The decoder finds the end of the stream and has allocated nothing.
    assert_eq!(all(Kind::Message, &(400_u64 << 20).to_be_bytes()).1.kind(), std::io::ErrorKind::UnexpectedEof);
    let context = Outgoing { context: Some(vec![0; 2000]), ..Outgoing::new(kind::HEARTBEAT, 3) };
    assert!(told(Kind::Message, &framed(&context)).starts_with("a context of 2000 bytes"));
}

#[test]
fn a_number_without_an_end_is_refused() {
    let bytes = [&20_u64.to_be_bytes()[..], &[255; 20]].concat();
    assert_eq!(all(Kind::Message, &bytes).1.to_string(), "a number without an end");
}

#[test]
fn heartbeats_of_the_connection_are_passed_over() {
    let own = Outgoing::new(kind::HEARTBEAT, 0);
    let real = Outgoing { from: FROM, to: TO, ..Outgoing::new(kind::VOTE, 5) };
    let bytes = [framed(&own), framed(&real), framed(&own)].concat();
    let (read, end) = all(Kind::Message, &bytes);
    assert_eq!((read.len(), read[0].kind), (1, kind::VOTE));
    assert_eq!(end.kind(), std::io::ErrorKind::UnexpectedEof);
}

/// Asserts that a removal is encoded as etcd 3.5 encodes it. Decoding the test's own encoding would not show a mistake that the encoder and
/// the decoder share.
#[test]
fn a_removal_is_what_etcd_reads() {
    let removal = Outgoing { from: 0xb, to: 0xa, ..Outgoing::removal_of(0xb, 5) };
    let id = 0xb << 48 | 5_u64;
    let mut varint = Vec::new();
    prost::encoding::encode_varint(id, &mut varint);
    let change = [&[0x08][..], &varint, &[0x10, 1, 0x18, 0xb]].concat();
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let entry = [&[0x08, 1, 0x10, 0, 0x18, 0, 0x22, length(&change)][..], &change].concat();
    let wanted = [
        &[0x08, 2, 0x10, 0xa, 0x18, 0xb, 0x20, 0, 0x28, 0, 0x30, 0, 0x3a, length(&entry)][..],
        &entry,
        &[0x40, 0, 0x50, 0, 0x58, 0],
    ]
    .concat();
    assert_eq!(removal.encode_to_vec(), wanted);
}
