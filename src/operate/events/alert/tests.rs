//! Turns captured calls of an alert agent into events: see `tests/data/fixtures/alerts`.

use std::collections::BTreeMap;

use super::*;
use crate::adapters::ocf::alert;
use crate::adapters::ocf::env::Env;
use crate::records::events::read;

const NODE1: &str = include_str!("../../../../tests/data/fixtures/alerts/node1.jsonl");
const NODE2: &str = include_str!("../../../../tests/data/fixtures/alerts/node2.jsonl");

fn alert_of(pairs: &[(&str, &str)]) -> Alert {
    alert::read(&Env::from_pairs(pairs.iter().map(|(name, value)| (format!("CRM_alert_{name}"), (*value).to_owned()))))
}

/// Returns each captured call of the alert agent, with the events that it caused.
fn told(captured: &str) -> Vec<(String, Vec<String>)> {
    let dir = tempfile::tempdir().unwrap();
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for line in captured.lines() {
        let variables: BTreeMap<String, String> = serde_json::from_str(line).unwrap();
        if let Some(mark) = variables.get("MARK") {
            sections.push((mark.clone(), Vec::new()));
            continue;
        }
        let before = read::all(dir.path()).unwrap().len();
        tell(dir.path(), &alert::read(&Env::from_pairs(variables))).unwrap();
        let new = read::all(dir.path()).unwrap().split_off(before);
        let lines = new.iter().map(|event| format!("{} {}: {}", event.kind.word(), event.reason, event.message));
        sections.last_mut().unwrap().1.extend(lines);
    }
    sections.retain(|(_, lines)| !lines.is_empty());
    sections
}

/// Asserts that each cause is one event although Pacemaker alerts two recipients. Probes, notifications and cancelled operations cause
/// none.
#[test]
fn what_pacemaker_told_two_recipients_is_told_once() {
    let started = |what: &str, node: &str| format!("Warning PacemakerResourceStarted: {what} was started on {node}");
    let stopped = |what: &str, node: &str| format!("Warning PacemakerResourceStopped: {what} was stopped on {node}");
    let failed = |words: &str| format!("Error PacemakerFailedResourceAction: {words}; 'tandem status' has the reason");
    let section = |name: &str, lines: &[String]| (name.to_owned(), lines.to_vec());
    let fenced = "Operation reboot of node1 by node2 for pacemaker-controld.37@node2: OK \
                  (ref=6241f7a1-6df8-473e-a476-0862bc740bf2)";
    let not_fenced = "Operation reboot of node1 by node2 for stonith_admin.2234@node2: Error \
                      (ref=3ddfa2bf-88b0-4da6-a078-a9d254c5b782)";
    let could_not =
        format!("Error PacemakerFencingEvent: node1 could not be fenced: {not_fenced}; 'tandem status' has the reason");
    let expected = [
        section("standby", &[stopped("fence-node2", "node2"), stopped("etcd", "node2")]),
        section("unstandby", &[started("fence-node2", "node2"), started("etcd", "node2")]),
        section(
            "etcdkill",
            &[
                failed("monitor of etcd on node2 failed: not running (7)"),
                stopped("etcd", "node2"),
                started("etcd", "node2"),
            ],
        ),
        section(
            "failedstart",
            &[failed("start of broken2 on node2 failed: not installed (5)"), stopped("broken2", "node2")],
        ),
        section(
            "cut",
            &[
                "Error PacemakerNodeOffline: node1 is lost: it left the cluster".to_owned(),
                started("fence-node1", "node2"),
                format!("Warning PacemakerFencingEvent: node1 was fenced: {fenced}"),
                "Normal PacemakerNodeOnline: node1 is a member of the cluster".to_owned(),
                stopped("fence-node2", "node2"),
            ],
        ),
        section("attribute", &[started("fence-node2", "node2"), stopped("fence-node2", "node2")]),
        section("fencefail", std::slice::from_ref(&could_not)),
    ];
    assert_eq!(told(NODE2), expected);
    assert_eq!(told(NODE1).last(), Some(&section("fencefail", &[could_not])));
}

