//! One BMC of a race: the mark on it, the contents of its list, and a thread that asks it.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::name::{MarkName, Rival};
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::mark::{MarkBoard, Marks};
use crate::adapters::redfish::quirks::PowerWord;
use crate::adapters::redfish::resource::System;
use crate::fence::race::{Listing, RaceEvent, Raised, Site};
use crate::fence::sightings::Sightings;

/// The number of unanswered requests for a session after which the agent treats a BMC as one without sessions. A request counts
/// only if the BMC accepted the connection.
const SILENCES: u8 = 3;

/// The state of one BMC in a fence race. It has the session on this BMC by which this agent announces its reset, and the sessions
/// there by which the other node announces one.
#[derive(Debug)]
pub(super) struct Board {
    site: Site,
    marks: MarkBoard,
    name: MarkName,
    /// The path of this agent's own system; `None` if it is not configured, or once the agent has read the system.
    system: Option<String>,
    /// The reason why this BMC belongs to the wrong machine; `None` while nothing indicates that.
    wrong: Option<String>,
    sightings: Sightings,
    silences: u8,
    /// The failure of the first connection to this BMC; `None` once a step has reported it, or if there was no failure.
    unconnected: Option<Failure>,
    /// The outcome of the last step on this BMC; `None` once it is reported.
    event: Option<RaceEvent>,
    /// The path of the other node's mark session (see [`Site`]) in the BMC's last list of sessions; `None` if the list had none.
    rival: Option<String>,
    /// The reason why this BMC's list does not show this agent's mark session (see [`Site`]); `None` if the list shows it.
    why: Option<String>,
    /// True if the last search on this BMC found mark sessions (see [`Site`]) of the other node. `None` if the list could not be read, or
    /// did not contain this node's own session.
    swept: Option<bool>,
    /// The list of sessions from the last search for the other node's mark sessions (see [`Site`]).
    left: Marks,
}

impl Board {
    /// Creates the state of one BMC. `system` is the path of this agent's own system at that BMC, if it is configured.
    pub(super) fn new(site: Site, mut marks: MarkBoard, name: MarkName, system: Option<String>) -> Self {
        marks.hold();
        let sightings = Sightings::of(marks.client().address());
        let (wrong, silences, unconnected, event, rival, why, swept, left) = Default::default();
        Self { site, marks, name, system, wrong, sightings, silences, unconnected, event, rival, why, swept, left }
    }

    fn report(&mut self) -> Report {
        let Self { event, rival, why, swept, .. } = self;
        Report { event: event.take(), rival: rival.clone(), why: why.clone(), is_clean: *swept == Some(false) }
    }

    pub(super) fn connect(&mut self) {
        self.unconnected = self.marks.connect().err().filter(|failure| failure.kind == FailureKind::Unreachable);
    }

    pub(super) fn raise(&mut self) {
        let raised = match self.unconnected.take() {
            Some(failure) => Err(failure),
            None => self.marks.raise(&self.name.context()),
        };
        let raised = match raised {
            Ok(()) => Raised::Acknowledged,
            Err(failure) if self.has_answered(&failure) => Raised::Refused,
            Err(_) => Raised::Unanswered,
        };
        self.event = Some(RaceEvent::Raised(self.site, raised));
    }

    pub(super) fn read(&mut self) {
        let listing = match self.marks.read() {
            Ok(marks) => Some(self.judge(&marks)),
            Err(failure) => self.has_answered(&failure).then(Listing::default),
        };
        let listing = listing.map(|listing| Listing { ours: listing.ours && self.is_right(), ..listing });
        self.event = Some(RaceEvent::Listed(self.site, listing));
    }

    /// Records a failed request, and returns whether the fence race counts it as an answer of the BMC. It does if the BMC refused
    /// the request, or if it has accepted connections and left [`SILENCES`] requests unanswered.
    fn has_answered(&mut self, failure: &Failure) -> bool {
        self.why = Some(failure.to_string());
        let is_silent = matches!(failure.kind, FailureKind::Interrupted | FailureKind::Silent);
        self.silences = self.silences.saturating_add(u8::from(is_silent));
        failure.is_an_answer() || (is_silent && self.silences >= SILENCES)
    }

    /// Returns two facts from a list of sessions: whether it contains this agent's session, and whether it contains one of the
    /// other node.
    fn judge(&mut self, marks: &Marks) -> Listing {
        let user = self.marks.user().to_owned();
        let rivals: Vec<Rival> = marks.others.iter().filter_map(|other| self.name.rival(other, marks, &user)).collect();
        let known: Vec<&str> = rivals.iter().filter_map(|rival| rival.key.as_deref()).collect();
        let mut ages = self.sightings.note(&known).into_iter();
        let mut is_young = |rival: &&Rival| {
            let age = rival.key.as_ref().and_then(|_| ages.next());
            age.is_none_or(|age| age <= rival.longest)
        };
        self.rival = rivals.iter().filter(|rival| is_young(rival)).map(|rival| rival.shown.clone()).last();
        self.why = (!marks.ours).then(|| "its list of sessions does not show the mark of this run".to_owned());
        Listing { ours: marks.ours, rivals: self.rival.is_some() }
    }

