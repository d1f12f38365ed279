//! The end of a run in which a data dir was swapped. Both nodes vote and hold every acknowledged write, or a node
//! refuses. Then its reason names what resolves it, and no disk has lost a write.

use std::time::{Duration, Instant};

use super::run::Scene;
use super::swap::Holder;
use super::{Ending, Outcome};
use crate::cluster;
use crate::cluster::etcd;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::interrupt;
use crate::judge::history::{self, Ack};
use crate::sh::Result;

/// The time within which two healthy nodes become two voters, or refuse to serve for good.
const LIMIT: Duration = Duration::from_secs(180);
/// The time after which the state of both nodes is final if it does not change.
const SETTLED: Duration = Duration::from_secs(30);
/// The time after which the state of both nodes is final while a node waits. It is longer than [`SETTLED`], because a
/// waiting node logs less often.
const SETTLED_WHILE_WAITING: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_secs(1);
/// The node attribute with which an operator chooses the data to keep.
const CHOICE: &str = "etcd_primary";

/// The state of both nodes: serving, refusing to serve, or waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Standing {
    serving: Vec<Node>,
    /// The nodes on which Pacemaker has not started etcd, each with the exit reason of its last start.
    refusing: Vec<(Node, String)>,
    /// The nodes that neither serve nor refuse, each with the last line of the agent's log.
    waiting: Vec<(Node, String)>,
}

impl Standing {
    fn of(lab: &Lab) -> Self {
        let serves = |node: &Node| etcd::view(lab, *node).is_ok_and(|view| view.reads && !view.learner);
        let (serving, others): (Vec<Node>, Vec<Node>) = NODES.into_iter().partition(serves);
        let by = host::any_running(lab);
        let started = by.as_ref().map(|by| cluster::has_etcd_started(lab, *by)).unwrap_or_default();
        let is_refused = |node: &Node| !started.contains(node);
        let mut standing = Self { serving, ..Self::default() };
        for node in others {
            match by.as_ref().ok().filter(|_| is_refused(&node)).and_then(|by| refusal(lab, *by, node)) {
                Some(reason) => standing.refusing.push((node, reason)),
                None => standing.waiting.push((node, last_words(lab, node))),
            }
        }
        standing
    }

    /// Returns the time after which this state is final if it does not change.
    fn settles_within(&self) -> Duration {
        if self.waiting.is_empty() { SETTLED } else { SETTLED_WHILE_WAITING }
    }

    fn words(&self) -> String {
        let serving = self.serving.iter().map(|node| format!("{node} serves"));
        let refusing = self.refusing.iter().map(|(node, reason)| format!("{node} refuses: {reason}"));
        let waiting = self.waiting.iter().map(|(node, words)| format!("{node} only logs: {words}"));
        serving.chain(refusing).chain(waiting).collect::<Vec<_>>().join("; ")
    }
}

/// Returns the exit reason of etcd's last failed action on `node`, as Pacemaker on `by` reports it. `None` if there
/// is no such failure.
pub(super) fn refusal(lab: &Lab, by: Node, node: Node) -> Option<String> {
    let failures = cluster::failures(lab, by).into_iter();
    let mut of_etcd = failures.filter(|failure| failure.is_on(node) && failure.action.starts_with(cluster::ETCD));
    of_etcd.next_back().map(|failure| failure.reason).filter(|reason| !reason.is_empty())
}

