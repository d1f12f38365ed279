//! Any bytes as the body of a BMC's answer, read in every way that an answer is read.

#![no_main]

#[allow(dead_code, reason = "the other target uses the rest")]
#[path = "../../tests/fuzz/fence/cases.rs"]
mod cases;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| cases::body(input));
