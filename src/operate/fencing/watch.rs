//! Observes a fencing from the request until its last trace is gone, as the survivor sees it. It changes nothing after
//! the request: if the operator interrupts it, Pacemaker still completes the fencing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::ProgressBar;

use super::record::{Phases, seconds};
use crate::adapters::command::Programs;
use crate::adapters::corosync::quorum;
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::by_hand;
use crate::base::Fact;
use crate::fence::note;
use crate::operate::cluster::{self, Cluster};
use crate::operate::health::fencing::voters_of;
use crate::os::clock::{self, Deadline};
use crate::records::bmc_note;

/// Interval between two reads of etcd. It is short enough to measure any pause that a client would notice.
const READS: Duration = Duration::from_millis(100);
/// Longest time for a read of etcd. A slower read counts as failed.
const READ_LIMIT: Duration = Duration::from_secs(2);
const READS_AT_ONCE: usize = 25;
/// Interval between two observations of the members of Corosync and etcd.
const LOOKS: Duration = Duration::from_millis(200);
const LOOK_LIMIT: Duration = Duration::from_secs(2);
/// Interval between two observations of the whole cluster after the node was fenced.
const WHOLE_LOOKS: Duration = Duration::from_secs(1);
/// Time limit for Pacemaker's fencer. The fencer's own time-outs are shorter.
const FENCING: Duration = Duration::from_secs(180);

/// A fencing test in progress: the node to fence, and the callback that reports each phase.
pub(crate) struct Watch<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) resource: Option<&'a str>,
    /// The address of this node's etcd.
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) credentials: &'a Credentials,
    /// The name of the node that is fenced.
    pub(crate) node: &'a str,
    /// Corosync's id of the node that is fenced.
    pub(crate) id: u32,
    /// The deadline of the whole test.
    pub(crate) end: Deadline,
    /// The callback for each phase that is reached. It gets the phase's label and the time since the test began.
    pub(crate) reached: &'a (dyn Fn(&str, Duration) + Sync),
}

/// The outcome of a fencing test.
pub(crate) struct FencingSeen {
    pub(crate) phases: Phases,
    /// The reason why the test failed; `None` if it passed.
    pub(crate) why: Option<String>,
}

/// The phases that the fenced node has reached so far, each with the time since the test began.
#[derive(Clone, Copy, Default)]
struct Marks {
    off: Option<Duration>,
    told: Option<Duration>,
    on: Option<Duration>,
    /// True if the fenced node was once missing among Corosync's members.
    away: bool,
    /// True if the fenced node was once missing among etcd's voters.
    no_voter: bool,
    member: Option<Duration>,
    learner: Option<Duration>,
    voter: Option<Duration>,
    clean: Option<Duration>,
}

impl Marks {
    /// Returns the label and the time of each phase that was reached.
    fn reached(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        let all = [
            ("Off proven", self.off),
            ("Pacemaker told", self.told),
            ("On", self.on),
            ("Corosync member", self.member),
            ("learner", self.learner),
            ("voter", self.voter),
            ("nothing left to clean up", self.clean),
        ];
        all.into_iter().filter_map(|(name, at)| Some((name, at?)))
    }
}

/// The state of the node when its fencing was requested.
#[derive(Clone, Copy)]
struct Before {
    /// Time of the request, in milliseconds since 1970.
    began_at: u64,
    started: Option<Started>,
}

/// The time at which Pacemaker last started etcd on a node (`None` if unknown), and the number of that operation.
type Started = (Option<u64>, i64);

