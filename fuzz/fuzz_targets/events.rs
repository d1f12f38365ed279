//! Any bytes as the files of events.

#![no_main]

#[path = "../../tests/fuzz/events/cases.rs"]
mod cases;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let directory = tempfile::tempdir().unwrap();
    cases::file(directory.path(), input);
});
