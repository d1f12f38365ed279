//! Metrics, rules and dashboard against third-party programs: Prometheus' promtool and a real node_exporter.
//! `tests/monitoring/setup` installs them.

#![expect(clippy::disallowed_methods, reason = "the test starts the programs that it asks")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod dashboard;
mod exporter;
mod fencing;
mod pages;
mod rules;
#[path = "../support/states.rs"]
mod states;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a program with `input` on its standard input. Returns whether it succeeded, and its output.
fn ask(program: &str, args: &[&str], input: &str) -> (bool, String) {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}; tests/monitoring/setup installs it"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.success(), text)
}

fn promtool(args: &[&str], input: &str) {
    let (content, text) = ask("promtool", args, input);
    assert!(content, "promtool {args:?}: {text}");
}

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("metadata").join(file)
}

fn rules_file() -> PathBuf {
    shipped("prometheus/tandem.rules.yml")
}

/// Returns the words in expressions that begin as the names of metrics do.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("tandem_") || word.starts_with("node_")).map(str::to_owned).collect()
}

/// Returns the names of the metrics in the text of an exporter.
fn metrics_of(page: &str) -> BTreeSet<String> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// The names of Tandem's metrics, on which users rely. They are OpenShift's names with Tandem's prefix, and additional ones.
const NAMES: &[&str] = &[
    "tandem_cluster_healthy",
    "tandem_cluster_in_service",
    "tandem_cluster_node_count_as_expected",
    "tandem_node_healthy",
    "tandem_node_online",
    "tandem_node_in_service",
    "tandem_node_active",
    "tandem_node_ready",
    "tandem_node_clean",
    "tandem_node_member",
    "tandem_node_fencing_available",
    "tandem_node_fencing_healthy",
    "tandem_resource_healthy",
    "tandem_resource_in_service",
    "tandem_resource_managed",
    "tandem_resource_enabled",
    "tandem_resource_operational",
    "tandem_resource_active",
    "tandem_resource_started",
    "tandem_resource_schedulable",
    "tandem_resource_disruption_total",
    "tandem_etcd_serving",
    "tandem_etcd_redundant",
    "tandem_etcd_redundancy_changed_timestamp_seconds",
    "tandem_etcd_voters",
    "tandem_etcd_voter",
    "tandem_etcd_leader",
    "tandem_etcd_learner",
    "tandem_etcd_learner_lag_entries",
    "tandem_member_change_timestamp_seconds",
    "tandem_etcd_alarm",
    "tandem_etcd_forks_total",
    "tandem_fence_monitor_success",
    "tandem_fence_monitor_duration_seconds",
    "tandem_fence_monitor_timestamp_seconds",
    "tandem_fence_monitor_last_success_timestamp_seconds",
    "tandem_bmc_clock_skew_seconds",
    "tandem_bmc_certificate_expiry_timestamp_seconds",
    "tandem_fencing_test_success",
    "tandem_fencing_test_timestamp_seconds",
    "tandem_fencing_test_phase_seconds",
    "tandem_fencing_test_pause_seconds",
    "tandem_certificate_expiry_timestamp_seconds",
    "tandem_version_info",
    "tandem_cluster_info",
    "tandem_events_total",
    "tandem_collection_timestamp_seconds",
];

#[test]
fn every_page_has_nothing_that_promtool_would_have_otherwise() {
    for state in pages::all() {
        promtool(&["check", "metrics"], &state.page());
    }
}

#[test]
fn all_metrics_have_their_names() {
    let expected: BTreeSet<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(metrics_of(&pages::full().page()), expected);
}

/// Expands names as in `tandem_etcd_{leader,voter}`, which is two names.
fn in_full(name: &str) -> Vec<String> {
    let Some((begin, rest)) = name.split_once('{') else { return vec![name.to_owned()] };
    rest.trim_end_matches('}').split(',').map(|end| format!("{begin}{end}")).collect()
}

#[test]
fn every_metric_is_explained() {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operate/metrics.md")).unwrap();
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let explained: BTreeSet<String> = rows.flat_map(in_full).collect();
    assert_eq!(explained, NAMES.iter().map(|name| (*name).to_owned()).collect());
}

/// Returns the lines of the metric `name` in the text of an exporter.
fn lines_of<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    page.lines().filter(|line| line.split(['{', ' ']).next() == Some(name)).collect()
}

#[test]
fn values_are_those_of_the_cluster() {
    let page = pages::full().page();
    for (name, expected) in [
        ("tandem_node_online", vec![r#"tandem_node_online{node="node1"} 1"#, r#"tandem_node_online{node="node2"} 1"#]),
        ("tandem_etcd_serving", vec!["tandem_etcd_serving 1"]),
        ("tandem_etcd_redundant", vec!["tandem_etcd_redundant 0"]),
        ("tandem_etcd_voters", vec!["tandem_etcd_voters 1"]),
        ("tandem_etcd_learner_lag_entries", vec![r#"tandem_etcd_learner_lag_entries{node="node2"} 2"#]),
        ("tandem_cluster_info", vec![r#"tandem_cluster_info{cluster="edge",id="cdf818194e3a8c32"} 1"#]),
        (
            "tandem_etcd_forks_total",
            vec![r#"tandem_etcd_forks_total{node="node1"} 2"#, r#"tandem_etcd_forks_total{node="node2"} 2"#],
        ),
        (
            "tandem_fence_monitor_duration_seconds",
            vec![
                r#"tandem_fence_monitor_duration_seconds{device="node1_redfish",node="node2"} 0.85"#,
                r#"tandem_fence_monitor_duration_seconds{device="node2_redfish",node="node1"} 0.85"#,
            ],
        ),
        ("tandem_events_total", vec![r#"tandem_events_total{reason="PacemakerNodeOffline"} 3"#]),
        (
            "tandem_resource_disruption_total",
            vec![
                r#"tandem_resource_disruption_total{node="node1",resource="Etcd"} 0"#,
                r#"tandem_resource_disruption_total{node="node1",resource="Kubelet"} 0"#,
                r#"tandem_resource_disruption_total{node="node2",resource="Etcd"} 1"#,
                r#"tandem_resource_disruption_total{node="node2",resource="Kubelet"} 0"#,
            ],
        ),
    ] {
        assert_eq!(lines_of(&page, name), expected, "{name}");
    }
}

#[test]
fn what_is_not_known_is_left_out() {
    for (state, name) in [
        ("nothing known", "tandem_cluster_healthy"),
        ("nothing known", "tandem_node_online"),
        ("nothing known", "tandem_etcd_serving"),
        ("nothing known", "tandem_etcd_redundant"),
        ("nothing known", "tandem_etcd_voters"),
        ("the peer's etcd hangs", "tandem_etcd_redundant"),
        ("no kubelet", "tandem_resource_started{node=\"node1\",resource=\"Kubelet\"}"),
    ] {
        let page = pages::named(state).page();
        assert!(!page.lines().any(|line| line.starts_with(name)), "{state}: {name}\n{page}");
    }
}
