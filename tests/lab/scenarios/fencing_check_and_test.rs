//! `tandem fencing check` finds no fault in a healthy lab, and finds a BMC that refuses. `tandem fencing test` refuses
//! wrong arguments, and then fences a node under writers: nothing is lost, and its measurements agree with the lab's.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc;
use crate::host::node::{BMC_PASSWORD, NODES, Node};
use crate::host::state::{self, Lab};
use crate::judge::check::{eventually, must};
use crate::load::writer::Writers;
use crate::sh::Result;

/// The node that is fenced. The administrator works on the other node, [`SEAT`].
const VICTIM: Node = Node::Two;
const SEAT: Node = Node::One;
/// The tolerance in seconds between the times that the command reports and those in the lab's own log.
const CLOSE: f64 = 0.5;
/// The finding that `tandem fencing check` always has in this lab. No timer runs the collector there, so no collector publishes anything.
const WITHOUT_COLLECTOR: &str = "collector-missing";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    for node in NODES {
        let uuid = format!("system_uuid={}", node.uuid());
        pcs::run(lab, SEAT, &["stonith", "update", &cluster::fence_device(node), &uuid])?;
    }
    healthy(lab)?;
    refused(lab)?;
    tested(lab)
}

/// Returns the exit code and the output of a command on the administrator's node.
fn typed(lab: &Lab, command: &str) -> Result<(i32, String)> {
    let answer = host::typed(lab, SEAT, command)?;
    if answer.1.contains(BMC_PASSWORD) {
        return Err(format!("'{command}' shows the BMC's password").into());
    }
    Ok(answer)
}

fn findings(lab: &Lab) -> Result<(i32, Vec<String>)> {
    let (code, said) = typed(lab, "tandem fencing check --json")?;
    let answer: Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
    let ids = answer["findings"].as_array().into_iter().flatten().filter_map(|one| one["id"].as_str());
    Ok((code, ids.filter(|id| *id != WITHOUT_COLLECTOR).map(str::to_owned).collect()))
}

fn healthy(lab: &Lab) -> Result<()> {
    let nothing = eventually(
        "the check says nothing of a healthy lab",
        || findings(lab),
        |found| found.as_ref().is_ok_and(|(_, ids)| ids.is_empty()),
    )??;
    must("its exit code", nothing.0, |code| [0, 3].contains(code)).map(drop)
}

/// Checks that `tandem fencing test` fences no node if the command makes no sense, or if fencing would fail.
fn refused(lab: &Lab) -> Result<()> {
    let before = state::since_epoch();
    for (command, words) in [
        ("tandem fencing test node1 --confirm node1", "no node fences itself"),
        ("tandem fencing test node3 --confirm node3", "no node is called 'node3'"),
        ("tandem fencing test node2 --confirm node1", "was not typed"),
        ("tandem fencing test node2 < /dev/null", "was not typed"),
    ] {
        let (code, said) = typed(lab, command)?;
        must(command, (code, said.as_str()), |(code, said)| *code == 1 && said.contains(words))?;
    }
    bmc::set_mode(lab, VICTIM, "refuse")?;
    let found = findings(lab);
    let test = typed(lab, "tandem fencing test node2 --confirm node2");
    bmc::set_mode(lab, VICTIM, "ok")?;
    must("a BMC that refuses is found", found?, |(code, ids)| {
        *code == 4 && ids.contains(&"bmc-check-failed".to_owned())
    })?;
    must("and nobody is fenced then", test?, |(code, said)| *code == 1 && said.contains("is not fenced for a test"))?;
    let log = std::fs::read_to_string(lab.bmc_log()).unwrap_or_default();
    let after = state::stamp(before);
    let is_reset = |line: &&str| **line > *after && line.contains("ComputerSystem.Reset");
    must("no reset was sent", log.lines().filter(is_reset).count(), |count| *count == 0)?;
    // The device's own monitor may have met the refusal.
    pcs::run(lab, SEAT, &["resource", "cleanup", &cluster::fence_device(VICTIM)])?;
    healthy(lab)
}

