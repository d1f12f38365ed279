//! foca's identity and codec, and a parser of its datagrams, so that their updates can be filtered.

use std::fmt;

use bytes::{Buf, BufMut};
use foca::{Header, Member, Message, State};

use super::input::Name;
use super::wire::{put_name, take, take_name};

/// The identity of a member, which is different after each start of its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) name: Name,
    /// The start number of the member's agent. It rises with every start.
    pub(super) number: u64,
}

impl foca::Identity for Id {
    type Addr = Name;

    /// Returns `None`, so that foca gives no new identity to a member that was declared lost. The member refutes the loss instead.
    fn renew(&self) -> Option<Self> {
        None
    }

    fn addr(&self) -> Name {
        self.name.clone()
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.number > adversary.number
    }
}

/// The error for a datagram that is too long or malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed")
    }
}

impl std::error::Error for Malformed {}

/// The encoder and decoder of foca's messages for the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codec;

impl foca::Codec<Id> for Codec {
    type Error = Malformed;

    fn encode_header(&mut self, header: &Header<Id>, buf: impl BufMut) -> Result<(), Malformed> {
        put(&header_bytes(header), buf)
    }

    fn decode_header(&mut self, buf: impl Buf) -> Result<Header<Id>, Malformed> {
        read(buf, take_header)
    }

    fn encode_member(&mut self, member: &Member<Id>, buf: impl BufMut) -> Result<(), Malformed> {
        put(&member_bytes(member), buf)
    }

    fn decode_member(&mut self, buf: impl Buf) -> Result<Member<Id>, Malformed> {
        read(buf, take_member)
    }
}

fn put(bytes: &[u8], mut buf: impl BufMut) -> Result<(), Malformed> {
    if buf.remaining_mut() < bytes.len() {
        return Err(Malformed);
    }
    buf.put_slice(bytes);
    Ok(())
}

fn read<T>(mut buf: impl Buf, take: impl Fn(&mut &[u8]) -> Option<T>) -> Result<T, Malformed> {
    let whole = buf.chunk();
    let mut rest = whole;
    let found = take(&mut rest).ok_or(Malformed)?;
    let used = whole.len() - rest.len();
    buf.advance(used);
    Ok(found)
}

/// A message of foca, decoded: a header, and updates about members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) header: Header<Id>,
    pub(super) updates: Vec<Member<Id>>,
}

impl Packet {
    /// Decodes a message of foca. Returns `None` unless `bytes` are exactly one message.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let header = take_header(&mut rest)?;
        let count = if rest.is_empty() { 0 } else { u16::from_be_bytes(take(&mut rest)?) };
        let updates = (0..count).map(|_| take_member(&mut rest)).collect::<Option<Vec<_>>>()?;
        let is_whole = rest.is_empty() && (updates.is_empty() || header.message != Message::Announce);
        is_whole.then_some(Self { header, updates })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = header_bytes(&self.header);
        if self.header.message != Message::Announce {
            bytes.extend(u16::try_from(self.updates.len()).unwrap_or(u16::MAX).to_be_bytes());
            self.updates.iter().take(u16::MAX.into()).for_each(|member| bytes.extend(member_bytes(member)));
        }
        bytes
    }
}

fn put_id(bytes: &mut Vec<u8>, id: &Id) {
    put_name(bytes, &id.name);
    bytes.extend(id.number.to_be_bytes());
}

fn take_id(rest: &mut &[u8]) -> Option<Id> {
    let name = take_name(rest)?;
    Some(Id { name, number: u64::from_be_bytes(take(rest)?) })
}

fn member_bytes(member: &Member<Id>) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_id(&mut bytes, member.id());
    bytes.extend(member.incarnation().to_be_bytes());
    bytes.push(match member.state() {
        State::Alive => 0,
        State::Suspect => 1,
        State::Down => 2,
    });
    bytes
}

fn take_member(rest: &mut &[u8]) -> Option<Member<Id>> {
    let id = take_id(rest)?;
    let incarnation = u16::from_be_bytes(take(rest)?);
    let state = match take(rest)? {
        [0] => State::Alive,
        [1] => State::Suspect,
        [2] => State::Down,
        _ => return None,
    };
    Some(Member::new(id, incarnation, state))
}

