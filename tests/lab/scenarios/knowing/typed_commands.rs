//! Several states that `tandem status` reports, one after the other. Each printed command is typed in a shell on the
//! same host, and ends the state.

use std::time::Duration;

use super::super::steps;
use crate::cluster;
use crate::cluster::asked::{self, REDUNDANT, says};
use crate::cluster::collector;
use crate::cluster::etcd;
use crate::cluster::pacemaker;
use crate::cluster::typed;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::Result;

/// The two nodes of a healthy lab, by their roles in etcd.
#[derive(Clone, Copy)]
struct Pair {
    leader: Node,
    follower: Node,
}

/// A function that brings the lab into a state with a problem.
type Enter = fn(&Lab, Pair) -> Result<()>;

const STATES: &[(&str, Enter)] = &[
    ("cluster-maintenance", |lab, _| steps::maintenance(lab, true)),
    ("stonith-disabled", |lab, pair| by_pcs(lab, pair, "property set stonith-enabled=false")),
    ("node-standby", |lab, pair| steps::standby(lab, pair.follower, true)),
    ("node-maintenance", |lab, pair| by_pcs(lab, pair, &format!("node maintenance {}", pair.follower))),
    ("resource-unmanaged", |lab, pair| by_pcs(lab, pair, "resource unmanage etcd")),
    ("resource-banned", |lab, pair| by_pcs(lab, pair, &format!("resource ban etcd-clone {}", pair.follower))),
    // An operator's own constraint has an id of its own.
    ("resource-banned", |lab, pair| {
        by_pcs(lab, pair, &format!("constraint location etcd-clone avoids {}", pair.follower))
    }),
    ("resource-disabled", |lab, pair| by_pcs(lab, pair, "resource disable etcd")),
    ("no-backups", |lab, pair| {
        typed_on(lab, pair, "crm_resource --resource etcd --set-parameter max_backup_snapshots --parameter-value 0")
    }),
    ("primary-unknown", |lab, pair| {
        typed_on(lab, pair, "crm_resource --resource etcd --set-parameter configured_primary --parameter-value node9")
    }),
    ("failure-healed", |lab, pair| etcd::kill(lab, pair.follower)),
    ("resource-given-up", |lab, pair| {
        by_pcs(lab, pair, "resource meta etcd migration-threshold=1")?;
        etcd::kill(lab, pair.follower)
    }),
    ("stale-join-file", |lab, pair| {
        let old = "mkdir -p /etc/tandem && touch -d '2 days ago' /etc/tandem/node2.join";
        host::must(lab, pair.follower, &["sh", "-c", old])?;
        collector::collect(lab)
    }),
    // A third voter that no agent knows, and that never starts.
    ("more-voters", |lab, pair| {
        typed_on(lab, pair, "tandem etcdctl member add stranger --peer-urls=https://10.99.0.9:2380")
    }),
    ("fence-device-disabled", |lab, pair| by_pcs(lab, pair, &format!("stonith disable {}", device(pair)))),
    ("fence-device-unmanaged", |lab, pair| by_pcs(lab, pair, &format!("resource unmanage {}", device(pair)))),
    // The node left in good order, so that it is off without being fenced.
    ("node-offline", |lab, pair| {
        pacemaker::end(lab, pair.follower)?;
        steps::cut(lab, pair.follower)
    }),
];

/// The commands that are tested on a healthy pair, each with a text that it must print. They resolve no problem by themselves, or belong
/// to a problem that no scenario causes.
const ON_A_HEALTHY_PAIR: &[(&str, &str)] = &[
    ("attrd_updater --query --all --name tandem-collected", "host=\"node2\""),
    ("cibadmin --query", "<cib "),
    ("corosync-quorumtool -s", "Quorate:"),
    ("df -h /var/lib/etcd", "Mounted on"),
    ("openssl x509 -noout -enddate -in /etc/tandem/etcd.crt", "notAfter="),
    ("pcs property set load-threshold=1000%", ""),
    ("pcs resource cleanup etcd", ""),
    ("pcs status", "etcd-clone"),
    ("pcs stonith cleanup fence-node2", ""),
    ("pcs stonith history show node2", ""),
    ("podman exec etcd etcd --version", "etcd Version"),
    ("tandem --version", "tandem "),
    ("tandem certs show", "etcd.crt"),
    ("tandem etcdctl endpoint hashkv --cluster", "https://"),
    ("tandem explain", "decision"),
    ("tandem fencing check fence-node2", "fence-node2"),
    ("tandem member list", "node2"),
    ("tandem power status node2", "On"),
];
/// The exit code of `tandem fencing check` if the lab's fence devices work and it has advice about them.
const ADVICE: i32 = 3;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    on_a_healthy_pair(lab)?;
    for (id, enter) in STATES {
        let leader = etcd::wait_two_voters(lab, Duration::from_secs(120))?.leader;
        crate::cluster::redundant::wait(lab)?;
        let pair = Pair { leader, follower: leader.other() };
        enter(lab, pair)?;
        match *id {
            // The published state is old until the collector runs again.
            "stale-join-file" => mends_once_collected(lab, leader, id)?,
            _ => typed::mends(lab, leader, id)?,
        }
        if *id == "resource-given-up" {
            by_pcs(lab, pair, "resource meta etcd migration-threshold=60")?;
        }
        says(lab, leader, REDUNDANT, None)?;
    }
    let mut writers = super::super::writing(lab)?;
    super::super::ends_well(lab, &mut writers)
}

fn on_a_healthy_pair(lab: &Lab) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(120))?.leader;
    crate::cluster::redundant::wait(lab)?;
    collector::collect(lab)?;
    for (command, wanted) in ON_A_HEALTHY_PAIR {
        let (code, said) = typed::types(lab, leader, command)?;
        println!("   {command}: {code}");
        must(&format!("'{command}' works as typed"), (code, said), |(code, said)| {
            [0, ADVICE].contains(code) && said.contains(wanted)
        })?;
    }
    collector::forget(lab)
}

fn mends_once_collected(lab: &Lab, on: Node, id: &str) -> Result<()> {
    let command = typed::command_of(lab, on, id)?;
    println!("   {id}: {command}");
    let (code, said) = typed::types(lab, on, &command)?;
    must(&format!("'{command}' succeeds: {said}"), code, |code| *code == 0)?;
    collector::collect(lab)?;
    must(&format!("{id} is gone"), asked::ask(lab, on)?, |answer| !answer.names(id))?;
    collector::forget(lab)
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