impl Watch<'_> {
    /// Has Pacemaker fence the node, and observes it until it votes again and nothing is left to clean up.
    pub(crate) fn fence(&self, bar: &ProgressBar) -> FencingSeen {
        let began_at = clock::wall_millis();
        let started = started_there(&self.look_at_all(), self.node);
        let told: Mutex<Option<Result<Duration, String>>> = Mutex::new(None);
        let answered: Mutex<Vec<Duration>> = Mutex::new(Vec::new());
        let is_over = AtomicBool::new(false);
        let marks = std::thread::scope(|scope| {
            scope.spawn(|| {
                let done = by_hand::reboot(self.programs, self.node, self.end.at_most(FENCING));
                let done = done.map(|()| self.end.elapsed()).map_err(|error| error.to_string());
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            });
            scope.spawn(|| self.read(&answered, &is_over));
            let marks = self.follow(&told, Before { began_at, started }, bar);
            is_over.store(true, Ordering::Relaxed);
            marks
        });
        let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
        let answered = answered.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (writes, longest_pause) = longest_pause(answered, self.end.elapsed());
        let phases = Phases {
            off: marks.off.map(seconds),
            told: told.clone().and_then(Result::ok).map(seconds),
            writes: writes.map(seconds),
            longest_pause: Some(seconds(longest_pause)),
            on: marks.on.map(seconds),
            member: marks.member.map(seconds),
            learner: marks.learner.map(seconds),
            voter: marks.voter.map(seconds),
            clean: marks.clean.map(seconds),
        };
        FencingSeen { phases, why: self.missing(told, &marks) }
    }

    fn missing(&self, told: Option<Result<Duration, String>>, marks: &Marks) -> Option<String> {
        let limit = self.end.budget().as_secs();
        let node = self.node;
        match told {
            Some(Err(why)) => return Some(format!("{node} was not fenced: {why}")),
            None => return Some(format!("{node} was not fenced within {limit} s: see 'pcs stonith history'")),
            Some(Ok(_)) => {}
        }
        let lacks = lacks(marks)?;
        Some(format!("{node} {lacks} after {limit} s: see 'tandem status'"))
    }

    /// Reads from etcd repeatedly until the test is over, and records the time of each success. Each read has a thread of its own,
    /// because a read without a majority blocks.
    fn read(&self, answered: &Mutex<Vec<Duration>>, is_over: &AtomicBool) {
        let waiting = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !is_over.load(Ordering::Relaxed) {
                if waiting.load(Ordering::Relaxed) < READS_AT_ONCE {
                    waiting.fetch_add(1, Ordering::Relaxed);
                    scope.spawn(|| {
                        if blocking::confirmed_read(self.endpoint, self.credentials, READ_LIMIT).is_ok() {
                            answered.lock().unwrap_or_else(PoisonError::into_inner).push(self.end.elapsed());
                        }
                        waiting.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                clock::sleep(READS);
            }
        });
    }

    /// Observes the fenced node until it is back and nothing is left to clean up, the fencing failed, or the deadline passed.
    fn follow(&self, told: &Mutex<Option<Result<Duration, String>>>, before: Before, bar: &ProgressBar) -> Marks {
        let mut marks = Marks::default();
        let mut shown = Vec::new();
        let mut next_whole = Deadline::after(Duration::ZERO);
        while !self.end.has_passed() {
            let told = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if matches!(told, Some(Err(_))) {
                break;
            }
            marks.told = told.and_then(Result::ok);
            (marks.off, marks.on) = powered(before.began_at);
            self.look(&mut marks);
            bar.set_message(format!("{}: {}", self.node, step(&marks)));
            bar.tick();
            let is_due = marks.told.is_some() && next_whole.has_passed();
            let is_over = is_due && self.is_over(&mut marks, before.started);
            if is_due {
                next_whole = Deadline::after(WHOLE_LOOKS);
            }
            bar.suspend(|| self.show(&marks, &mut shown));
            if is_over {
                break;
            }
            self.end.sleep(LOOKS);
        }
        bar.finish_and_clear();
        marks
    }

    /// Reports each phase that was reached and is not in `shown`, ordered by time.
    fn show(&self, marks: &Marks, shown: &mut Vec<&'static str>) {
        let mut reached: Vec<_> = marks.reached().filter(|(name, _)| !shown.contains(name)).collect();
        reached.sort_by_key(|(_, at)| *at);
        for (name, at) in reached {
            (self.reached)(name, at);
            shown.push(name);
        }
    }

    /// Returns whether the fenced node votes and nothing is left to clean up. A node may return so fast that it is never seen as absent.
    /// Such a node counts as a voter once Pacemaker has started its etcd again.
    fn is_over(&self, marks: &mut Marks, started: Option<Started>) -> bool {
        if marks.voter.is_none() && marks.no_voter {
            return false;
        }
        let cluster = self.look_at_all();
        if marks.voter.is_none() && has_started_again(&cluster, self.node, started) {
            marks.voter = Some(self.end.elapsed());
        }
        if marks.voter.is_some() && nothing_is_left(&cluster, self.node) {
            marks.clean = Some(self.end.elapsed());
            return true;
        }
        false
    }

    fn look_at_all(&self) -> Cluster {
        cluster::look(self.programs, self.resource, &Limits::default())
    }

    /// Updates `marks` with the current members of Corosync and etcd. A failed query changes nothing.
    fn look(&self, marks: &mut Marks) {
        let now = || Some(self.end.elapsed());
        if marks.member.is_none()
            && let Fact::Known(quorum) = quorum::ask(self.programs, &Limits::default())
        {
            let is_there = quorum.members.contains(&self.id);
            marks.away |= !is_there;
            marks.member = if is_there && marks.away { now() } else { None };
        }
        if marks.voter.is_some() {
            return;
        }
        let Fact::Known(etcd) = blocking::observe(self.endpoint, self.credentials, LOOK_LIMIT).etcd else { return };
        // A learner that has not started yet has no name. Only the fenced node can be that learner.
        let own = etcd
            .members
            .iter()
            .find(|member| member.name == self.node || (member.is_learner && member.name.is_empty()));
        marks.no_voter |= own.is_none_or(|member| member.is_learner);
        match own {
            Some(member) if member.is_learner => marks.learner = marks.learner.or_else(now),
            Some(_) if marks.no_voter => marks.voter = now(),
            _ => {}
        }
    }
}

