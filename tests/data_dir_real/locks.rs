//! `tandem release-locks` as Pacemaker calls it, on real etcds: it ends the fenced node's own leases, and no others.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use etcd_client::{GetOptions, Permission, PermissionType, PutOptions};
use serde_json::Value;
use tandem::adapters::etcd::blocking;
use tandem::adapters::etcd::client::{Credentials, Endpoint};

use crate::auth::{Administrator, TIMEOUT, USER, certificates, serve};
use crate::each_version;
use crate::etcd::until;

/// The time to live of the test's leases, in seconds. It is much longer than the test, so a lease that is gone must
/// have been revoked.
const TTL: i64 = 3600;
const ALERT: [(&str, &str); 4] = [
    ("CRM_alert_kind", "fencing"),
    ("CRM_alert_desc", "Operation reboot of node1 by node2 for pacemaker-controld.37@node2: OK (ref=c056)"),
    ("CRM_alert_rc", "0"),
    ("CRM_alert_node", "node1"),
];
const SWITCHED_ON: &str = "Operation on of node1 by node2 for pacemaker-controld.37@node2: OK (ref=c056)";

#[expect(clippy::disallowed_methods, reason = "the test starts the binary as Pacemaker would")]
fn alert(urls: &str, credentials: &Credentials, more: &[(&str, &str)]) -> Output {
    let file = |path: &Path| path.display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.args(["release-locks", "--json"]).env_clear().envs(ALERT).env("prefix", "/service/");
    command.env("endpoints", urls).env("trusted_ca_file", file(&credentials.trusted_ca_file));
    command.env("cert_file", file(&credentials.cert_file)).env("key_file", file(&credentials.key_file));
    command.envs(more.iter().copied()).output().unwrap()
}

/// Returns the keys of each lease in the list `list` of the output of `tandem release-locks --json`.
fn told(output: &Output, list: &str) -> Vec<Vec<String>> {
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let leases = answer[list].as_array().unwrap().iter();
    let mut told: Vec<Vec<String>> =
        leases.map(|lease| serde_json::from_value(lease["own"].clone()).unwrap()).collect();
    told.sort();
    told
}

fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

impl Administrator {
    /// Puts these keys and values, all with the same new lease.
    fn puts(&mut self, pairs: &[(&str, &str)]) {
        let Self { runtime, client } = self;
        runtime.block_on(async {
            let lease = client.lease_grant(TTL, None).await.unwrap().id();
            for (key, value) in pairs {
                client.put(*key, *value, Some(PutOptions::new().with_lease(lease))).await.unwrap();
            }
        });
    }

    fn puts_without_lease(&mut self, key: &str, value: &str) {
        self.runtime.block_on(self.client.put(key, value, None)).unwrap();
    }

    fn has(&mut self, key: &str) -> bool {
        let options = GetOptions::new().with_count_only();
        self.runtime.block_on(self.client.get(key, Some(options))).unwrap().count() == 1
    }

    fn grants_the_agents_user_the_locks(&mut self) {
        let Self { runtime, client } = self;
        let locks = Permission::new(PermissionType::Readwrite, "/service/").with_prefix();
        runtime.block_on(client.role_add("locks")).unwrap();
        runtime.block_on(client.role_grant_permission("locks", locks)).unwrap();
        runtime.block_on(client.user_grant_role(USER, "locks")).unwrap();
    }
}

fn wait_until_it_serves(endpoint: &Endpoint, credentials: &Credentials) {
    until("etcd to serve", || {
        let seen = blocking::observe(endpoint, credentials, TIMEOUT);
        seen.etcd.known().filter(|etcd| etcd.leader.is_some()).map(drop)
    });
}

