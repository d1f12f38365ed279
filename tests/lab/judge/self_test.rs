//! The lab's self-test: it shows that the checks of the agents can fail. It needs neither root nor a lab.

use std::time::Duration;

use crate::host::node::Node;
use crate::host::state;
use crate::host::vm;
use crate::judge::check;
use crate::judge::history::{self, Ack, Header, Store};
use crate::judge::journals;
use crate::judge::results;
use crate::judge::verdict::{self, End, Findings, Records};
use crate::load::chain::{self, ChainStep, Deed, Link};
use crate::power_cuts;
use crate::sh::Result;

type Check = (&'static str, fn() -> bool);

const CHECKS: &[Check] = &[
    ("a missing key is a lost write", lost_is_seen),
    ("a key that is there at another revision is a lost write", at_another_revision),
    ("one history is no fork", one_history),
    ("the same revision twice is a fork", same_revision),
    ("a revision that goes back is a fork", goes_back),
    ("a term that goes back is a fork", term_goes_back),
    ("two clusters are a fork", two_clusters),
    ("a second history that begins above the first is a fork", begins_above),
    ("another write at a write's revision is a fork", revision_is_taken),
    ("a loss is no fork where nobody else went on", only_lost),
    ("writes at the same time may finish in any order", concurrent),
    ("a read that sees less than was acknowledged before is stale", stale_read),
    ("a chain that nobody answered for is none the worse", good_chain),
    ("a stale read of the chain is seen", stale_chain),
    ("a chain with a hole is seen", hole),
    ("an update that another one undid is seen", lost_update),
    ("a chain that ends before its newest link is seen", short_chain),
    ("what nobody put is seen", stranger),
    ("a link on an older one than the last is seen", misplaced),
    ("an update that is put back in time is seen", late_update),
    ("what was given up by name is not lost", given_up),
    ("two histories in what was given up are seen", fork_in_what_was_given_up),
    ("a loss before what was given up is seen", lost_before_it),
    ("the longest gap counts the edges", gap),
    ("time stamps are dates", stamps),
    ("what does not hold is refused, and what is there is told", refuses),
    ("what comes to be is waited for, and no longer than the limit", waits),
    ("an error that nobody expects is told from what is known", journals::tells_errors_from_the_rest),
    ("the file of results keeps the rows of other runs", results::keeps_the_rows_of_other_runs),
    ("every way to swap a data dir is drawn, the same one for the same seed", power_cuts::draws_every_swap),
    ("a log that an older one is the beginning of is told from any other", power_cuts::tells_logs_apart),
    ("a disk that loses power has what was flushed, and not all that was not", vm::nbd::loses_what_was_not_flushed),
    ("a reset is told from the rest that QEMU reports", vm::qmp::knows_a_reset),
];

/// Runs all checks of the self-test, and fails if one of them does.
pub fn run() -> Result<()> {
    let failed: Vec<&str> = CHECKS.iter().filter(|(_, check)| !check()).map(|(name, _)| *name).collect();
    println!("self-test: {} passed, {} failed", CHECKS.len() - failed.len(), failed.len());
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ").into()) }
}

/// Returns an acknowledged write. Its ids are those of a cluster of two members that never changed.
fn ack(node: Node, key: &str, began: u64, ended: u64, revision: i64) -> Ack {
    let ms = Duration::from_millis;
    Ack { key: key.to_owned(), began: ms(began), ended: ms(ended), node, said: header(node, revision) }
}

fn header(node: Node, revision: i64) -> Header {
    Header { revision, term: 2, cluster: 7, member: u64::from(node.number()) }
}

fn store(keys: &[(&str, i64)]) -> Store {
    Store { keys: keys.iter().map(|(key, revision)| ((*key).to_owned(), *revision)).collect(), cluster: 7 }
}

fn lost_is_seen() -> bool {
    let acks = [ack(Node::One, "a", 0, 1, 2), ack(Node::One, "b", 2, 3, 3)];
    let lost = history::lost(&acks, &store(&[("a", 2)])).into_iter().map(|ack| ack.key.as_str()).collect::<Vec<_>>();
    lost == ["b"]
}

/// Returns whether an acknowledged write counts as lost if the store has its key only at another revision. An earlier
/// request that etcd applied without a response may have put it there.
fn at_another_revision() -> bool {
    let acks = [ack(Node::Two, "k7", 0, 1, 107)];
    history::lost(&acks, &store(&[("k7", 108)])).len() == 1 && history::lost(&acks, &store(&[("k7", 107)])).is_empty()
}

fn one_history() -> bool {
    let acks = [ack(Node::One, "a", 0, 5, 2), ack(Node::Two, "b", 6, 9, 3), ack(Node::One, "c", 10, 12, 7)];
    let there = store(&[("a", 2), ("b", 3), ("c", 7)]);
    history::forks(&acks, &[]).is_empty() && history::beside(&acks, &there).is_empty()
}

fn same_revision() -> bool {
    history::forks(&[ack(Node::One, "a", 0, 5, 2), ack(Node::Two, "b", 1, 9, 2)], &[]).len() == 1
}

fn goes_back() -> bool {
    history::forks(&[ack(Node::One, "a", 0, 5, 8), ack(Node::Two, "b", 6, 9, 7)], &[]).len() == 1
}

fn term_goes_back() -> bool {
    let mut older = ack(Node::Two, "b", 6, 9, 9);
    older.said.term = 1;
    history::forks(&[ack(Node::One, "a", 0, 5, 8), older], &[]).len() == 1
}

fn two_clusters() -> bool {
    let mut other = ack(Node::Two, "b", 6, 9, 9);
    other.said.cluster = 8;
    let acks = [ack(Node::One, "a", 0, 5, 8), other];
    history::forks(&acks, &[]).len() == 1 && history::beside(&acks, &store(&[("a", 8), ("b", 9)])).len() == 1
}

/// Returns whether a second history is detected if no revision repeats or goes back, but the end of the first history
/// is missing.
fn begins_above() -> bool {
    let acks = [ack(Node::One, "a", 0, 1, 101), ack(Node::One, "b", 2, 3, 102), ack(Node::Two, "c", 4, 5, 160)];
    history::forks(&acks, &[]).is_empty() && history::beside(&acks, &store(&[("c", 160)])).len() == 2
}

fn revision_is_taken() -> bool {
    history::beside(&[ack(Node::One, "a", 0, 1, 101)], &store(&[("tried", 101)])).len() == 1
}

fn only_lost() -> bool {
    let acks = [ack(Node::One, "a", 0, 1, 101), ack(Node::One, "b", 2, 3, 102)];
    let there = store(&[("a", 101)]);
    history::beside(&acks, &there).is_empty() && history::lost(&acks, &there).len() == 1
}

fn concurrent() -> bool {
    history::forks(&[ack(Node::One, "a", 0, 5, 8), ack(Node::Two, "b", 4, 9, 7)], &[]).is_empty()
}

fn stale_read() -> bool {
    let writes = [ack(Node::One, "a", 0, 5, 8)];
    let read = |revision| history::forks(&writes, &[ack(Node::Two, "a read", 6, 7, revision)]).len();
    read(7) == 1 && read(8) == 0 && read(9) == 0
}

fn link(number: u64, author: &str, revision: i64) -> Link {
    Link { number, author: author.to_owned(), revision }
}

/// Returns records of requests to the shared counter with the responses `deeds`. The requests begin ten milliseconds
/// apart.
fn steps(deeds: Vec<(Node, Deed)>) -> Vec<ChainStep> {
    let at = |place: usize, ms: u64| Duration::from_millis(10 * u64::try_from(place).unwrap_or(0) + ms);
    let step = |(place, (node, deed))| ChainStep { began: at(place, 0), ended: at(place, 5), node, deed };
    deeds.into_iter().enumerate().map(step).collect()
}

fn swapped(node: Node, number: u64, revision: i64, onto: i64) -> (Node, Deed) {
    (node, Deed::Swapped { link: link(number, node.name(), revision), onto, said: header(node, revision) })
}

fn tried(node: Node, number: u64) -> (Node, Deed) {
    (node, Deed::Tried { number, author: node.name().to_owned() })
}

fn read(node: Node, link: Link, revision: i64) -> (Node, Deed) {
    (node, Deed::Read { link, said: header(node, revision) })
}

/// Returns the faults that the judge finds in responses of the shared counter.
fn wrong(deeds: Vec<(Node, Deed)>, end: &Link) -> Vec<String> {
    chain::faults(&steps(deeds), Some(end))
}

fn is_only(faults: &[String], words: &str) -> bool {
    faults.len() == 1 && faults.iter().all(|fault| fault.starts_with(words))
}

fn good_chain() -> bool {
    let (one, two) = (Node::One, Node::Two);
    let deeds = vec![
        read(one, Link::none(), 1),
        swapped(one, 1, 2, 0),
        tried(two, 2),
        tried(one, 2),
        read(one, link(2, "node2", 5), 7),
        swapped(one, 3, 8, 5),
        tried(two, 4),
    ];
    wrong(deeds.clone(), &link(3, "node1", 8)).is_empty() && wrong(deeds, &link(4, "node2", 9)).is_empty()
}

fn stale_chain() -> bool {
    let (one, two) = (Node::One, Node::Two);
    let deeds = vec![swapped(one, 1, 2, 0), swapped(one, 2, 3, 2), read(two, link(1, "node1", 2), 2)];
    is_only(&wrong(deeds, &link(2, "node1", 3)), "a stale read on node2")
}

fn hole() -> bool {
    let one = Node::One;
    let deeds = vec![swapped(one, 1, 2, 0), swapped(one, 2, 3, 2), swapped(one, 4, 5, 4)];
    is_only(&wrong(deeds, &link(4, "node1", 5)), "the chain has a hole: nobody put 3")
}

/// Returns whether a lost update of the shared counter is detected if both clients' writes got the same revision.
/// That happens if two nodes continue independently from one revision. The two values then differ only in their
/// author.
fn lost_update() -> bool {
    let (one, two) = (Node::One, Node::Two);
    let deeds = vec![swapped(one, 1, 2, 0), swapped(one, 2, 3, 2), swapped(two, 2, 3, 2)];
    wrong(deeds, &link(2, "node2", 3)).iter().any(|fault| fault.starts_with("an update was lost: there are two"))
}

fn short_chain() -> bool {
    let deeds = vec![swapped(Node::One, 1, 2, 0), swapped(Node::One, 2, 3, 2)];
    is_only(&wrong(deeds, &link(1, "node1", 2)), "an update was lost: 2 by node1")
}

fn stranger() -> bool {
    let deeds = vec![swapped(Node::One, 1, 2, 0), tried(Node::One, 2)];
    is_only(&wrong(deeds, &link(2, "node2", 3)), "nobody wrote 2 by node2")
}

fn misplaced() -> bool {
    let deeds = vec![swapped(Node::One, 1, 3, 0), swapped(Node::One, 2, 4, 2)];
    is_only(&wrong(deeds, &link(2, "node1", 4)), "2 by node1 at revision 4 was put onto revision 2")
}

fn late_update() -> bool {
    let (one, two) = (Node::One, Node::Two);
    let deeds = vec![swapped(one, 1, 2, 0), tried(one, 2), read(one, link(2, "node1", 3), 3), swapped(two, 2, 3, 2)];
    wrong(deeds, &link(2, "node1", 3)).iter().any(|fault| fault.starts_with("an update on node2 from the past"))
}

/// Judges an example of a run, which ends with the store `there` and contains the further write `more`. Both nodes serve until 10 ms. Then
/// node 2 runs standalone until 30 ms, and an operator gives node 2's writes up. After that, node 1 continues from its own data.
fn judged(more: Ack, there: &[(&str, i64)]) -> Findings {
    let mut writes =
        vec![ack(Node::Two, "before", 0, 5, 2), ack(Node::Two, "alone", 15, 16, 3), ack(Node::One, "after", 40, 41, 3)];
    writes.push(more);
    let ms = Duration::from_millis;
    let records = Records { writes, ..Records::default() };
    let end = End { store: store(there), link: Link::none() };
    verdict::findings(&records, Some((ms(10), ms(30))), &[end])
}

const THERE: [(&str, i64); 3] = [("before", 2), ("after", 3), ("late", 4)];

fn given_up() -> bool {
    let found = judged(ack(Node::One, "late", 50, 51, 4), &THERE);
    found.lost.is_empty() && found.forks.is_empty()
}

fn fork_in_what_was_given_up() -> bool {
    let found = judged(ack(Node::One, "beside", 17, 18, 3), &THERE);
    found.lost.is_empty() && found.forks.len() == 1
}

fn lost_before_it() -> bool {
    let found = judged(ack(Node::One, "late", 50, 51, 4), &THERE[1..]);
    found.lost.len() == 1 && found.lost[0].key == "before"
}

fn gap() -> bool {
    let ms = Duration::from_millis;
    let acks = [ack(Node::One, "a", 0, 100, 2), ack(Node::One, "b", 100, 400, 3)];
    history::longest_gap(&acks, ms(0), ms(1000)) == (ms(600), ms(400))
        && history::longest_beside(&acks, ms(0), ms(1000), &[(ms(500), ms(900)), (ms(1100), ms(1200))])
            == (ms(300), ms(100))
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
