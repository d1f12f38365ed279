//! What `tandem status` answers on a host, as a script asks: the verdict with its exit code and problems, and the object of
//! OpenShift's etcd operator, which has to be one that its API server takes.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::check::{eventually, must};
use crate::host;
use crate::node::Node;
use crate::rules;
use crate::sh::Result;
use crate::state::Lab;

/// An answer is there within this time, whatever hangs.
pub const ALWAYS: Duration = Duration::from_secs(6);

/// A verdict, and the exit code that goes with it.
pub type Verdict = (&'static str, i32);
/// Two voters and nothing that needs a human; writes are taken; they are not.
pub const REDUNDANT: Verdict = ("redundant", 0);
pub const DEGRADED: Verdict = ("degraded", 3);
pub const DOWN: Verdict = ("down", 4);

/// What the nodes of the lab do not have.
const KUBELET: &str = "Kubelet";

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub verdict: String,
    pub code: i32,
    pub problems: Vec<String>,
    pub took: Duration,
    /// Whether all of it has the form that the man page promises.
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

    /// In time, and in form.
    pub fn is_in_time(&self) -> bool {
        self.took < ALWAYS && self.is_whole
    }
}

/// As a script asks.
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

/// Every problem says what to type, each configured node has its place, and times are times.
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

/// That `on` says so soon, with this problem among others.
pub fn says(lab: &Lab, on: Node, wanted: Verdict, problem: Option<&str>) -> Result<()> {
    let what = format!("status on {on} is {wanted:?}, {}", problem.unwrap_or("whatever the problems"));
    let fits = |answer: &Result<Answer>| answer.as_ref().is_ok_and(|answer| answer.is(wanted, problem));
    eventually(&what, || ask(lab, on), fits).map(drop)
}

/// A row of the table of states: that `on` says so soon, and that of the object's conditions exactly these are not true, each as
/// `PLACE TYPE=REASON`, or `PLACE *=REASON` where all of a place are unknown.
pub fn row(lab: &Lab, on: Node, wanted: Verdict, problem: Option<&str>, not_true: &[String]) -> Result<()> {
    says(lab, on, wanted, problem)?;
    let mut expected = not_true.to_vec();
    expected.sort();
    let what =
        format!("with {} {on} says of conditions that exactly {expected:?} are not true", problem.unwrap_or("it"));
    eventually(&what, || object(lab, on), |seen| seen.as_ref().is_ok_and(|seen| *seen == expected)).map(drop)
}

/// That `on` answers in time, and with an object that is taken, whatever is in it.
pub fn answers(lab: &Lab, on: Node, what: &str) -> Result<Answer> {
    let answer = must(&format!("status on {on} answers in time, {what}"), ask(lab, on)?, Answer::is_in_time)?;
    object(lab, on)?;
    Ok(answer)
}

/// What is not true in the object, which the API server has to take.
fn object(lab: &Lab, on: Node) -> Result<Vec<String>> {
    // A verdict is no failure.
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

/// What is not true of a node whose etcd is stopped.
pub fn etcd_stopped(node: Node) -> Vec<String> {
    vec![
        "cluster Healthy=ClusterUnhealthy".to_owned(),
        format!("{node} Healthy=NodeUnhealthy"),
        format!("{node}/Etcd Healthy=ResourceUnhealthy"),
        format!("{node}/Etcd Active=Inactive"),
        format!("{node}/Etcd Started=Stopped"),
    ]
}

/// What is not true where the device of `node` does not fence, beside what is so of the device itself.
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
