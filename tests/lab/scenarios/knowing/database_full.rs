//! The database reaches its quota, and etcd takes no writes. The command that `tandem status` prints, typed as printed,
//! makes room on both members, and writes are taken again. etcdctl runs in the container on one node, and from the
//! package on the other.

use std::time::Duration;

use super::super::steps;
use crate::cluster::asked::{DOWN, REDUNDANT, says};
use crate::cluster::etcd;
use crate::cluster::typed;
use crate::cluster::up::Wish;
use crate::cluster::{self, CloneKind};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::host::tls;
use crate::judge::check::must;
use crate::sh::Result;

/// etcd's setting for its quota, which sixteen values of a megabyte fill.
const QUOTA: &str = "quota-backend-bytes=16777216";
/// A script that writes values of a megabyte to one key until etcd accepts no more.
const FILL: &str = "for i in $(seq 40); do head -c 1000000 /dev/zero | tr '\\0' x | tandem etcdctl put lab/filler 2>&1 || exit $?; done";
/// The exit code of etcdctl and the error of etcd once the quota is used up.
const FULL: (i32, &str) = (1, "database space exceeded");
/// The command that copies etcdctl into a container of an etcd image without an etcdctl.
const PUT_INTO_THE_CONTAINER: &str = "podman cp /usr/bin/etcdctl etcd:/usr/bin/etcdctl";
/// The text that `tandem space --reclaim` prints after it has defragmented a member.
const DEFRAGMENTED: &str = ": defragmented";
const SAID: &str = "/tmp/reclaimed";
const COPY: &str = "/tmp/typed.db";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    cluster::create_etcd_with(lab, NODES[0], CloneKind::Plain, &[("etcd_settings", QUOTA)], false)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    let [inside, outside] = NODES;
    host::must(lab, inside, &["sh", "-c", PUT_INTO_THE_CONTAINER])?;
    for node in NODES {
        must("there is room", typed(lab, node, "tandem space")?, |(code, _)| *code == 0)?;
    }
    let filled = typed(lab, outside, FILL)?;
    must("etcd is full, and etcdctl's exit code is passed on", filled, |(code, said)| {
        *code == FULL.0 && said.contains(FULL.1)
    })?;
    lab.event("the database is full");
    says(lab, inside, DOWN, Some("alarm-nospace"))?;
    must("the answer is the worst", typed(lab, outside, "tandem space")?, |(code, said)| {
        *code == 4 && said.contains("NOSPACE")
    })?;
    killed_midway(lab, inside)?;
    typed::mends(lab, inside, "alarm-nospace")?;
    for node in NODES {
        let put = format!("tandem etcdctl put lab/after {node}");
        must("a write is taken", typed(lab, node, &put)?, |(code, said)| *code == 0 && said.contains("OK"))?;
        must("there is room again", typed(lab, node, "tandem space")?, |(code, said)| {
            *code == 0 && !said.contains("NOSPACE")
        })?;
        let shown = typed(lab, node, "tandem etcdctl endpoint status --cluster")?;
        must("both members are shown", shown, |(code, said)| *code == 0 && said.matches("https://").count() == 2)?;
        says(lab, node, REDUNDANT, None)?;
    }
    must("nothing is left to do", typed(lab, outside, "tandem space --reclaim")?, |(code, _)| *code == 0)?;
    with_auth(lab, outside)?;
    where_it_runs(lab, inside, outside)?;
    without_its_own(lab, outside)?;
    let mut writers = super::super::writing(lab)?;
    super::super::ends_well(lab, &mut writers)
}

/// Runs `tandem space --reclaim` in the background, and kills it once it has printed `words`. Returns all of its
/// output.
fn killed_after(lab: &Lab, on: Node, words: &str) -> Result<String> {
    let line = format!(
        "tandem space --reclaim > {SAID} 2>&1 & for i in $(seq 600); do grep -q '{words}' {SAID} && break; sleep 0.1; done; \
         kill -KILL $!; wait $!; code=$?; cat {SAID}; exit $code"
    );
    must(&format!("it is killed after '{words}'"), typed(lab, on, &line)?, |(code, said)| {
        *code == 137 && said.contains(words)
    })
    .map(|(_, said)| said)
}

/// Kills `tandem space --reclaim` between the two members. One database must be small again, and the alarm must stay.
fn killed_midway(lab: &Lab, on: Node) -> Result<()> {
    let said = killed_after(lab, on, DEFRAGMENTED)?;
    must("one member was defragmented", said, |said| said.matches(DEFRAGMENTED).count() == 1)?;
    says(lab, on, DOWN, Some("alarm-nospace"))
}

/// Runs `tandem space --reclaim` while etcd's authentication is enabled, with the agent's certificate as the user.
/// Without an alarm the command holds a lock. After a kill the lock stays until its lease ends.
fn with_auth(lab: &Lab, on: Node) -> Result<()> {
    let etcdctl = |words: &str| {
        must(words, typed(lab, on, &format!("tandem etcdctl {words}"))?, |(code, _)| *code == 0).map(drop)
    };
    etcdctl("role add root")?;
    for user in NODES.map(tls::etcd_name).iter().map(String::as_str).chain(["root"]) {
        etcdctl(&format!("user add {user} --no-password"))?;
        etcdctl(&format!("user grant-role {user} root"))?;
    }
    etcdctl("auth enable")?;
    lab.event("authentication is switched on");
    killed_after(lab, on, "compacted: ")?;
    let again = typed(lab, on, "tandem space --reclaim")?;
    must("typed again, it waits for the lock and continues", again, |(code, said)| {
        *code == 0 && said.contains("lock of the one that was killed") && said.contains("compacted: ")
    })?;
    must("it is seen with auth, too", typed(lab, on, "tandem space")?, |(code, said)| {
        *code == 0 && said.matches("% of its quota").count() == 2
    })?;
    etcdctl("auth disable")
}

/// Checks where `tandem etcdctl` runs on two nodes. If it runs in the container, a file that it writes is in there,
/// and not on the node.
fn where_it_runs(lab: &Lab, inside: Node, outside: Node) -> Result<()> {
    for (node, is_here) in [(inside, false), (outside, true)] {
        let save = format!("rm -f {COPY}; tandem etcdctl snapshot save {COPY}");
        must("a snapshot is saved", typed(lab, node, &save)?, |(code, _)| *code == 0)?;
        let (code, _) = typed(lab, node, &format!("test -e {COPY}"))?;
        must(&format!("etcdctl ran in the container of {inside} alone, not of {node}"), code == 0, |found| {
            *found == is_here
        })?;
    }
    Ok(())
}

/// Checks that `tandem etcdctl` connects to the peer's etcd while the node's own does not run.
fn without_its_own(lab: &Lab, node: Node) -> Result<()> {
    steps::standby(lab, node, true)?;
    steps::wait_stopped(lab, &[node])?;
    let shown = typed(lab, node, "tandem etcdctl endpoint health")?;
    must("the peer's etcd is asked", shown, |(code, said)| *code == 0 && said.contains(&node.other().endpoint()))?;
    typed::mends(lab, node.other(), "node-standby")
}

fn typed(lab: &Lab, node: Node, line: &str) -> Result<(i32, String)> {
    host::typed(lab, node, &format!("({line})"))
}
