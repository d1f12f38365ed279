//! The two rules about watchdogs, which use separate metrics.

use std::fs;

use serde_json::{Value, json};

use crate::{promtool, shipped};

const FILE: &str = "prometheus/tandem-fencing.rules.yml";

/// Returns a test for promtool: on a node with these metrics, exactly these alerts fire after `minute` minutes.
fn test(name: &str, metrics: &[(&str, u32)], minute: u64, alerts: &[&str]) -> Value {
    let series: Vec<Value> = metrics
        .iter()
        .map(|(metric, value)| json!({ "series": format!("{metric}{{instance=\"a\"}}"), "values": format!("{value}x{minute}") }))
        .collect();
    let query = "count by (alertname) (ALERTS{alertstate=\"firing\"})";
    let samples: Vec<Value> =
        alerts.iter().map(|alert| json!({ "labels": format!("{{alertname=\"{alert}\"}}"), "value": 1 })).collect();
    let expected = json!({ "expr": query, "eval_time": format!("{minute}m"), "exp_samples": samples });
    json!({ "name": name, "interval": "1m", "input_series": series, "promql_expr_test": [expected] })
}

#[test]
fn the_two_rules_fire_in_their_states_alone() {
    let (armed, unfed, mux) = ("tandem_fencing_agent_armed", "tandem_fencing_agent_unfed", "tandem_watchdog_mux_fed");
    let tests = [
        test("healthy", &[(armed, 1), (unfed, 0), (mux, 1)], 1500, &[]),
        test("no quorum", &[(armed, 1), (unfed, 1)], 1, &["TandemWatchdogNotFed"]),
        test("left running, and no contact", &[(armed, 0), (unfed, 1)], 1, &["TandemWatchdogNotFed"]),
        test("a client died", &[(mux, 0)], 1, &["TandemWatchdogNotFed"]),
        test("maintenance", &[(armed, 0), (unfed, 0)], 1439, &[]),
        test("maintenance for a day", &[(armed, 0), (unfed, 0)], 1441, &["TandemWatchdogDisarmed"]),
        test("no watchdog", &[("tandem_fencing_agent_quorum", 2)], 1500, &[]),
    ];
    let rules = shipped(FILE);
    promtool(&["check", "rules", rules.to_str().unwrap()], "");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.json");
    let file = json!({ "rule_files": [rules], "evaluation_interval": "1m", "tests": tests });
    fs::write(&path, file.to_string()).unwrap();
    promtool(&["test", "rules", path.to_str().unwrap()], "");
}

#[test]
fn the_guide_has_both_alerts_of_the_watchdog() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operate/recovery.md");
    let guide = fs::read_to_string(guide).unwrap();
    let section = guide.split("\n### ").find(|section| section.starts_with("Alerts: the watchdog\n")).unwrap();
    let rules = fs::read_to_string(shipped(FILE)).unwrap();
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(section.contains(&format!("{alert}: ")), "{alert}");
    }
    assert_eq!(rules.matches("recovery.md#alerts-the-watchdog").count(), 2);
}