#[test]
fn a_fenced_nodes_own_leases_are_revoked_and_no_others() {
    each_version(|version, root| {
        let (agent, _) = certificates(root);
        let (_etcd, endpoint) = serve(version, root, &agent);
        wait_until_it_serves(&endpoint, &agent);
        let mut keys = Administrator::new(&endpoint, &agent, None);
        // More than a page of keys precedes the relevant ones.
        for number in 0..1100 {
            keys.puts_without_lease(&format!("/service/a/{number}"), "node1");
        }
        let patroni = [("/service/db/leader", "node1"), ("/service/db/members/node1", "{\"role\":\"master\"}")];
        keys.puts(&patroni);
        keys.puts(&[("/service/only", "node1")]);
        let others: [&[(&str, &str)]; 6] = [
            &[("/service/held", "node1"), ("/service/anothers", "node2")],
            &[("/service/reaches-out", "node1"), ("/elsewhere/node1", "node1")],
            &[("/service/db2/leader", "node2"), ("/service/db2/members/node2", "")],
            &[("/service/db3/leader", "node10"), ("/service/db3/members/node10", "")],
            &[("/services/leader", "node1")],
            &[("/service/json", "{\"node\":\"node1\"}")],
        ];
        for pairs in others {
            keys.puts(pairs);
        }
        // This is the dead machine's endpoint, which does not answer.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let urls = format!("https://{},{}", silent.local_addr().unwrap(), endpoint.url);

        let output = alert(&urls, &agent, &[]);
        assert_eq!(told(&output, "revoked"), [["/service/only"]]);
        assert_eq!(told(&output, "left"), [["/service/db/leader"], ["/service/held"], ["/service/reaches-out"]]);
        let output = alert(&urls, &agent, &[("match", "name")]);
        assert_eq!(told(&output, "revoked"), Vec::<Vec<String>>::new());
        assert_eq!(told(&output, "left"), [["/service/db/members/node1"]]);
        for (name, value) in [("CRM_alert_desc", SWITCHED_ON), ("CRM_alert_rc", "1"), ("CRM_alert_kind", "node")] {
            let output = alert("nonsense", &agent, &[("match", "either"), (name, value)]);
            assert_eq!((told(&output, "revoked").len(), told(&output, "left").len()), (0, 0), "{name}");
        }
        assert!(patroni.iter().all(|(key, _)| keys.has(key)));
        let output = alert(&urls, &agent, &[("match", "either")]);
        assert_eq!(told(&output, "revoked"), [patroni.map(|(key, _)| key)]);
        assert!(!patroni.iter().any(|(key, _)| keys.has(key)) && !keys.has("/service/only"));
        for (key, _) in others.concat() {
            assert!(keys.has(key), "{key}");
        }
        assert!(keys.has("/service/a/7"), "what hangs on no lease is nobody's lock");
    });
}

#[test]
fn it_ends_in_time_where_nobody_can_write_and_says_what_is_not_allowed() {
    each_version(|version, root| {
        let (agent, nameless) = certificates(root);
        let (_etcd, endpoint) = serve(version, root, &agent);
        wait_until_it_serves(&endpoint, &agent);
        let mut keys = Administrator::new(&endpoint, &nameless, None);
        keys.puts(&[("/service/only", "node1")]);
        keys.puts(&[("/service/reaches-out", "node1"), ("/elsewhere/node1", "node1")]);
        keys.switches_auth_on();
        let mut root_user = Administrator::new(&endpoint, &nameless, Some(("root", "secret")));
        root_user.makes_the_agents_user();
        let refused = complaint(&alert(&endpoint.url, &agent, &[]));
        let remedy = "tandem: 'tandem etcdctl role grant-permission ROLE readwrite /service/ --prefix' for the user etcd-node1: ";
        assert!(refused.starts_with(remedy) && refused.ends_with("says 'etcdserver: permission denied'"), "{refused}");
        root_user.grants_the_agents_user_the_locks();
        let output = alert(&endpoint.url, &agent, &[]);
        assert_eq!(told(&output, "revoked"), [["/service/only"]]);
        assert_eq!(told(&output, "left"), [["/service/reaches-out"]]);

        root_user.adds_a_voter_that_is_not_there();
        let began = Instant::now();
        let late = complaint(&alert(&endpoint.url, &agent, &[("timeout", "3")]));
        assert!(late.starts_with("tandem: node1's leases are left to end by themselves after 3 s: "), "{late}");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    });
}
