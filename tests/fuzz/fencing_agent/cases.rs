//! What every datagram and every configuration must leave true. proptest and cargo-fuzz both feed it.

use tandem::fencing_agent::refusal_of;
use tandem::sim::fencing::receive;

/// What an agent of three members sends and plans for one datagram at most: it answers, challenges and gossips to both others.
const MOST: usize = 32;

/// Hands `input` to a member as datagrams of the others, which a byte of 0xff parts.
pub(crate) fn datagrams(input: &[u8]) {
    let datagrams: Vec<&[u8]> = input.split(|byte| *byte == 0xff).collect();
    let asked = receive(&datagrams);
    assert!(asked <= MOST * datagrams.len(), "{asked} outputs for {} datagrams", datagrams.len());
}

/// Reads `text` as a configuration. A refusal is one that a terminal can show.
pub(crate) fn configuration(text: &str) {
    if let Some(why) = refusal_of(text) {
        assert!(!why.is_empty() && !why.chars().any(|c| c.is_control() && c != '\n'), "{why:?}");
    }
}
