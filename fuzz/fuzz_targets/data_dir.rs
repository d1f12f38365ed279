//! Any bytes become a data dir, as in `tests/fuzz`, and reading it must end without a panic and without a
//! history that contradicts itself. Coverage leads the fuzzer; the address sanitizer and its limits watch memory.

#![no_main]

#[path = "../../tests/fuzz/data_dir/cases.rs"]
mod cases;
#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "../../tests/support/data_dir/writer.rs"]
mod writer;

use libfuzzer_sys::fuzz_target;
use tandem::adapters::data_dir::DataDir;

fuzz_target!(|input: &[u8]| {
    if let Ok(DataDir::Present(history)) = cases::data_dir(input).read() {
        assert!(history.commit_index <= history.last_index, "{history:?}");
        assert!(history.voters.is_disjoint(&history.learners), "{history:?}");
    }
});