/// Returns the first phase that the fenced node has not reached, in words; `None` if it has reached all.
fn lacks(marks: &Marks) -> Option<&'static str> {
    match marks {
        Marks { voter: None, member: None, .. } => Some("has not come back to the cluster"),
        Marks { learner: None, voter: None, .. } => Some("has not come back to etcd"),
        Marks { voter: None, .. } => Some("is a learner still"),
        Marks { clean: None, .. } => Some("is a voter again, and something is left to clean up"),
        Marks { .. } => None,
    }
}

/// Returns the last successful start of etcd on `node`; `None` if Pacemaker knows of none. Pacemaker drops a node's
/// history when it fences the node.
fn started_there(cluster: &Cluster, node: &str) -> Option<Started> {
    let etcd = cluster.configuration.known()?.etcd.as_ref()?;
    let histories = &cluster.pacemaker.known()?.histories;
    let history = histories.iter().find(|history| history.node == node && history.resource == etcd.id)?;
    let start = history.operations.iter().find(|one| one.task == "start" && one.rc == 0)?;
    Some((start.last_change, start.call))
}

/// Returns whether Pacemaker has started etcd on `node` after its earlier start `before`, and etcd on `node` votes
/// now.
fn has_started_again(cluster: &Cluster, node: &str, before: Option<Started>) -> bool {
    let started = started_there(cluster, node);
    let votes = voters_of(cluster).is_some_and(|voters| voters.contains(node));
    let answers =
        cluster.etcd.get(node).and_then(Fact::known).is_some_and(|etcd| etcd.leader.is_some() && !etcd.learner);
    started.is_some() && started != before && votes && answers
}

/// Returns whether the operator has nothing to clean up: both nodes are online, no failure lasts, and nothing is pending.
fn nothing_is_left(cluster: &Cluster, node: &str) -> bool {
    let Fact::Known(pacemaker) = &cluster.pacemaker else { return false };
    let is_back = |one: &crate::adapters::pacemaker::seen::Node| one.online && !one.unclean && !one.pending;
    let etcd = cluster.configuration.known().and_then(|configuration| configuration.etcd.as_ref());
    let runs = etcd.is_none_or(|etcd| {
        let mut instances = pacemaker.resources.iter().filter(|one| one.id == etcd.id);
        instances.any(|one| one.active && one.pending.is_none() && one.nodes.iter().any(|at| at == node))
    });
    // A failure of a resource that runs again needs no clean-up, although Pacemaker still lists it.
    let has_healed = |failure: &crate::adapters::pacemaker::seen::Failure| {
        let mut instances = pacemaker.resources.iter().filter(|one| one.id == failure.resource);
        instances.any(|one| {
            let is_there = one.agent.starts_with("stonith:") || one.nodes.contains(&failure.node);
            is_there && one.active && !one.failed && !one.blocked
        })
    };
    runs && pacemaker.failures.iter().all(has_healed)
        && pacemaker.nodes.iter().all(is_back)
        && pacemaker.nodes.iter().any(|one| one.name == node)
        && pacemaker.fencing.iter().all(|fencing| fencing.status != "pending")
}

/// Returns in words what a fencing test waits for.
fn step(marks: &Marks) -> &'static str {
    match (marks.told.is_some(), marks) {
        (false, _) => "being fenced",
        (true, Marks { voter: Some(_), .. }) => "a voter again; waiting until nothing is left to clean up",
        (true, Marks { learner: Some(_), .. }) => "a learner; waiting until it votes",
        (true, Marks { member: Some(_), .. }) => "back in the cluster; waiting for its etcd",
        (true, _) => "fenced; waiting for it to boot",
    }
}

/// Returns the time at which reads succeeded again after their longest pause, and the length of that pause. The time is `None` if the
/// pause lasts until `end`. The time from the test's begin to the first successful read counts as a pause.
fn longest_pause(mut answered: Vec<Duration>, end: Duration) -> (Option<Duration>, Duration) {
    answered.sort_unstable();
    let mut last = Duration::ZERO;
    let mut longest = (None, Duration::ZERO);
    for (at, is_answer) in answered.into_iter().map(|at| (at, true)).chain([(end, false)]) {
        let pause = at.saturating_sub(last);
        if pause > longest.1 {
            longest = (is_answer.then_some(at), pause);
        }
        last = at;
    }
    longest
}

