//! Any bytes as the fence agent's options: as lines on standard input, as words on the command line (one a line), and as
//! an address, a link and a fingerprint.

#![no_main]

#[allow(dead_code, reason = "the other target uses the rest")]
#[path = "../../tests/fuzz/fence/cases.rs"]
mod cases;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    cases::lines(input);
    let words: Vec<OsString> =
        input.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec())).collect();
    cases::words(&words);
    if let Ok(text) = std::str::from_utf8(input) {
        cases::text(text);
    }
});
