//! UUIDs of machines, as firmware and BMCs write them.

use uuid::Uuid;
use uuid::fmt::Simple;

/// Returns whether two texts are the same UUID. In one of the texts, the bytes of the first three fields may be swapped, as SMBIOS stores
/// them.
pub fn same(ours: &str, theirs: &str) -> bool {
    match (read(ours), read(theirs)) {
        (Some(ours), Some(theirs)) => ours == theirs || ours.to_bytes_le() == theirs.into_bytes(),
        _ => false,
    }
}

/// Reads the UUID in a text; `None` if there is none, or if it is all zeros or all ones. BMCs place hyphens differently, or use none.
fn read(text: &str) -> Option<Uuid> {
    let mut digits = text.trim().trim_start_matches("urn:uuid:").to_owned();
    digits.retain(|digit| digit != '-');
    // A text without hyphens has only this form. One in braces is not accepted here.
    let uuid = if digits.len() == Simple::LENGTH { Uuid::try_parse(&digits).ok()? } else { return None };
    (!uuid.is_nil() && !uuid.is_max()).then_some(uuid)
}

/// Returns whether `text` is a valid value of the option `system_uuid`.
pub fn is_valid(text: &str) -> bool {
    read(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "11111111-2222-3333-4444-555555555555";
    const TWO: &str = "66666666-7777-8888-9999-aaaaaaaaaaaa";

    #[test]
    fn uuids_are_compared_as_numbers() {
        assert!(same("33221100-5544-7766-8899-aabbccddeeff", "00112233-4455-6677-8899-AABBCCDDEEFF"));
        assert!(same("00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"));
        assert!(!same(ONE, TWO));
        assert!(same("urn:uuid:00112233-4455-6677-8899-aabbccddeeff", "0-0112233445566778899aabbccddeeff "));
        assert!(!same("00112233-4455-6677-8899-aabbccddeeff", "00112233-4455-6677-9988-aabbccddeeff"));
        assert!(!same("Node1", "Node1"), "what is no UUID proves nothing");
        for text in ["{00112233-4455-6677-8899-aabbccddeeff}", "00112233-4455-6677-8899-aabbccddeef", "\u{e9}"] {
            assert!(!is_valid(text), "{text}");
        }
        for blank in ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-FFFFFFFFFFFF"] {
            assert!(!same(blank, blank), "a blank UUID proves nothing");
        }
        assert!(is_valid(ONE) && !is_valid("x"));
    }
}
