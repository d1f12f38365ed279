//! Larger groups, and halves: `make nightly`.

use crate::cluster::must_feed_by_quorum;
use crate::namespaces;

#[test]
#[ignore = "a minute: make nightly"]
fn of_ten_the_six_are_fed_and_the_four_are_not() {
    namespaces::run(module_path!(), "of_ten_the_six_are_fed_and_the_four_are_not", 120, || {
        must_feed_by_quorum(10, 4, true);
    });
}

#[test]
#[ignore = "half a minute: make nightly"]
fn of_four_no_half_is_fed() {
    namespaces::run(module_path!(), "of_four_no_half_is_fed", 120, || must_feed_by_quorum(4, 2, false));
}
