//! Each rule for Prometheus: the states in which it fires, and that it does not fire in a healthy one.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::pages::named;
use crate::{promtool, rules_file};

/// An alert: its name, its delay, its severity, and a state in which it fires. The two numbers are minutes since the state
/// began. At the first the alert must not fire yet, and at the second it must.
type Row = (&'static str, &'static str, &'static str, &'static str, [u64; 2]);

const ROWS: &[Row] = &[
    ("TandemNodeCountMismatch", "5m", "critical", "one node", [4, 6]),
    ("TandemFencingUnavailable", "5m", "critical", "no fencing", [4, 6]),
    ("TandemNodeUnclean", "5m", "critical", "down", [4, 6]),
    ("TandemResourceStopped", "5m", "critical", "stopped", [4, 6]),
    ("TandemNodeOffline", "2m", "critical", "off", [1, 3]),
    ("TandemResourceFailed", "2m", "critical", "failed", [1, 3]),
    ("TandemClusterInMaintenance", "2m", "warning", "cluster maintenance", [1, 3]),
    ("TandemNodeInMaintenance", "2m", "warning", "node maintenance", [1, 3]),
    ("TandemNodeStandby", "5m", "warning", "standby", [4, 6]),
    ("TandemResourceUnmanaged", "5m", "warning", "unmanaged", [4, 6]),
    ("TandemResourceDisabled", "5m", "warning", "disabled", [4, 6]),
    ("TandemFencingDegraded", "10m", "warning", "fencing degraded", [9, 11]),
    ("TandemNoWrites", "1m", "critical", "down", [0, 2]),
    ("TandemNotRedundant", "15m", "warning", "off", [14, 16]),
    ("TandemNotRedundant", "15m", "warning", "the peer's etcd hangs", [14, 16]),
    ("TandemNotRedundantForADay", "24h", "critical", "off", [1439, 1441]),
    ("TandemLearnerBehind", "15m", "warning", "learner", [14, 16]),
    ("TandemMemberChangeHangs", "0s", "warning", "member change", [119, 122]),
    ("TandemEtcdAlarm", "1m", "critical", "alarm", [0, 2]),
    ("TandemCertificateEnds", "1h", "warning", "certificate in a month", [59, 61]),
    ("TandemCertificateEndsSoon", "1h", "critical", "certificate in a week", [59, 61]),
    ("TandemBmcClockSkew", "15m", "warning", "BMC's clock", [14, 16]),
    ("TandemFencingUntested", "1h", "warning", "never tested", [59, 61]),
    ("TandemFencingUntested", "1h", "warning", "tested long ago", [59, 61]),
    ("TandemStatusStale", "0s", "warning", "stale", [4, 6]),
    ("TandemTwoVersions", "1d", "warning", "two versions", [1439, 1441]),
    ("TandemOneNodeCannotCarryBoth", "30m", "warning", "busy", [50, 62]),
];

/// Alerts that must not fire in a state, because another alert has the same cause.
const SILENT: &[(&str, &str)] = &[
    ("TandemCertificateEnds", "certificate in a week"),
    ("TandemCertificateEndsSoon", "certificate in a month"),
    ("TandemNodeInMaintenance", "cluster maintenance"),
    ("TandemResourceUnmanaged", "cluster maintenance"),
    ("TandemResourceUnmanaged", "node maintenance"),
    ("TandemFencingDegraded", "cluster maintenance"),
    ("TandemFencingDegraded", "no fencing"),
    ("TandemNotRedundant", "nothing known"),
    ("TandemNoWrites", "nothing known"),
    ("TandemResourceStopped", "no kubelet"),
];

/// Returns the fields of each alerting rule, by the alert's name. Fields of several lines are left out.
fn rules() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut name = String::new();
    for line in fs::read_to_string(rules_file()).unwrap().lines() {
        if let Some(alert) = line.trim().strip_prefix("- alert: ") {
            alert.clone_into(&mut name);
            found.insert(name.clone(), BTreeMap::new());
        } else if let Some((key, value)) = line.trim().split_once(": ")
            && let Some(rule) = found.get_mut(&name)
        {
            rule.insert(key.to_owned(), value.to_owned());
        }
    }
    found
}

