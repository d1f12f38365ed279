//! Any bytes become a data dir, as in `tests/fuzz`, and walking through its keys must end: without a panic, with revisions that
//! rise, and with no more changes than the database has bytes.

#![no_main]

#[path = "../../tests/fuzz/data_dir/cases.rs"]
mod cases;
#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "../../tests/support/data_dir/writer.rs"]
mod writer;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    cases::walk(&cases::data_dir(input));
});