/// Asserts which event each of many alerts causes, or that it causes none.
#[test]
fn each_kind_is_translated() {
    let operation = |task, interval, rc, target, status| {
        let more = [("task", task), ("interval", interval), ("rc", rc), ("target_rc", target), ("status", status)];
        let all = [("kind", "resource"), ("node", "n1"), ("rsc", "etcd"), ("desc", "words")];
        alert_of(&[&all[..], &more[..]].concat())
    };
    let attribute = |name, value| {
        alert_of(&[("kind", "attribute"), ("node", "n1"), ("attribute_name", name), ("attribute_value", value)])
    };
    let node = |desc| alert_of(&[("kind", "node"), ("node", "n1"), ("desc", desc)]);
    let fencing = |desc, rc| alert_of(&[("kind", "fencing"), ("node", "n1"), ("desc", desc), ("rc", rc)]);
    for (alert, expected) in [
        (operation("monitor", "0", "7", "7", "0"), None),
        (operation("monitor", "0", "0", "7", "0"), None),
        (operation("monitor", "0", "5", "7", "0"), Some((Type::Error, reason::FAILED_ACTION))),
        (operation("monitor", "10000", "8", "8", "0"), None),
        (operation("monitor", "10000", "1", "0", "2"), Some((Type::Error, reason::FAILED_ACTION))),
        (operation("start", "0", "0", "0", "-1"), None),
        (operation("start", "0", "0", "0", "0"), Some((Type::Warning, reason::RESOURCE_STARTED))),
        (operation("promote", "0", "0", "0", "0"), Some((Type::Warning, reason::RESOURCE_STARTED))),
        (operation("demote", "0", "0", "0", "0"), Some((Type::Warning, reason::RESOURCE_STOPPED))),
        (operation("notify", "0", "1", "0", "4"), Some((Type::Error, reason::FAILED_ACTION))),
        (operation("meta-data", "0", "0", "0", "0"), None),
        (attribute("standby", "on"), Some((Type::Error, reason::NODE_UNHEALTHY))),
        (attribute("standby", "off"), Some((Type::Normal, reason::NODE_HEALTHY))),
        (attribute("maintenance", "true"), Some((Type::Error, reason::NODE_UNHEALTHY))),
        (attribute("shutdown", "1795442801"), Some((Type::Error, reason::NODE_UNHEALTHY))),
        (attribute("shutdown", "0"), None),
        (attribute("#health-disk", "red"), Some((Type::Error, reason::NODE_UNHEALTHY))),
        (attribute("#health-disk", "green"), None),
        (attribute("fail-count-etcd#start_0", "INFINITY"), None),
        (attribute("etcd_record", "{}"), None),
        (node("lost"), Some((Type::Error, reason::NODE_OFFLINE))),
        (node("member"), Some((Type::Normal, reason::NODE_ONLINE))),
        (node("something else"), None),
        (fencing("Operation off of n1 by n2 for x: OK", "0"), Some((Type::Warning, reason::FENCING))),
        (fencing("Operation on of n1 by n2 for x: OK", "0"), Some((Type::Warning, reason::FENCING))),
        (fencing("Operation off of n1 by <anyone> for x: No such device", "-19"), Some((Type::Error, reason::FENCING))),
        (alert_of(&[("kind", "of a later Pacemaker")]), None),
        (alert_of(&[]), None),
    ] {
        let told = event(&alert);
        assert_eq!(told.as_ref().map(|event| (event.kind, event.reason.as_str())), expected, "{alert:?}");
        assert!(
            told.is_none_or(|event| event.time > 0 && event.node == "n1" && !event.message.is_empty()),
            "{alert:?}"
        );
    }
    assert!(event(&fencing("Operation on of n1 by n2: OK", "0")).unwrap().message.contains("was switched on"));
}
