//! The lab's own checks: that what judges the agents is able to say no. Needs neither root nor a lab.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::check;
use crate::history::{self, Ack};
use crate::node::Node;
use crate::sh::Result;
use crate::state;

type Check = (&'static str, fn() -> bool);

const CHECKS: &[Check] = &[
    ("a missing key is a lost write", lost_is_seen),
    ("one history is no fork", one_history),
    ("the same revision twice is a fork", same_revision),
    ("a revision that goes back is a fork", goes_back),
    ("writes at the same time may finish in any order", concurrent),
    ("the longest gap counts the edges", gap),
    ("time stamps are dates", stamps),
    ("what does not hold is refused, and what is there is told", refuses),
    ("what comes to be is waited for, and no longer than the limit", waits),
];

/// Runs them all.
pub fn run() -> Result<()> {
    let failed: Vec<&str> = CHECKS.iter().filter(|(_, check)| !check()).map(|(name, _)| *name).collect();
    println!("self-test: {} passed, {} failed", CHECKS.len() - failed.len(), failed.len());
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ").into()) }
}

fn ack(node: Node, key: &str, began: u64, ended: u64, revision: i64) -> Ack {
    let ms = Duration::from_millis;
    Ack { key: key.to_owned(), began: ms(began), ended: ms(ended), node, revision, term: 2 }
}

fn lost_is_seen() -> bool {
    let acks = [ack(Node::One, "a", 0, 1, 2), ack(Node::One, "b", 2, 3, 3)];
    let present = BTreeSet::from(["a".to_owned()]);
    let lost = history::lost(&acks, &present);
    lost.len() == 1 && lost[0].key == "b"
}

fn one_history() -> bool {
    history::forks(&[ack(Node::One, "a", 0, 5, 2), ack(Node::Two, "b", 6, 9, 3), ack(Node::One, "c", 10, 12, 7)])
        .is_empty()
}

fn same_revision() -> bool {
    history::forks(&[ack(Node::One, "a", 0, 5, 2), ack(Node::Two, "b", 1, 9, 2)]).len() == 1
}

fn goes_back() -> bool {
    history::forks(&[ack(Node::One, "a", 0, 5, 8), ack(Node::Two, "b", 6, 9, 7)]).len() == 1
}

fn concurrent() -> bool {
    history::forks(&[ack(Node::One, "a", 0, 5, 8), ack(Node::Two, "b", 4, 9, 7)]).is_empty()
}

fn gap() -> bool {
    let ms = Duration::from_millis;
    let acks = [ack(Node::One, "a", 0, 100, 2), ack(Node::One, "b", 100, 400, 3)];
    history::longest_gap(&acks, ms(0), ms(1000)) == (ms(600), ms(400))
}

fn stamps() -> bool {
    state::stamp(Duration::from_millis(951_827_696_789)) == "2000-02-29T12:34:56.789Z"
        && state::stamp(Duration::ZERO) == "1970-01-01T00:00:00.000Z"
}

fn refuses() -> bool {
    let told = |error: crate::sh::Error| error.to_string().ends_with("it is three: there is 4");
    check::must("it is three", 3, |seen| *seen == 3).is_ok()
        && check::must("it is three", 4, |seen| *seen == 3).is_err_and(told)
}

fn waits() -> bool {
    let mut asked = 0;
    let count = || {
        asked += 1;
        asked
    };
    let never = check::within(Duration::ZERO, "it is there", || "nothing", |seen| *seen == "it");
    check::eventually("it is three", count, |seen| *seen == 3).is_ok_and(|seen| seen == 3)
        && never.is_err_and(|error| error.to_string().ends_with("there is \"nothing\""))
}