    /// Returns whether this may be the BMC of the agent's own node. It is not if the agent's own system is off or missing at this
    /// BMC. Sessions in the list of a third machine's BMC announce nothing, because the other node's agent does not read that
    /// list.
    fn is_right(&mut self) -> bool {
        if let Some(uri) = &self.system {
            self.wrong = match self.marks.system(uri) {
                Ok(System { power, .. }) => power.is(PowerWord::Off).then(|| {
                    format!("{uri} is {power}, and this node runs: race_with names the BMC of another machine")
                }),
                Err(failure) if failure.kind == FailureKind::Missing => {
                    Some(format!("{uri} is not there: race_with names the BMC of another machine"))
                }
                Err(failure) => {
                    self.why = Some(failure.to_string());
                    return false;
                }
            };
            self.system = None;
        }
        if self.wrong.is_some() {
            self.why.clone_from(&self.wrong);
        }
        self.wrong.is_none()
    }

    /// Searches for mark sessions (see [`Site`]) that the other node has left, because that node is proven off. After its next boot, its
    /// agent would have to wait until these sessions end. Does not search the BMC of a third machine, because the sessions there belong
    /// to other nodes.
    pub(super) fn look_for_rivals(&mut self) {
        self.sightings.condemn();
        let marks = if self.marks.is_up() && self.wrong.is_none() { self.marks.read().ok() } else { None };
        let found = |marks: &Marks| marks.others.iter().any(|other| self.name.is_a_rivals(other));
        // A list without this node's mark may lack other marks, too.
        self.swept = marks.as_ref().and_then(|marks| marks.ours.then(|| found(marks)));
        self.left = marks.unwrap_or_default();
    }

    /// Deletes the sessions that [`Self::look_for_rivals`] has found, and this agent's own mark session (see [`Site`]).
    pub(super) fn leave(&mut self) {
        let left = std::mem::take(&mut self.left);
        for other in left.others.iter().filter(|other| self.name.is_a_rivals(other)) {
            if let Err(failure) = self.marks.delete(&other.path) {
                log::info!(
                    "race: a mark of the other node cannot be deleted and is kept until its session ends: {failure}"
                );
            }
        }
        self.marks.lower();
    }

    pub(super) fn touch(&mut self) {
        self.marks.touch();
    }

    pub(super) fn lower(&mut self) {
        self.marks.lower();
    }
}

/// The state of a [`Board`] after a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    /// The outcome of the step; `None` if the fence race does not need it.
    pub(super) event: Option<RaceEvent>,
    /// The path of the other node's mark session (see [`Site`]) in the BMC's last list of sessions; `None` if the list had none.
    pub(super) rival: Option<String>,
    /// The reason why the BMC's list does not show this agent's mark session (see [`Site`]); `None` if the list shows it.
    pub(super) why: Option<String>,
    /// True if the list showed no mark session (see [`Site`]) of the other node when this agent read it after that node was proven off.
    pub(super) is_clean: bool,
}

/// A [`Board`] with threads that execute one step after the other. Each step ends in limited time, because each of its requests
/// has a time limit.
#[derive(Debug)]
pub(super) struct Lane {
    board: Arc<Mutex<Board>>,
    address: String,
    /// The receiver of the last job's result; `None` once the result was received.
    job: Option<Receiver<Report>>,
    last: Report,
}

impl Lane {
    pub(super) fn new(board: Board) -> Self {
        let address = board.marks.client().address().short();
        Self { board: Arc::new(Mutex::new(board)), address, job: None, last: Report::default() }
    }

    /// Starts `job` in a thread, which first waits until the previous job has ended.
    pub(super) fn start(&mut self, job: impl FnOnce(&mut Board) + Send + 'static) {
        let (board, before) = (self.board.clone(), self.job.take());
        let (sends, receives) = mpsc::sync_channel(1);
        std::thread::spawn(move || {
            if let Some(before) = before {
                let _ = before.recv();
            }
            let mut board = board.lock().unwrap_or_else(PoisonError::into_inner);
            job(&mut board);
            let _ = sends.send(board.report());
        });
        self.job = Some(receives);
    }

    /// Waits for the last job for at most `patience`, and returns its outcome; `None` if the job is late.
    pub(super) fn wait(&mut self, patience: Duration) -> Option<RaceEvent> {
        match self.job.as_ref()?.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => {}
            Ok(report) => self.last = report,
        }
        self.job = None;
        self.last.event.take()
    }

    pub(super) fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the report of the last job that ended in time (see [`Self::wait`]).
    pub(super) fn last(&self) -> &Report {
        &self.last
    }
}
