//! Any bytes as datagrams that a member of the group has sealed, and as the configuration of fencing-agent.

#![no_main]

#[path = "../../tests/fuzz/fencing_agent/cases.rs"]
mod cases;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    cases::datagrams(input);
    if let Ok(text) = std::str::from_utf8(input) {
        cases::configuration(text);
    }
});