fn tested(lab: &Lab) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let (done, waits) = mpsc::channel();
    let for_thread = lab.clone();
    std::thread::spawn(move || {
        let command = "tandem fencing test node2 --confirm node2 --timeout 5m --json 2> /dev/null";
        let _ = done.send(typed(&for_thread, command).map_err(|error| error.to_string()));
    });
    let seen = watch(lab, &writers, &waits)?;
    let answer = seen.answer;
    let at = &answer["at"];
    println!("   {}", answer["seconds"]);
    must("the test passed", &answer, |answer| answer["passed"] == true && answer["why"].is_null())?;
    must("it was node2, by node1", &answer, |answer| answer["node"] == "node2" && answer["by"] == "node1")?;
    let began = at.as_str().and_then(since_epoch).ok_or_else(|| format!("no time: {at}"))?;
    let (gap, _) = writers.longest_gap();
    close(&answer, "longest_pause", gap.as_secs_f64())?;
    close(&answer, "voter", seen.voter.saturating_sub(began).as_secs_f64())?;
    let on = steps_of(lab, began, "is switched on").ok_or("the lab did not see it switched on")?;
    close(&answer, "on", on)?;
    let tested = ["crm_attribute", "--node", "node2", "--lifetime", "forever", "--name", "etcd_fencing_tested"];
    let said = host::must(lab, SEAT, &[&tested[..], &["--query", "--quiet"]].concat())?;
    must("the attribute", said.trim().to_owned(), |said| said.parse::<u64>().is_ok_and(|at| at == began.as_secs()))?;
    let kept = host::must(lab, SEAT, &["stat", "--format=%a %n", "/var/lib/tandem/fencing-tests.jsonl"])?;
    must("the record", kept, |kept| kept.starts_with("600 "))?;
    super::ends_well(lab, &mut writers)
}

/// The results of a fencing test: what the command printed, and what the lab observed.
struct Watched {
    answer: Value,
    /// The time since 1970 at which the lab observed that the victim voted again.
    voter: Duration,
}

type Said = std::result::Result<(i32, String), String>;

/// Observes etcd's members on the survivor until `tandem fencing test` has ended.
fn watch(lab: &Lab, writers: &Writers, waits: &mpsc::Receiver<Said>) -> Result<Watched> {
    let (mut alone, mut voter) = (false, None);
    let limit = Instant::now() + Duration::from_secs(400);
    while Instant::now() < limit {
        match etcd::view(lab, SEAT).map(|view| view.voters.len()) {
            Ok(1) => alone = true,
            Ok(2) if alone => voter = voter.or_else(|| Some(state::since_epoch())),
            _ => {}
        }
        let Ok(said) = waits.recv_timeout(Duration::from_millis(100)) else { continue };
        let (code, said) = said?;
        println!("   {} writes were acknowledged meanwhile", writers.count());
        let answer: Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
        must("its exit code", (code, &answer), |(code, _)| *code == 0)?;
        return Ok(Watched { answer, voter: voter.ok_or("the lab did not see the node vote again")? });
    }
    Err("the test of fencing did not end".into())
}

/// Returns the time of the first line with `words` about the victim in the lab's own log, in seconds since `began`. Returns `None` if
/// there is no such line.
fn steps_of(lab: &Lab, began: Duration, words: &str) -> Option<f64> {
    let events = std::fs::read_to_string(lab.events()).unwrap_or_default();
    let after = state::stamp(began);
    let line = events.lines().find(|line| **line > *after && line.contains(&format!("{VICTIM} {words}")))?;
    let at = state::since_stamp(line.split_once(' ')?.0, began);
    Some(at.as_secs_f64())
}

/// Parses a time of the command's record: RFC 3339 with milliseconds.
fn since_epoch(text: &str) -> Option<Duration> {
    humantime::parse_rfc3339(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()
}

fn close(answer: &Value, what: &str, seen: f64) -> Result<()> {
    let told = answer["seconds"][what].as_f64().ok_or_else(|| format!("{what} was not measured: {answer}"))?;
    println!("   {what}: {told:.1} s told, {seen:.1} s seen");
    if (told - seen).abs() <= CLOSE { Ok(()) } else { Err(format!("{what}: {told} s told, {seen:.2} s seen").into()) }
}
