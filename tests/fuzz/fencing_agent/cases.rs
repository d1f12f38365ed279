//! Properties that every datagram and every configuration must satisfy. proptest and cargo-fuzz both use them.

use tandem::fencing_agent::refusal_of;
use tandem::sim::fencing::receive;

/// The limit of outputs for one datagram in an agent of three members: it answers, challenges, and gossips to both
/// others.
const MOST: usize = 32;

/// Passes `input` to a member as datagrams of the others, separated by bytes of 0xff.
pub(crate) fn datagrams(input: &[u8]) {
    let datagrams: Vec<&[u8]> = input.split(|byte| *byte == 0xff).collect();
    let asked = receive(&datagrams);
    assert!(asked <= MOST * datagrams.len(), "{asked} outputs for {} datagrams", datagrams.len());
}

/// Reads `text` as a configuration. A refusal must be safe to show on a terminal.
pub(crate) fn configuration(text: &str) {
    if let Some(why) = refusal_of(text) {
        assert!(!why.is_empty() && !why.chars().any(|c| c.is_control() && c != '\n'), "{why:?}");
    }
}
