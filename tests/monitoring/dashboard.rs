//! The dashboard: its panels work in a Grafana without plug-ins, and Prometheus can parse its expressions.

use std::fs;

use serde_json::{Value, json};

use crate::{promtool, shipped};

/// The types of panels that every Grafana has without a plugin.
const PANELS: &[&str] = &["stat", "state-timeline", "timeseries", "bargauge", "table", "text", "row"];

fn dashboard() -> Value {
    serde_json::from_str(&fs::read_to_string(shipped("grafana/tandem.json")).unwrap()).unwrap()
}

/// Returns every expression of the dashboard as a pair of the panel's title and the expression.
pub(crate) fn expressions() -> Vec<(String, String)> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap().clone();
    let of_panel = |panel: &Value| {
        let title = panel["title"].as_str().unwrap().to_owned();
        let targets = panel["targets"].as_array().unwrap().clone();
        targets.into_iter().map(move |target| (title.clone(), target["expr"].as_str().unwrap().to_owned()))
    };
    panels.iter().flat_map(of_panel).collect()
}

#[test]
fn every_expression_can_be_a_recording_rule() {
    let rule = |(at, (_, expression)): (usize, (String, String))| json!({ "record": format!("panel:{at}"), "expr": expression });
    let rules: Vec<Value> = expressions().into_iter().enumerate().map(rule).collect();
    assert!(rules.len() > 15, "{rules:?}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dashboard.json");
    fs::write(&path, json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string()).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()], "");
}

#[test]
fn it_needs_a_data_source_and_nothing_else() {
    let dashboard = dashboard();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!(variables.len(), 1);
    assert_eq!((&variables[0]["type"], &variables[0]["query"]), (&json!("datasource"), &json!("prometheus")));
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(PANELS.contains(&panel["type"].as_str().unwrap()), "{}", panel["title"]);
        assert!(!panel["description"].as_str().unwrap().is_empty(), "{}", panel["title"]);
        for holder in [panel].into_iter().chain(panel["targets"].as_array().unwrap()) {
            assert_eq!(holder["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        }
    }
    assert!(dashboard.get("__requires").is_none());
}