fn expectation(minute: u64, query: &str, is_so: bool) -> Value {
    let samples = if is_so { json!([{ "labels": "{}", "value": 1 }]) } else { json!([]) };
    json!({ "expr": query, "eval_time": format!("{minute}m"), "exp_samples": samples })
}

/// Runs tests of the alerting rules in one call of promtool.
fn run(tests: &[Value]) {
    let file = json!({ "rule_files": [rules_file()], "evaluation_interval": "1m", "tests": tests });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.json");
    fs::write(&path, file.to_string()).unwrap();
    promtool(&["test", "rules", path.to_str().unwrap()], "");
}

fn test(name: &str, state: &str, minutes: u64, expectations: &[Value]) -> Value {
    let series = named(state).series(minutes);
    json!({ "name": name, "interval": "1m", "input_series": series, "promql_expr_test": expectations })
}

#[test]
fn promtool_accepts_the_alerting_rules() {
    promtool(&["check", "rules", rules_file().to_str().unwrap()], "");
}

#[test]
fn each_rule_has_its_time_and_severity_and_a_row_here() {
    let rules = rules();
    for (alert, time, severity, ..) in ROWS {
        let rule = rules.get(*alert).unwrap_or_else(|| panic!("no rule {alert}"));
        assert_eq!(rule.get("for").map_or("0s", String::as_str), *time, "{alert}");
        assert_eq!(rule.get("severity").map(String::as_str), Some(*severity), "{alert}");
    }
    for alert in rules.keys() {
        assert!(ROWS.iter().any(|row| row.0 == alert), "{alert} has no row here");
    }
}

#[test]
fn each_rule_fires_in_its_state_and_not_before() {
    let tests: Vec<Value> = ROWS
        .iter()
        .map(|(alert, _, _, state, [before, after])| {
            let query = format!("count(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}) > bool 0");
            let expectations = [expectation(*before, &query, false), expectation(*after, &query, true)];
            test(&format!("{alert}: {state}"), state, after + 1, &expectations)
        })
        .collect();
    run(&tests);
}

#[test]
fn nothing_fires_or_is_about_to_where_all_is_well() {
    let minutes = 26 * 60;
    let all = expectation(minutes, "count(count_over_time(ALERTS[26h]))", false);
    run(&[test("healthy", "healthy", minutes, &[all])]);
}

#[test]
fn of_one_cause_one_alert_is_told() {
    let tests: Vec<Value> = SILENT
        .iter()
        .map(|(alert, state)| {
            let query = format!("count(count_over_time(ALERTS{{alertname=\"{alert}\"}}[2h]))");
            test(&format!("{alert}: {state}"), state, 120, &[expectation(120, &query, false)])
        })
        .collect();
    run(&tests);
}

/// Returns the anchor that GitHub makes for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().trim().replace(' ', "-")
}

#[test]
fn each_link_leads_to_a_section_that_names_the_alert() {
    const PLACE: &str = "file:///usr/share/doc/tandem/docs/operate/recovery.md#";
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operate/recovery.md");
    let guide = fs::read_to_string(guide).unwrap();
    let mut sections: BTreeMap<String, String> = BTreeMap::new();
    let mut name = String::new();
    for line in guide.lines() {
        if line.starts_with('#') {
            name = anchor(line.trim_start_matches('#'));
        }
        let section = sections.entry(name.clone()).or_default();
        section.push_str(line);
        section.push('\n');
    }
    for (alert, rule) in rules() {
        let link = rule.get("runbook_url").unwrap_or_else(|| panic!("{alert} has no link"));
        let section = link.strip_prefix(PLACE).and_then(|anchor| sections.get(anchor));
        assert!(section.is_some_and(|section| section.contains(&alert)), "{alert}: {link}");
    }
}
