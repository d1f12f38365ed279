//! A node that returns is cut repeatedly: when it has moved its old data aside, and when it receives the leader's
//! snapshot.

use std::time::Duration;

use super::{roles, two_voters};
use crate::cluster;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host::node::Node;
use crate::host::power;
use crate::host::state::Lab;
use crate::load::writer::{SIXTEEN, Writers};
use crate::scenarios::steps;
use crate::sh::{self, Result};

/// The moments at which a joining node loses power, each as a log line of the agent or of the new etcd, and the time
/// after it.
const MOMENTS: [(&str, Duration); 3] = [
    ("the data dir is kept as", Duration::ZERO),
    ("container 'etcd' is", Duration::from_secs(1)),
    ("receiving database snapshot", Duration::ZERO),
];

/// The agent parameter with which a learner needs the leader's snapshot. The learner must also miss more entries than
/// etcd keeps for slow followers (5,000).
const SETTINGS: &str = "etcd_settings=snapshot-count=100";
const ENTRIES: usize = 5_300;

pub fn cut_again(lab: &Lab, _: Wish) -> Result<()> {
    pcs::run_and_wait(lab, Node::One, &["resource", "update", cluster::ETCD, SETTINGS])?;
    two_voters(lab)?;
    // The number of writers is high enough for that many entries in the time.
    let mut writers = Writers::start(lab, SIXTEEN)?;
    sh::wait_for("entries", Duration::from_secs(120), Duration::from_millis(300), || {
        (writers.count() > ENTRIES).then_some(())
    })?;
    let (stays, joins) = roles(lab)?;
    crate::cluster::redundant::wait(lab)?;
    power::cut(lab, joins)?;
    let mut from = steps::log_length(lab, joins);
    // A node that boots before its peer misses it is fenced as it comes up. It would still be a voter, and keep its
    // data.
    steps::wait_alone(lab, stays)?;
    for (words, after) in MOMENTS {
        // The survivor's fencing switches it on. Once there is nothing to fence, the operator does.
        power::on(lab, joins)?;
        steps::wait_said(lab, joins, from, words, Duration::from_secs(120))?;
        std::thread::sleep(after);
        power::cut(lab, joins)?;
        from = steps::log_length(lab, joins);
    }
    power::on(lab, joins)?;
    two_voters(lab)?;
    crate::scenarios::ends_well(lab, &mut writers)?;
    pcs::run_and_wait(lab, Node::One, &["resource", "update", cluster::ETCD, "etcd_settings="])?;
    two_voters(lab)
}
