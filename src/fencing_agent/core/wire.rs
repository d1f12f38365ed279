//! The payload of a datagram, inside its seal.
//!
//! All numbers are big endian. Each payload begins with version, kind, and the number of the sender's start (8 bytes). The rest
//! depends on the kind:
//!
//! - A challenge has its nonce (8), and the incarnation at which the receiver is suspected (a flag, 2). The names that the sender
//!   itself failed to reach follow (a count, and for each a length and its bytes).
//! - An answer has the nonce (8) and the sender's incarnation (2).
//! - An answer with a challenge has first all of the answer and then all of the challenge.
//! - A SWIM message has its bytes.

use super::input::Name;

const VERSION: u8 = 1;
/// The largest number of accused members in one challenge.
pub(crate) const MOST_ACCUSED: usize = 16;
/// The longest name of a member, in bytes. It is the longest host name.
pub(crate) const LONGEST_NAME: usize = 253;

/// The content of a datagram, without its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// The start number of the sender's agent.
    pub(crate) number: u64,
    pub(crate) message: Message,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Challenge {
        nonce: u64,
        /// The incarnation at which the sender suspects the receiver; `None` if it does not.
        suspected: Option<u16>,
        /// The suspects that the sender itself failed to reach, not those that it only heard of.
        accused: Vec<Name>,
    },
    Answer {
        nonce: u64,
        incarnation: u16,
    },
    /// An answer to the challenge with the nonce `answered`, together with a challenge of the sender.
    AnswerAndChallenge {
        answered: u64,
        incarnation: u16,
        nonce: u64,
        suspected: Option<u16>,
        accused: Vec<Name>,
    },
    /// A notice that the sender leaves cleanly.
    Leave,
    /// A message of the SWIM library foca, encoded as in `swim_wire`.
    Swim(Vec<u8>),
}

impl Datagram {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, 0];
        bytes.extend(self.number.to_be_bytes());
        bytes[1] = match &self.message {
            Message::Challenge { nonce, suspected, accused } => {
                put_challenge(&mut bytes, *nonce, *suspected, accused);
                1
            }
            Message::Answer { nonce, incarnation } => {
                bytes.extend(nonce.to_be_bytes());
                bytes.extend(incarnation.to_be_bytes());
                2
            }
            Message::AnswerAndChallenge { answered, incarnation, nonce, suspected, accused } => {
                bytes.extend(answered.to_be_bytes());
                bytes.extend(incarnation.to_be_bytes());
                put_challenge(&mut bytes, *nonce, *suspected, accused);
                5
            }
            Message::Leave => 3,
            Message::Swim(body) => {
                bytes.extend(body);
                4
            }
        };
        bytes
    }

    /// Decodes the content of a datagram. Returns `None` unless `bytes` are exactly one content of this version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let [version, kind] = take(&mut rest)?;
        if version != VERSION {
            return None;
        }
        let number = u64::from_be_bytes(take(&mut rest)?);
        let message = match kind {
            1 => {
                let (nonce, suspected, accused) = take_challenge(&mut rest)?;
                Message::Challenge { nonce, suspected, accused }
            }
            2 => {
                let nonce = u64::from_be_bytes(take(&mut rest)?);
                Message::Answer { nonce, incarnation: u16::from_be_bytes(take(&mut rest)?) }
            }
            5 => {
                let answered = u64::from_be_bytes(take(&mut rest)?);
                let incarnation = u16::from_be_bytes(take(&mut rest)?);
                let (nonce, suspected, accused) = take_challenge(&mut rest)?;
                Message::AnswerAndChallenge { answered, incarnation, nonce, suspected, accused }
            }
            3 => Message::Leave,
            4 => return Some(Self { number, message: Message::Swim(rest.to_vec()) }),
            _ => return None,
        };
        rest.is_empty().then_some(Self { number, message })
    }
}

fn put_challenge(bytes: &mut Vec<u8>, nonce: u64, suspected: Option<u16>, accused: &[Name]) {
    bytes.extend(nonce.to_be_bytes());
    bytes.push(u8::from(suspected.is_some()));
    bytes.extend(suspected.unwrap_or_default().to_be_bytes());
    let accused = &accused[..accused.len().min(MOST_ACCUSED)];
    bytes.push(u8::try_from(accused.len()).unwrap_or_default());
    for name in accused {
        put_name(bytes, name);
    }
}

fn take_challenge(rest: &mut &[u8]) -> Option<(u64, Option<u16>, Vec<Name>)> {
    let nonce = u64::from_be_bytes(take(rest)?);
    let [is_suspected] = take(rest)?;
    let incarnation = u16::from_be_bytes(take(rest)?);
    let [count] = take(rest)?;
    if is_suspected > 1 || usize::from(count) > MOST_ACCUSED {
        return None;
    }
    let accused = (0..count).map(|_| take_name(rest)).collect::<Option<_>>()?;
    Some((nonce, (is_suspected == 1).then_some(incarnation), accused))
}

/// Appends a name to `bytes`: first its length, then its bytes.
pub(crate) fn put_name(bytes: &mut Vec<u8>, name: &str) {
    let length = name.len().min(LONGEST_NAME);
    bytes.push(u8::try_from(length).unwrap_or_default());
    bytes.extend(&name.as_bytes()[..length]);
}

/// Removes a name from the front of `rest`; `None` if there is no name, or an empty one.
pub(crate) fn take_name(rest: &mut &[u8]) -> Option<Name> {
    let [length] = take(rest)?;
    let (name, after) = rest.split_at_checked(usize::from(length))?;
    *rest = after;
    let name = std::str::from_utf8(name).ok()?;
    (!name.is_empty() && name.len() <= LONGEST_NAME).then(|| Name::from(name))
}

/// Removes `N` bytes from the front of `rest`; `None` if there are fewer.
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Datagram> {
        let accused = vec![Name::from("node2"), Name::from("node3")];
        [
            Message::Challenge { nonce: u64::MAX, suspected: Some(7), accused: accused.clone() },
            Message::AnswerAndChallenge { answered: 42, incarnation: 3, nonce: 7, suspected: None, accused },
            Message::Challenge { nonce: 0, suspected: None, accused: Vec::new() },
            Message::Answer { nonce: 42, incarnation: 3 },
            Message::Leave,
            Message::Swim(vec![1, 2, 3]),
        ]
        .map(|message| Datagram { number: 5, message })
        .into()
    }

    #[test]
    fn what_was_encoded_is_read_back() {
        for datagram in all() {
            assert_eq!(Datagram::decode(&datagram.encode()), Some(datagram));
        }
    }

    #[test]
    fn a_part_of_a_payload_and_more_than_one_are_none() {
        for datagram in all().into_iter().filter(|datagram| !matches!(datagram.message, Message::Swim(_))) {
            let whole = datagram.encode();
            for length in 0..whole.len() {
                assert_eq!(Datagram::decode(&whole[..length]), None, "{datagram:?} {length}");
            }
            assert_eq!(Datagram::decode(&[whole.clone(), vec![0]].concat()), None);
            assert_eq!(Datagram::decode(&[vec![VERSION + 1], whole[1..].to_vec()].concat()), None);
        }
    }

    #[test]
    fn names_are_text_and_not_empty() {
        assert_eq!(take_name(&mut &[0][..]), None);
        assert_eq!(take_name(&mut &[2, 0xff, 0xfe][..]), None);
        assert_eq!(take_name(&mut &[1, b'a'][..]), Some(Name::from("a")));
    }
}
