//! Tests of the threads against a fake API.

use std::net::TcpListener;

use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::adapters::kubernetes::kubeconfig;
use crate::adapters::kubernetes::nodes::stand_in::StandIn;
use crate::fencing_agent::config::Members;

struct Bench {
    api: StandIn,
    asked: Config,
    threads: Kubernetes,
    reports: UnboundedReceiver<Report>,
    _dir: tempfile::TempDir,
}

fn bench() -> Bench {
    let (dir, api) = (tempfile::tempdir().unwrap(), StandIn::start(TcpListener::bind("127.0.0.1:0").unwrap()));
    for (name, address) in [("node1", "192.0.2.1"), ("node2", "192.0.2.2"), ("node3", "192.0.2.3")] {
        api.put(name, &format!("uid-{name}"), address, "master");
    }
    let asked = Config {
        kubeconfig: Some(kubeconfig::for_server(&dir, &api.server)),
        pod: None,
        node: "node1".to_owned(),
        label: "node.deckhouse.io/group".to_owned(),
        group: "master".to_owned(),
        check_interval: Duration::from_millis(100),
        api_timeout: Duration::from_secs(5),
    };
    let (sender, reports) = unbounded_channel();
    let threads = Kubernetes::start(&asked, &sender).unwrap();
    Bench { api, asked, threads, reports, _dir: dir }
}

impl Bench {
    /// Waits for a report that `wanted` accepts. Ignores the others.
    fn until<T>(&mut self, wanted: impl Fn(Told) -> Option<T>) -> T {
        loop {
            match self.reports.blocking_recv() {
                Some(Report::Kubernetes(told)) => {
                    if let Some(found) = wanted(told) {
                        return found;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn reasons(&mut self) -> Vec<String> {
        self.until(|told| match told {
            Told::Maintenance(reasons) => Some(reasons),
            _ => None,
        })
    }
}

#[test]
fn each_reason_of_the_own_node_is_reported_as_it_comes_and_goes() {
    let mut bench = bench();
    assert_eq!(bench.reasons(), Vec::<String>::new());
    let annotate = |api: &StandIn, key: &str| {
        api.edit("node1", |node| node["metadata"]["annotations"] = json!({ key: "" }));
    };
    for key in [
        "update.node.deckhouse.io/disruption-approved",
        "update.node.deckhouse.io/approved",
        "node-manager.deckhouse.io/fencing-disable",
    ] {
        annotate(&bench.api, key);
        assert_eq!(bench.reasons(), [format!("annotation {key}")]);
    }
    // This annotation means nothing here, so the last reason has gone.
    annotate(&bench.api, "another");
    assert_eq!(bench.reasons(), Vec::<String>::new());
    bench.api.edit("node1", |node| node["spec"]["taints"] = json!([{ "key": "ToBeDeletedByClusterAutoscaler" }]));
    assert_eq!(bench.reasons(), ["taint ToBeDeletedByClusterAutoscaler"]);
    bench.api.edit("node1", |node| {
        node["spec"] = json!({});
        node["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    assert_eq!(bench.reasons(), ["the Node node1 is being deleted"]);
    bench.api.delete("node1");
    assert_eq!(bench.reasons(), ["the Node node1 is gone"]);
    bench.api.put("node1", "uid-another", "192.0.2.1", "master");
    assert_eq!(bench.reasons(), ["the Node node1 is another one (UID uid-another)"]);
    assert!(bench.threads.watch_age().is_some_and(|age| age < Duration::from_secs(5)));
}

#[test]
fn a_watch_that_ends_or_is_too_old_begins_anew_and_misses_nothing() {
    let mut bench = bench();
    assert_eq!(bench.reasons(), Vec::<String>::new());
    let disable = json!({ "node-manager.deckhouse.io/fencing-disable": "" });
    bench.api.end_watches();
    bench.api.edit("node1", |node| node["metadata"]["annotations"] = disable);
    assert_eq!(bench.reasons(), ["annotation node-manager.deckhouse.io/fencing-disable"]);
    bench.api.edit("node1", |node| node["metadata"]["annotations"] = json!({}));
    bench.api.forget();
    assert_eq!(bench.reasons(), Vec::<String>::new());
    // A refused answer changes nothing, and causes one warning.
    bench.api.refuse(Some(401));
    bench.api.end_watches();
    let warning = bench.until(|told| match told {
        Told::Warning(why) if why.contains("cannot be watched") => Some(why),
        _ => None,
    });
    assert_eq!(warning, "the Node node1 cannot be watched: the API answers 401: no");
    bench.api.refuse(None);
    bench.api.delete("node1");
    assert_eq!(bench.reasons(), ["the Node node1 is gone"]);
}

/// Asserts that the watch of a Node is not restarted again and again if the Node has not changed since a restart of the API server.
#[test]
fn a_node_that_has_not_changed_for_long_is_watched_without_a_storm() {
    let mut bench = bench();
    assert_eq!(bench.reasons(), Vec::<String>::new());
    bench.api.forget();
    clock::sleep(Duration::from_millis(2500));
    let watches = || bench.api.asked().iter().filter(|asked| asked.contains("watch=1")).count();
    // The first watch, and the one after its end.
    assert_eq!(watches(), 2, "{:?}", bench.api.asked());
    let disable = json!({ "node-manager.deckhouse.io/fencing-disable": "" });
    bench.api.edit("node1", |node| node["metadata"]["annotations"] = disable);
    assert_eq!(bench.reasons(), ["annotation node-manager.deckhouse.io/fencing-disable"]);
}

#[test]
fn the_group_is_listed_again_and_a_read_breaks_a_tie() {
    let mut bench = bench();
    let names = |members: &Members| members.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&bench.asked.list().unwrap()), ["node1", "node2", "node3"]);
    bench.api.put("node4", "uid", "192.0.2.4", "master");
    let listed = bench.until(|told| match told {
        Told::Listed(members) if members.len() == 4 => Some(members),
        _ => None,
    });
    assert_eq!(names(&listed), ["node1", "node2", "node3", "node4"]);
    let answer = |bench: &mut Bench, at: u64| {
        bench.threads.read(Duration::from_secs(at));
        bench.until(|told| match told {
            Told::Answered(at) => Some((at.as_secs(), true)),
            Told::Failed(at) => Some((at.as_secs(), false)),
            _ => None,
        })
    };
    assert_eq!(answer(&mut bench, 7), (7, true));
    bench.api.refuse(Some(500));
    assert_eq!(answer(&mut bench, 8), (8, false));
}