/// Returns the last line of the agent's log on a node, without the time and the process.
fn last_words(lab: &Lab, node: Node) -> String {
    let log = std::fs::read(lab.messages(node)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let line = log.lines().rfind(|line| line.contains("podman-etcd(")).unwrap_or_default();
    line.split_once("]: ").map_or(line, |(_, words)| words).to_owned()
}

/// Fails unless `reason`, the exit reason of a node that refuses to serve, names a command or a node.
pub(super) fn must_name_something(node: Node, reason: &str) -> Result<()> {
    let names = reason.matches('\'').count() >= 2 || NODES.iter().any(|other| reason.contains(other.name()));
    if names { Ok(()) } else { Err(format!("{node} refuses and names nothing to do: {reason}").into()) }
}

/// Waits until both nodes are voters, or until their state is final. Returns `None` for two voters.
fn settle(lab: &Lab) -> Result<Option<Standing>> {
    let began = Instant::now();
    let (mut last, mut since) = (Standing::default(), began);
    loop {
        if etcd::two_voters(lab).is_ok() {
            return Ok(None);
        }
        interrupt::check()?;
        let seen = Standing::of(lab);
        if seen != last {
            (last, since) = (seen, Instant::now());
        }
        if since.elapsed() >= last.settles_within() || began.elapsed() >= LIMIT {
            return Ok(Some(last));
        }
        std::thread::sleep(POLL);
    }
}

pub(super) fn judge(mut scene: Scene<'_>, holder: &Holder) -> Result<Outcome> {
    let lab = scene.lab;
    let Some(standing) = settle(lab)? else { return served(scene, "both serve".to_owned()) };
    lab.event(&standing.words());
    let mut wrong = faults(lab, &standing, holder).err().map(|error| error.to_string());
    let mut words = standing.words();
    let names_the_choice = |(_, reason): &(Node, String)| reason.contains(CHOICE);
    if wrong.is_none() && standing.serving.is_empty() && standing.refusing.iter().any(names_the_choice) {
        choose(lab, holder.node)?;
        words = format!("{words}; the operator chose {}", holder.node);
        match settle(lab)? {
            None => return served(scene, format!("{words}, and both serve")),
            Some(standing) => wrong = Some(format!("after the choice {}", standing.words())),
        }
    }
    let verdict = scene.writers.judge_by(&standing.serving, None)?;
    Ok(Outcome {
        acknowledged: verdict.acknowledged,
        lost: verdict.lost.len(),
        given_up: 0,
        gap: verdict.gap,
        // A lost write is the more important fault than a node without a reason.
        wrong: verdict.must_be_good().err().map(|error| error.to_string()).or(wrong),
        ending: Some(Ending { both_vote: false, words }),
    })
}

/// Judges a run in which both members vote in the end.
fn served(scene: Scene<'_>, words: String) -> Result<Outcome> {
    scene.writers.wait_on_each()?;
    let mut outcome = scene.judge()?;
    outcome.ending = Some(Ending { both_vote: true, words });
    Ok(outcome)
}

/// Checks the final state of a run without two voters. If no node serves, a disk must have the log with every
/// acknowledged write. The exit reason of each refusing node must name a command or a node. A waiting node must have
/// a peer with such a reason.
fn faults(lab: &Lab, standing: &Standing, holder: &Holder) -> Result<()> {
    if standing.serving.is_empty() {
        is_on_a_disk(lab, holder)?;
    }
    for (node, reason) in &standing.refusing {
        must_name_something(*node, reason)?;
    }
    // A voter waits for the vote of a node that refuses. The reason there resolves both, unless it asks for this very
    // node.
    let is_resolved = |waiting: Node| {
        let asks_for_it = format!("start {waiting}");
        standing.refusing.iter().any(|(_, reason)| !reason.contains(&asks_for_it))
    };
    if let Some((node, _)) = standing.waiting.iter().find(|(node, _)| !is_resolved(*node)) {
        return Err(format!("{node} neither serves nor refuses").into());
    }
    if standing.serving.len() == NODES.len() {
        return Err(format!("both nodes serve, and are not two voters: {:?}", etcd::two_voters(lab)).into());
    }
    Ok(())
}

/// Fails unless a disk still has the log with every acknowledged write.
fn is_on_a_disk(lab: &Lab, holder: &Holder) -> Result<()> {
    let Some(log) = &holder.log else {
        return Err(format!("{} served all the time, and does not any more", holder.node).into());
    };
    match log.lies_in(lab)? {
        Some(place) => {
            lab.event(&format!("every acknowledged write is in {}", place.display()));
            Ok(())
        }
        None => Err(format!("no disk has the log of {} that held every acknowledged write", holder.node).into()),
    }
}

/// Chooses the node with the newest data, as an operator does: sets the attribute that the exit reasons name to the name of this node.
fn choose(lab: &Lab, node: Node) -> Result<()> {
    lab.event(&format!("the operator chooses the data of {node}"));
    let words = ["crm_attribute", "--name", CHOICE, "--update", node.name()];
    host::must(lab, host::any_running(lab)?, &words).map(drop)
}

/// Judges a node that serves without its peer on a swapped data dir. The node must hold every write that was acknowledged before. Returns
/// `None` if it does, and otherwise the outcome of the failed run.
pub(super) fn serves_alone(scene: &mut Scene<'_>, node: Node, acknowledged: &[Ack]) -> Result<Option<Outcome>> {
    let end = scene.writers.read_back(node)?;
    let lost = history::lost(acknowledged, &end.store).len();
    let all = acknowledged.len();
    if lost == 0 {
        scene.lab.event(&format!("{node}, alone, serves with every acknowledged write"));
        return Ok(None);
    }
    let gap = history::longest_gap(acknowledged, Duration::ZERO, scene.writers.now()).0;
    let wrong = format!("{node}, alone, serves without {lost} of {all} acknowledged writes");
    let ending = Some(Ending { both_vote: false, words: format!("{node} serves alone") });
    Ok(Some(Outcome { acknowledged: all, lost, given_up: 0, gap, wrong: Some(wrong), ending }))
}
