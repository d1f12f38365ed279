//! Inputs from other members, after decryption, and from operators or controllers: no panic, no hang, and no more
//! memory than the input justifies.

mod cases;

use proptest::prelude::*;

use crate::allocation;

const EXAMPLE: &str = include_str!("../../../src/fencing_agent/config/example.toml");
/// The bytes of memory for an agent of three members, with the buffers of the crate foca.
const CONSTANT: usize = 1024 * 1024;
const FACTOR: usize = 256;

fn count() -> u32 {
    std::env::var("TANDEM_FUZZ_CASES").map_or(1_000, |cases| cases.parse().expect("TANDEM_FUZZ_CASES is a number"))
}

/// Returns a generator of datagrams of a member, or almost: a sender, a version, a kind, the sender's start counter and a body.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let head = (any::<u8>(), prop_oneof![9 => Just(1_u8), 1 => any::<u8>()], 0_u8..6, 0_u64..4);
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(b'a'), Just(b'b'), Just(b'c'), 0_u8..12], 0..120),
    ];
    (head, body).prop_map(|((sender, version, kind, number), body)| {
        [&[sender, version, kind][..], &number.to_be_bytes(), &body].concat()
    })
}

/// Returns a generator of copies of the example configuration in which a part is deleted, overwritten or doubled.
fn configuration() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        any::<String>(),
        Just("\"18446744073709551616s\"".to_owned()),
        Just("-1".to_owned()),
        Just("[[members]]\n".to_owned()),
        Just("[kubernetes]\n".to_owned()),
        Just("\u{1b}[2J\u{202e}\r".to_owned()),
    ];
    (any::<prop::sample::Index>(), 0_usize..60, words, any::<bool>()).prop_map(|(at, length, words, uncomment)| {
        let text = if uncomment { EXAMPLE.replace("# ", "") } else { EXAMPLE.to_owned() };
        let chars: Vec<char> = text.chars().collect();
        let from = at.index(chars.len());
        let to = (from + length).min(chars.len());
        chars[..from].iter().collect::<String>() + &words + &chars[to..].iter().collect::<String>()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: count(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_datagrams_are_taken_or_dropped(all in prop::collection::vec(datagram(), 1..40)) {
        let input = all.join(&0xff);
        let (peak, ()) = allocation::peak(|| cases::datagrams(&input));
        prop_assert!(peak <= CONSTANT + FACTOR * input.len(), "{} bytes for {}", peak, input.len());
    }

    #[test]
    fn any_configuration_is_taken_or_refused(text in prop_oneof![4 => configuration(), 1 => any::<String>()]) {
        let (peak, ()) = allocation::peak(|| cases::configuration(&text));
        prop_assert!(peak <= CONSTANT + FACTOR * text.len(), "{} bytes for {}", peak, text.len());
    }
}
