//! The Kubernetes API: the list of the group's Nodes, a watch of the own Node, and the read that breaks a tie. Each has its own
//! thread, so that an API server that does not answer delays none of the others.

mod disarming;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::report::{Report, Told};
use crate::adapters::kubernetes::nodes::{self, Change, Failure, Node};
use crate::fencing_agent::config::kubernetes::Kubernetes as Config;
use crate::os::clock;

/// Duration after which the API server ends a watch.
const WATCH: Duration = Duration::from_secs(240);
/// Pause after the API server did not answer.
const PAUSE: Duration = Duration::from_secs(2);
/// Pause before the Node is read again, after the API server has refused a watch from an old resource version.
const AGAIN: Duration = Duration::from_secs(1);
/// Shortest time between two lists of the group's Nodes.
const LEAST_INTERVAL: Duration = Duration::from_secs(10);
/// Time limit of a read of this node's Node. The answer decides for this node if exactly half of the members are reachable.
const READ: Duration = Duration::from_secs(2);

/// The function that a thread runs.
type Thread = Box<dyn FnOnce(Config, UnboundedSender<Report>) + Send>;

/// The handle of the three threads that use the Kubernetes API.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    reads: Sender<Duration>,
    lists: Sender<()>,
    /// The time at which the watch of this node's Node last received anything, in nanoseconds since boot; 0 if it never did.
    heard: Arc<AtomicU64>,
}

impl Kubernetes {
    /// Starts the threads for the Kubernetes API. They end with the process.
    pub(crate) fn start(asked: &Config, reports: &UnboundedSender<Report>) -> std::io::Result<Self> {
        let ((reads, read), (lists, list)) = (mpsc::channel(), mpsc::channel());
        let heard = Arc::new(AtomicU64::new(0));
        let threads: [(&str, Thread); 3] = [
            ("api read", Box::new(move |asked, reports| break_ties(&asked, &read, &reports))),
            ("api list", Box::new(move |asked, reports| keep_listing(&asked, &list, &reports))),
            ("api watch", {
                let heard = Arc::clone(&heard);
                Box::new(move |asked, reports| Follower::new(asked, reports, heard).follow())
            }),
        ];
        for (name, run) in threads {
            let (asked, reports) = (asked.clone(), reports.clone());
            std::thread::Builder::new().name(name.to_owned()).spawn(move || run(asked, reports))?;
        }
        Ok(Self { reads, lists, heard })
    }

    /// Requests a linearizable read of this node's Node. `asked` is the time of the request.
    pub(crate) fn read(&self, asked: Duration) {
        let _ = self.reads.send(asked);
    }

    /// Requests a new list of the group's Nodes, because an unlisted node sends datagrams.
    pub(crate) fn list(&self) {
        let _ = self.lists.send(());
    }

    /// Returns the time since the watch of this node's Node last received anything; `None` if it never did.
    pub(crate) fn watch_age(&self) -> Option<Duration> {
        match self.heard.load(Ordering::Relaxed) {
            0 => None,
            heard => Some(Duration::from_nanos(clock::boot_nanoseconds().saturating_sub(heard))),
        }
    }
}

/// Sends a report to the main loop. Returns whether the loop still exists.
fn send(reports: &UnboundedSender<Report>, told: Told) -> bool {
    reports.send(Report::Kubernetes(told)).is_ok()
}

/// Reads this node's Node for each request in `reads`, and reports whether the API server answered. If several requests wait, serves only
/// the newest, because an answer counts from the time of its request.
fn break_ties(asked: &Config, reads: &Receiver<Duration>, reports: &UnboundedSender<Report>) {
    let asked = Config { api_timeout: asked.api_timeout.min(READ), ..asked.clone() };
    while let Ok(first) = reads.recv() {
        let at = reads.try_iter().last().unwrap_or(first);
        let told = if asked.read().is_ok() { Told::Answered(at) } else { Told::Failed(at) };
        if !send(reports, told) {
            break;
        }
    }
}

