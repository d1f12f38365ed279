//! Properties that every datagram and every configuration must satisfy. proptest and cargo-fuzz both use them.

use tandem::fencing_agent::refusal_of;
use tandem::sim::fencing::receive;

/// The largest number of outputs for one datagram. An agent of three members answers, challenges, and gossips to both others.
const MOST: usize = 32;

/// Asserts that an agent of three members has few outputs for any datagrams. Bytes of 0xff separate the datagrams in `input`.
pub(crate) fn datagrams(input: &[u8]) {
    let datagrams: Vec<&[u8]> = input.split(|byte| *byte == 0xff).collect();
    let asked = receive(&datagrams);
    assert!(asked <= MOST * datagrams.len(), "{asked} outputs for {} datagrams", datagrams.len());
}

/// Asserts that a refusal of `text` as a configuration is safe to show on a terminal.
pub(crate) fn configuration(text: &str) {
    if let Some(why) = refusal_of(text) {
        assert!(!why.is_empty() && !why.chars().any(|c| c.is_control() && c != '\n'), "{why:?}");
    }
}
