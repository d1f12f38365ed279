//! The fakes for tests of a change's steps: node1 of a pair, an observation of that pair, and programs in the place of Pacemaker's tools
//! and pcs that record their calls. No etcd and no BMC answers.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::change::Change;
use super::facts::Look;
use super::work::Work;
use crate::adapters::command::{Programs, fake_program};
use crate::adapters::pacemaker::seen::{Configuration, Pacemaker};
use crate::agent::resource::context::{self, Context};
use crate::base::Fact;
use crate::decide::members::{Health, Member, Membership};
use crate::operate::cluster::Cluster;
use crate::operate::members::look::MembersSeen;
use crate::operate::members::order::Terms;
use crate::operate::members::source::Target;
use crate::operate::setup::cluster::parse_corosync;
use crate::operate::talk::fake_operator::Operator;

const PARAMETERS: [(&str, &str); 4] = [
    ("image", "etcd:test"),
    ("trusted_ca_file", "/nonexistent/ca.crt"),
    ("cert_file", "/nonexistent/etcd.crt"),
    ("key_file", "/nonexistent/etcd.key"),
];
/// Beginnings of the recorded calls that only read, and change nothing.
const ASKS: [&str; 2] = ["cibadmin --query", "crm_node --list"];

pub(super) struct Node1 {
    pub(super) dir: tempfile::TempDir,
}

impl Node1 {
    pub(super) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Creates fakes of pcs and Pacemaker's tools that record their calls. `cib` is the output of `cibadmin`. `crm_node --list` reports
    /// node3 and node9 as lost until it is asked to forget them.
    fn programs(&self, cib: &str) -> Programs {
        let cib = self.file("cib", cib);
        let remembers = "case $1 in --list) echo '1 node1 member'; for id in 3 9; do test -e forgotten-node$id || echo $id node$id \
                         lost; done;; --force) touch forgotten-$3;; esac";
        let asked = format!("cat {}", cib.display());
        let mut programs = Programs::default();
        for (name, answer) in [
            ("pcs", "true"),
            ("stonith_admin", "true"),
            ("crm_attribute", "true"),
            ("cibadmin", asked.as_str()),
            ("crm_node", remembers),
        ] {
            let script = format!("cd {}; echo {name} \"$@\" >> typed; {answer}; exit 0", self.dir.path().display());
            programs = fake_program(self.dir.path(), name, &script);
        }
        programs
    }

    pub(super) fn work(&self, change: Change, cib: &str) -> Work {
        Work::of_test(change, self.programs(cib), self.dir.path().join("token"))
    }

    /// Returns the calls recorded since the last time, without those that only read. Clears the record.
    pub(super) fn typed(&self) -> Vec<String> {
        let path = self.dir.path().join("typed");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        text.lines().filter(|line| !ASKS.iter().any(|asks| line.starts_with(asks))).map(str::to_owned).collect()
    }

    /// Returns an observation of a pair with two voters. `cluster` is Pacemaker's state, and Corosync has node1 and node2.
    pub(super) fn look(&self, cluster: Cluster) -> Look {
        let mut context = Context::of_test(self.dir.path(), &PARAMETERS);
        let nobody = crate::os::test_port::listener().local_addr().unwrap();
        context.own_endpoint = context::endpoint(nobody.ip(), nobody.port());
        context.peer_endpoint = Some(context.own_endpoint.clone());
        context.params.backup_location = self.dir.path().join("backup");
        context.params.kubeconfig = self.dir.path().join("no-kubeconfig");
        let corosync = parse_corosync(
            "nodelist {\n node {\n name: node1\n ring0_addr: 192.0.2.1\n }\n node {\n name: node2\n ring0_addr: 192.0.2.2\n }\n}\n",
        );
        Look::of_test(cluster, Ok(seen()), context, corosync)
    }
}

/// Returns an observation of the two healthy voters node1 and node2.
pub(super) fn seen() -> MembersSeen {
    let voter = |id: u64| Member {
        id,
        name: format!("node{id}"),
        node: Some(format!("node{id}")),
        peer_urls: vec![format!("https://192.0.2.{id}:2380")],
        health: Health::Yes,
        ..Member::default()
    };
    let membership = Membership {
        members: vec![voter(1), voter(2)],
        leader: Some(1),
        is_confirmed: true,
        wanted: 2,
        is_pair: true,
        promote_max_lag: 100,
        ..Membership::default()
    };
    MembersSeen {
        cluster_id: 1,
        lock: None,
        membership,
        details: std::collections::BTreeMap::default(),
        no_space: false,
        machines_unknown: None,
        wanted_unknown: None,
    }
}

/// Returns the Pacemaker state and the configuration of `cluster`. Panics if either is unknown.
pub(super) fn parts(cluster: &mut Cluster) -> (&mut Pacemaker, &mut Configuration) {
    match (&mut cluster.pacemaker, &mut cluster.configuration) {
        (Fact::Known(pacemaker), Fact::Known(configuration)) => (pacemaker, configuration),
        other => panic!("a healthy cluster is known: {other:?}"),
    }
}

/// A fake operator that answers every question with 'yes'.
pub(super) const YES: Operator = Operator { yes: true, confirm: None };

/// Returns the options of a member change for the tests: this node's pair, no dry run, a timeout of 30 min.
pub(super) fn terms() -> Terms {
    let target = Target::Pair { resource: None };
    Terms { target, dry_run: false, timeout: Duration::from_secs(1800) }
}
