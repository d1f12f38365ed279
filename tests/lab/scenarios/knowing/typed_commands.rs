//! A state after the other that `tandem status` names: what it prints is typed in a shell, as it is printed and where it is shown, and the
//! state is over.

use std::time::Duration;

use super::super::steps;
use crate::asked::{REDUNDANT, says};
use crate::cluster;
use crate::etcd;
use crate::host;
use crate::node::Node;
use crate::pacemaker;
use crate::sh::Result;
use crate::state::Lab;
use crate::typed;
use crate::up::Wish;

/// The two nodes of a healthy lab.
#[derive(Clone, Copy)]
struct Pair {
    leader: Node,
    follower: Node,
}

/// How a state is entered.
type Enter = fn(&Lab, Pair) -> Result<()>;

const STATES: &[(&str, Enter)] = &[
    ("cluster-maintenance", |lab, _| steps::maintenance(lab, true)),
    ("stonith-disabled", |lab, pair| by_pcs(lab, pair, "property set stonith-enabled=false")),
    ("node-standby", |lab, pair| steps::standby(lab, pair.follower, true)),
    ("node-maintenance", |lab, pair| by_pcs(lab, pair, &format!("node maintenance {}", pair.follower))),
    ("resource-unmanaged", |lab, pair| by_pcs(lab, pair, "resource unmanage etcd")),
    ("resource-banned", |lab, pair| by_pcs(lab, pair, &format!("resource ban etcd-clone {}", pair.follower))),
    ("resource-disabled", |lab, pair| by_pcs(lab, pair, "resource disable etcd")),
    ("no-backups", |lab, pair| {
        typed_on(lab, pair, "crm_resource --resource etcd --set-parameter max_backup_snapshots --parameter-value 0")
    }),
    ("failure-healed", |lab, pair| etcd::kill(lab, pair.follower)),
    ("fence-device-disabled", |lab, pair| by_pcs(lab, pair, &format!("stonith disable {}", device(pair)))),
    ("fence-device-unmanaged", |lab, pair| by_pcs(lab, pair, &format!("resource unmanage {}", device(pair)))),
    // It left in good order, so that it is not fenced, and is off.
    ("node-offline", |lab, pair| {
        pacemaker::end(lab, pair.follower)?;
        steps::cut(lab, pair.follower)
    }),
];

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    for (id, enter) in STATES {
        let leader = etcd::wait_two_voters(lab, Duration::from_secs(120))?.leader;
        crate::redundant::wait(lab)?;
        let pair = Pair { leader, follower: leader.other() };
        enter(lab, pair)?;
        typed::mends(lab, leader, id)?;
        says(lab, leader, REDUNDANT, None)?;
    }
    let mut writers = super::super::writing(lab)?;
    super::super::ends_well(lab, &mut writers)
}

fn device(pair: Pair) -> String {
    cluster::fence_device(pair.follower)
}

fn by_pcs(lab: &Lab, pair: Pair, words: &str) -> Result<()> {
    typed_on(lab, pair, &format!("pcs {words}"))
}

fn typed_on(lab: &Lab, pair: Pair, line: &str) -> Result<()> {
    host::must(lab, pair.leader, &["sh", "-c", line]).map(drop)
}
