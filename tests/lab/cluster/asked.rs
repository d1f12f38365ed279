//! The answers of `tandem status` on a host, read as a script reads them: the verdict, its exit code and its problems.
//! Also the object for OpenShift's etcd operator, which OpenShift's API server must accept.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::rules;
use crate::sh::Result;

/// The time within which `tandem status` always returns, even if a program that it calls hangs.
pub const ALWAYS: Duration = Duration::from_secs(6);

/// The verdict of `tandem status`, and the exit code that expresses it.
pub type Verdict = (&'static str, i32);
/// The verdict while both members vote and the operator has no problem to solve. Under [`DEGRADED`] writes succeed
/// too, and under [`DOWN`] they fail.
pub const REDUNDANT: Verdict = ("redundant", 0);
pub const DEGRADED: Verdict = ("degraded", 3);
pub const DOWN: Verdict = ("down", 4);

/// The name of a resource in the `PacemakerCluster` object. Its conditions are left out, because the lab runs no kubelet.
const KUBELET: &str = "Kubelet";

/// The output of one `tandem status --json`, with its exit code and the time that it took.
#[derive(Debug)]
pub struct Answer {
    pub verdict: String,
    pub code: i32,
    pub problems: Vec<String>,
    pub took: Duration,
    /// True if the whole JSON document has the form that the man page promises.
    is_whole: bool,
}

impl Answer {
    pub fn is(&self, (verdict, code): Verdict, problem: Option<&str>) -> bool {
        let named = problem.is_none_or(|id| self.names(id));
        self.verdict == verdict && self.code == code && named && self.is_in_time()
    }

    pub fn names(&self, problem: &str) -> bool {
        self.problems.iter().any(|id| id == problem)
    }

    /// Returns whether the command returned within [`ALWAYS`] and its JSON document is well-formed.
    pub fn is_in_time(&self) -> bool {
        self.took < ALWAYS && self.is_whole
    }
}

/// Runs `tandem status --json` on a host and parses its output.
pub fn ask(lab: &Lab, on: Node) -> Result<Answer> {
    let began = Instant::now();
    let (code, said) = host::typed(lab, on, "tandem status --json 2> /dev/null")?;
    let took = began.elapsed();
    let document: Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let problems = list(&document["problems"]);
    Ok(Answer {
        verdict: text(&document["verdict"]),
        code,
        problems: problems.iter().map(|problem| text(&problem["id"])).collect(),
        took,
        is_whole: is_whole(&document),
    })
}

/// Returns whether the JSON document is well-formed: problems have texts and commands, each configured node has an
/// entry, and times parse.
fn is_whole(document: &Value) -> bool {
    let has_words = |problem: &Value| ["id", "severity", "text"].iter().all(|key| problem[key].is_string());
    let is_time = |value: &Value| {
        value.is_null() || value.as_str().is_some_and(|text| humantime::parse_rfc3339_weak(text).is_ok())
    };
    document["format"] == 1
        && list(&document["problems"]).iter().all(|problem| has_words(problem) && problem["command"].is_string())
        && list(&document["nodes"]).iter().all(|node| node["name"].is_string())
        && document["at"].is_string()
        && ["at", "since"].iter().all(|key| is_time(&document[key]))
}

/// Waits until `tandem status` on `on` reports the verdict `wanted`, and the problem with the id `problem` if one is
/// given.
pub fn says(lab: &Lab, on: Node, wanted: Verdict, problem: Option<&str>) -> Result<()> {
    let what = format!("status on {on} is {wanted:?}, {}", problem.unwrap_or("whatever the problems"));
    let fits = |answer: &Result<Answer>| answer.as_ref().is_ok_and(|answer| answer.is(wanted, problem));
    eventually(&what, || ask(lab, on), fits).map(drop)
}

/// Waits until `tandem status` on `on` reports `wanted` and `problem`, and exactly the conditions `not_true` of the
/// `PacemakerCluster` object are not true. A condition is written as `PLACE TYPE=REASON`, or as `PLACE *=REASON` if
/// all conditions of a place are unknown.
pub fn row(lab: &Lab, on: Node, wanted: Verdict, problem: Option<&str>, not_true: &[String]) -> Result<()> {
    says(lab, on, wanted, problem)?;
    let mut expected = not_true.to_vec();
    expected.sort();
    let what =
        format!("with {} {on} says of conditions that exactly {expected:?} are not true", problem.unwrap_or("it"));
    eventually(&what, || object(lab, on), |seen| seen.as_ref().is_ok_and(|seen| *seen == expected)).map(drop)
}

/// Checks that `tandem status` on `on` returns in time with any verdict, and that the API server would accept its
/// `PacemakerCluster` object.
pub fn answers(lab: &Lab, on: Node, what: &str) -> Result<Answer> {
    let answer = must(&format!("status on {on} answers in time, {what}"), ask(lab, on)?, Answer::is_in_time)?;
    object(lab, on)?;
    Ok(answer)
}

/// Returns the conditions that are not true in the `PacemakerCluster` object of `tandem status`. Fails if the API
/// server would reject the object.
fn object(lab: &Lab, on: Node) -> Result<Vec<String>> {
    // The exit code expresses the verdict, so a code other than 0 is no failure of the command.
    let (_, said) = host::typed(lab, on, "tandem status --output pacemakercluster 2> /dev/null")?;
    let object: Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
    let faults = rules::faults(&object, None);
    if !faults.is_empty() {
        return Err(format!("the API server would not take it: {faults:?}").into());
    }
    Ok(not_true(&object["status"]))
}

fn not_true(status: &Value) -> Vec<String> {
    let mut found = of_place("cluster", status);
    for node in list(&status["nodes"]) {
        let name = node["nodeName"].as_str().unwrap_or_default();
        found.extend(of_place(name, node));
        for part in list(&node["resources"]).iter().chain(list(&node["fencingAgents"])) {
            let part_name = part["name"].as_str().unwrap_or_default();
            if part_name != KUBELET {
                found.extend(of_place(&format!("{name}/{part_name}"), part));
            }
        }
    }
    found.sort();
    found
}

fn of_place(place: &str, holder: &Value) -> Vec<String> {
    let all = list(&holder["conditions"]);
    let word = |condition: &Value, key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    let others: Vec<&Value> = all.iter().filter(|condition| condition["status"] != "True").collect();
    let is_unknown = |condition: &&Value| condition["status"] == "Unknown";
    if others.len() == all.len() && others.iter().all(is_unknown) && place != "cluster" {
        return others.first().map(|first| format!("{place} *={}", word(first, "reason"))).into_iter().collect();
    }
    let told = |condition: &&Value| format!("{place} {}={}", word(condition, "type"), word(condition, "reason"));
    others.iter().map(told).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the conditions of the `PacemakerCluster` object that are not true while the etcd of `node` is stopped.
pub fn etcd_stopped(node: Node) -> Vec<String> {
    vec![
        "cluster Healthy=ClusterUnhealthy".to_owned(),
        format!("{node} Healthy=NodeUnhealthy"),
        format!("{node}/Etcd Healthy=ResourceUnhealthy"),
        format!("{node}/Etcd Active=Inactive"),
        format!("{node}/Etcd Started=Stopped"),
    ]
}

/// Returns the conditions of the `PacemakerCluster` object that are expected to be false while the fence device of `node` cannot fence
/// it. `of_the_device` are conditions of that device, which are expected to be false too.
pub fn not_fenced(node: Node, of_the_device: &[&str]) -> Vec<String> {
    let mut all = vec![
        "cluster Healthy=ClusterUnhealthy".to_owned(),
        format!("{node} Healthy=NodeUnhealthy"),
        format!("{node} FencingAvailable=FencingUnavailable"),
        format!("{node} FencingHealthy=FencingUnhealthy"),
        format!("{node}/fence-{node} Healthy=ResourceUnhealthy"),
    ];
    all.extend(of_the_device.iter().map(|condition| format!("{node}/fence-{node} {condition}")));
    all
}