fn header_bytes(header: &Header<Id>) -> Vec<u8> {
    let mut bytes = vec![0];
    put_id(&mut bytes, &header.src);
    bytes.extend(header.src_incarnation.to_be_bytes());
    put_id(&mut bytes, &header.dst);
    let (kind, number, third) = match &header.message {
        Message::Ping(number) => (0, Some(number), None),
        Message::Ack(number) => (1, Some(number), None),
        Message::PingReq { target, probe_number } => (2, Some(probe_number), Some(target)),
        Message::IndirectPing { origin, probe_number } => (3, Some(probe_number), Some(origin)),
        Message::IndirectAck { target, probe_number } => (4, Some(probe_number), Some(target)),
        Message::ForwardedAck { origin, probe_number } => (5, Some(probe_number), Some(origin)),
        Message::Announce => (6, None, None),
        Message::Feed => (7, None, None),
        Message::Gossip => (8, None, None),
        Message::Broadcast => (9, None, None),
        Message::TurnUndead => (10, None, None),
    };
    bytes[0] = kind;
    bytes.extend(number);
    if let Some(third) = third {
        put_id(&mut bytes, third);
    }
    bytes
}

fn take_header(rest: &mut &[u8]) -> Option<Header<Id>> {
    let [kind] = take(rest)?;
    let src = take_id(rest)?;
    let src_incarnation = u16::from_be_bytes(take(rest)?);
    let dst = take_id(rest)?;
    let message = match kind {
        0 => Message::Ping(take::<1>(rest)?[0]),
        1 => Message::Ack(take::<1>(rest)?[0]),
        2..=5 => {
            let [probe_number] = take(rest)?;
            let third = take_id(rest)?;
            match kind {
                2 => Message::PingReq { target: third, probe_number },
                3 => Message::IndirectPing { origin: third, probe_number },
                4 => Message::IndirectAck { target: third, probe_number },
                _ => Message::ForwardedAck { origin: third, probe_number },
            }
        }
        6 => Message::Announce,
        7 => Message::Feed,
        8 => Message::Gossip,
        9 => Message::Broadcast,
        10 => Message::TurnUndead,
        _ => return None,
    };
    Some(Header { src, src_incarnation, dst, message })
}

/// Returns the member that a message names in addition to its sender and its receiver; `None` if it names none.
pub(super) fn third_party(message: &Message<Id>) -> Option<&Id> {
    match message {
        Message::PingReq { target: third, .. }
        | Message::IndirectPing { origin: third, .. }
        | Message::IndirectAck { target: third, .. }
        | Message::ForwardedAck { origin: third, .. } => Some(third),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Id {
        Id { name: name.into(), number: 3 }
    }

    #[test]
    fn every_message_is_read_back_and_no_part_of_one() {
        let (third, probe_number) = (id("c"), 9);
        let messages = [
            Message::Ping(1),
            Message::Ack(2),
            Message::PingReq { target: third.clone(), probe_number },
            Message::IndirectPing { origin: third.clone(), probe_number },
            Message::IndirectAck { target: third.clone(), probe_number },
            Message::ForwardedAck { origin: third, probe_number },
            Message::Announce,
            Message::Feed,
            Message::Gossip,
            Message::Broadcast,
            Message::TurnUndead,
        ];
        for message in messages {
            let states = [State::Alive, State::Suspect, State::Down];
            let updates = if message == Message::Announce { &states[..0] } else { &states[..] };
            let updates = updates.iter().map(|state| Member::new(id("d"), 7, *state)).collect();
            let packet = Packet { header: Header { src: id("a"), src_incarnation: 1, dst: id("b"), message }, updates };
            let bytes = packet.encode();
            assert_eq!(Packet::decode(&bytes), Some(packet.clone()));
            let header = header_bytes(&packet.header).len();
            for length in (0..bytes.len()).filter(|length| *length != header) {
                assert_eq!(Packet::decode(&bytes[..length]), None, "{packet:?} {length}");
            }
        }
    }
}
