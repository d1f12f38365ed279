//! The files of events, which Pacemaker's user also writes: no panic, no hang, and no more memory than the file
//! justifies.

mod cases;

use proptest::prelude::*;

use crate::allocation;

/// The largest number of bytes of memory for each byte of an event's line. It includes the copies while both files are sorted.
const FACTOR: usize = 24;
/// The bytes of memory for each file's read buffer and for the lock, in addition to those for the events.
const CONSTANT: usize = 1024 * 1024;

fn cases() -> u32 {
    std::env::var("TANDEM_FUZZ_CASES").map_or(500, |cases| cases.parse().expect("TANDEM_FUZZ_CASES is a number"))
}

/// Returns a generator of lines that are an event, or almost one.
fn line() -> impl Strategy<Value = String> {
    let number = prop_oneof![0_u64..5, Just(1 << 53), Just(u64::MAX), any::<u64>()];
    let text = prop_oneof![Just("Test".to_owned()), any::<String>(), Just("\u{1b}[2J\u{202e}\r\n".to_owned())];
    let time = prop_oneof![Just("2026-11-28T10:00:00Z".to_owned()), any::<String>(), Just("9999-99-99".to_owned())];
    let event = (number, time, prop::collection::vec(text, 4)).prop_map(|(number, time, texts)| {
        serde_json::json!({
            "number": number, "time": time, "type": "Normal", "reason": texts[0],
            "node": texts[1], "message": texts[2], "cause": texts[3],
        })
        .to_string()
    });
    prop_oneof![6 => event, 1 => any::<String>(), 1 => Just("[".repeat(1_000))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_lines_are_read_and_added_to(lines in prop::collection::vec(line(), 0..40), cut in any::<prop::sample::Index>()) {
        let directory = tempfile::tempdir().unwrap();
        let mut input = lines.join("\n").into_bytes();
        // Power may fail in the middle of a file, even of a character.
        input.truncate(cut.index(input.len() + 1));
        let (peak, ()) = allocation::peak(|| cases::file(directory.path(), &input));
        prop_assert!(peak <= CONSTANT + FACTOR * input.len(), "{peak} bytes for {}", input.len());
    }
}