/// Returns the times from `began_at` until this node's fence agent had proof of Off, and of On; `None` without proof.
fn powered(began_at: u64) -> (Option<Duration>, Option<Duration>) {
    let notes = note::all(Path::new(bmc_note::DIRECTORY));
    let note = notes
        .iter()
        .filter(|note| note.off_at_millis.is_some_and(|at| at >= began_at))
        .max_by_key(|note| note.off_at_millis);
    let since = |at: Option<u64>| at?.checked_sub(began_at).map(Duration::from_millis);
    (since(note.and_then(|note| note.off_at_millis)), since(note.and_then(|note| note.on_at_millis)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::health::fencing::tests::healthy;

    #[test]
    fn the_longest_pause_is_found_with_its_end() {
        let millis = |list: &[u64]| list.iter().copied().map(Duration::from_millis).collect::<Vec<_>>();
        let found = |answered: &[u64], end| longest_pause(millis(answered), Duration::from_millis(end));
        let of = |end, pause| (Some(Duration::from_millis(end)), Duration::from_millis(pause));
        assert_eq!(found(&[100, 200, 5_300, 5_400], 5_500), of(5_300, 5_100));
        assert_eq!(found(&[5_300, 200, 100], 5_400), of(5_300, 5_100), "they end in any order");
        assert_eq!(found(&[4_000, 4_100], 4_200), of(4_000, 4_000), "a pause from the beginning on");
        assert_eq!(found(&[100], 9_000), (None, Duration::from_millis(8_900)), "one that never ended");
        assert_eq!(found(&[], 9_000), (None, Duration::from_secs(9)));
    }

    /// Asserts that a node counts as back once Pacemaker has started its etcd anew, even if the node returned before Corosync missed it.
    /// Such a node is never seen as absent or as a learner.
    #[test]
    fn a_node_that_was_never_missed_votes_again_once_its_etcd_was_started_anew() {
        let mut cluster = healthy();
        let before = started_there(&cluster, "node2");
        assert!(before.is_some());
        assert!(!has_started_again(&cluster, "node2", before), "that is the start from before");
        let start = |cluster: &mut Cluster, task: &str| {
            let Fact::Known(pacemaker) = &mut cluster.pacemaker else { panic!() };
            let history =
                pacemaker.histories.iter_mut().find(|one| one.node == "node2" && one.resource == "etcd").unwrap();
            let start = history.operations.iter_mut().find(|one| one.task == "start").unwrap();
            (start.last_change, start.task) = (start.last_change.map(|at| at + 60), task.to_owned());
        };
        let mut forgotten = healthy();
        start(&mut forgotten, "probe");
        assert!(
            !has_started_again(&forgotten, "node2", before),
            "Pacemaker has forgotten the start, and has not begun anew"
        );
        start(&mut cluster, "start");
        assert!(has_started_again(&cluster, "node2", before));
        cluster.etcd.insert("node2".to_owned(), Fact::Absent);
        assert!(!has_started_again(&cluster, "node2", before), "it does not run");
        let over = Marks { voter: Some(Duration::ZERO), clean: Some(Duration::ZERO), ..Marks::default() };
        assert_eq!(lacks(&over), None, "what was never seen does not fail it");
    }

    #[test]
    fn something_is_left_while_anybody_could_see_it() {
        let cluster = healthy();
        assert!(nothing_is_left(&cluster, "node2"));
        let with = |change: fn(&mut crate::adapters::pacemaker::seen::Pacemaker)| {
            let mut cluster = healthy();
            let Fact::Known(pacemaker) = &mut cluster.pacemaker else { panic!() };
            change(pacemaker);
            nothing_is_left(&cluster, "node2")
        };
        assert!(!with(|pacemaker| pacemaker.failures.push(crate::adapters::pacemaker::seen::Failure::default())));
        let healed = |pacemaker: &mut crate::adapters::pacemaker::seen::Pacemaker| {
            let failure = crate::adapters::pacemaker::seen::Failure {
                resource: "etcd".to_owned(),
                node: "node1".to_owned(),
                ..Default::default()
            };
            pacemaker.failures.push(failure);
        };
        assert!(with(healed));
        assert!(!with(|pacemaker| pacemaker.nodes[1].online = false));
        assert!(!with(|pacemaker| pacemaker.nodes.truncate(1)));
        assert!(!with(|pacemaker| pacemaker.resources.retain(|one| one.nodes != ["node2"] || one.id != "etcd")));
        let pending = crate::adapters::pacemaker::seen::Fencing {
            status: "pending".to_owned(),
            ..crate::adapters::pacemaker::seen::Fencing::default()
        };
        let mut cluster = healthy();
        if let Fact::Known(pacemaker) = &mut cluster.pacemaker {
            pacemaker.fencing.push(pending);
        }
        assert!(!nothing_is_left(&cluster, "node2"));
        assert!(!nothing_is_left(&Cluster::default(), "node2"));
    }
}
