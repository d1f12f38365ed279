//! Larger groups, halves, and a single node that is cut off: `make nightly`.

use std::thread::sleep;
use std::time::Duration;

use crate::cluster::{Cluster, Node};
use crate::namespaces;

/// Cuts `minority` hosts off from the rest of `count` hosts. Asserts that the cut-off hosts are not fed, and that the other hosts are fed
/// exactly if `majority_is_fed` is true.
fn cut(count: usize, minority: usize, majority_is_fed: bool) {
    let mut cluster = Cluster::new(count, 1, "", "");
    cluster.nodes.iter().for_each(Node::leave_running);
    cluster.start_all();
    for node in &mut cluster.nodes {
        node.must_be_fed();
    }
    let all: Vec<usize> = (0..count).collect();
    cluster.must_reach(&all, u64::try_from(count).unwrap());
    let (off, rest) = all.split_at(minority);
    cluster.cut(0, off);
    // The window of ten members is 4 s.
    sleep(Duration::from_secs(6));
    cluster.nodes.iter_mut().for_each(|node| drop(node.bytes()));
    sleep(Duration::from_secs(3));
    for at in off {
        assert_eq!(cluster.nodes[*at].bytes(), b"", "{}", cluster.nodes[*at].log());
    }
    for at in rest {
        assert_eq!(!cluster.nodes[*at].bytes().is_empty(), majority_is_fed, "{}", cluster.nodes[*at].log());
    }
    cluster.heal(0, off);
    for node in &mut cluster.nodes {
        node.must_be_fed();
    }
}

#[test]
#[ignore = "a minute: make nightly"]
fn of_ten_the_six_are_fed_and_the_four_are_not() {
    namespaces::run(module_path!(), "of_ten_the_six_are_fed_and_the_four_are_not", 120, || cut(10, 4, true));
}

#[test]
#[ignore = "half a minute: make nightly"]
fn of_four_no_half_is_fed() {
    namespaces::run(module_path!(), "of_four_no_half_is_fed", 120, || cut(4, 2, false));
}

#[test]
#[ignore = "half a minute: make nightly"]
fn of_three_the_one_alone_is_not_fed() {
    namespaces::run(module_path!(), "of_three_the_one_alone_is_not_fed", 120, || cut(3, 1, true));
}