/// Lists the group's Nodes at each interval and for each request in `lists`, and reports the members.
fn keep_listing(asked: &Config, lists: &Receiver<()>, reports: &UnboundedSender<Report>) {
    let mut failure = None;
    // The list of the start is still fresh.
    let mut wait = asked.check_interval;
    while !matches!(lists.recv_timeout(wait), Err(RecvTimeoutError::Disconnected)) {
        let _ = lists.try_iter().count();
        let told = match asked.list() {
            Ok(members) => {
                failure = None;
                Some(Told::Listed(members))
            }
            Err(why) => news(&mut failure, format!("the group cannot be listed: {why}")),
        };
        if told.is_some_and(|told| !send(reports, told)) {
            break;
        }
        clock::sleep(LEAST_INTERVAL.min(asked.check_interval));
        wait = asked.check_interval.saturating_sub(LEAST_INTERVAL);
    }
}

/// Returns a warning with the text `words`, and stores the text in `last`. Returns `None` if `last` has the same text.
fn news(last: &mut Option<String>, words: String) -> Option<Told> {
    if last.as_ref() == Some(&words) {
        return None;
    }
    *last = Some(words.clone());
    Some(Told::Warning(words))
}

/// The watch of this node's Node.
struct Follower {
    asked: Config,
    reports: UnboundedSender<Report>,
    heard: Arc<AtomicU64>,
    /// The Node's UID when it was first observed. A Node with the same name and another UID belongs to another machine.
    uid: Option<String>,
    failure: Option<String>,
    reasons: Option<Vec<String>>,
    is_over: bool,
}

impl Follower {
    fn new(asked: Config, reports: UnboundedSender<Report>, heard: Arc<AtomicU64>) -> Self {
        Self { asked, reports, heard, uid: None, failure: None, reasons: None, is_over: false }
    }

    fn follow(mut self) {
        while !self.is_over {
            match self.asked.begin() {
                Ok((node, version)) => {
                    self.look(node.as_ref());
                    self.watch(version);
                }
                Err(why) => self.failed(&why),
            }
        }
    }

    /// Watches the Node from the resource version `version` on. Returns when the Node must be read again.
    fn watch(&mut self, mut version: String) {
        while !self.is_over {
            let watch = self.asked.access().and_then(|access| nodes::watch(&access, &self.asked.node, &version, WATCH));
            let mut changes = match watch {
                Ok(changes) => changes,
                Err(Failure::TooOld) => return clock::sleep(AGAIN),
                Err(why) => {
                    self.failed(&why);
                    continue;
                }
            };
            self.hear();
            loop {
                match changes.next() {
                    Ok(Some(Change::Is(node))) => {
                        version.clone_from(&node.version);
                        self.look(Some(&node));
                    }
                    Ok(Some(Change::Gone(at))) => {
                        version = at;
                        self.look(None);
                    }
                    Ok(Some(Change::Version(at))) => {
                        version = at;
                        self.hear();
                    }
                    Ok(None) => break,
                    Err(Failure::TooOld) => return clock::sleep(AGAIN),
                    Err(why) => {
                        self.failed(&why);
                        break;
                    }
                }
                if self.is_over {
                    return;
                }
            }
        }
    }

    fn hear(&mut self) {
        self.failure = None;
        self.heard.store(clock::boot_nanoseconds(), Ordering::Relaxed);
    }

    /// Reports the reasons for not using the watchdog if they differ from those reported before. `node` is `None` if the Node was deleted.
    fn look(&mut self, node: Option<&Node>) {
        if self.uid.is_none() {
            self.uid = node.map(|node| node.uid.clone());
        }
        let reasons = disarming::reasons(&self.asked.node, node, self.uid.as_deref());
        self.hear();
        if self.reasons.as_ref() != Some(&reasons) {
            self.reasons = Some(reasons.clone());
            self.is_over |= !send(&self.reports, Told::Maintenance(reasons));
        }
    }

    /// Reports that the watch failed. The reasons for not using the watchdog that were read last remain in force, because the Node may
    /// still have them.
    fn failed(&mut self, why: &Failure) {
        let words = format!("the Node {} cannot be watched: {why}", self.asked.node);
        if let Some(told) = news(&mut self.failure, words) {
            self.is_over |= !send(&self.reports, told);
        }
        clock::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests;
