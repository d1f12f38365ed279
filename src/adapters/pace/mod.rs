//! The time limits of questions to other programs: etcd, podman, Pacemaker. On a fast machine each question has a fixed limit,
//! its floor, so that a dead or hung program is noticed soon. A machine that is many times slower answers later and is just as
//! healthy. There the limit follows from the times of such questions in this boot, and from the rest of the action's time.

pub mod limits;
mod outcomes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::Fact;
use crate::os::clock::Deadline;
use crate::records::state_file;
use outcomes::{Outcome, Outcomes};

/// The kind of a request to another program. The durations of each kind are recorded separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// A request for the state of this node's own etcd.
    OwnEtcd,
    /// A request for the state of the peer's etcd. A machine without power does not refuse the connection, so the request times out.
    PeerEtcd,
    /// A request for the members on the peer port of this node's etcd.
    OwnPeerPort,
    /// An additional check in a monitor, which the operator has configured.
    Check,
    /// A request that changes etcd's members.
    Members,
    /// A whole run of a vote proxy, which votes in place of a dead member. A usual run takes less than a tenth of the least limit (see
    /// [`Question::floor`]).
    #[serde(rename = "stand_in")]
    VoteProxy,
    /// A confirmed read or a write through this node's etcd, after this etcd has become the only voter.
    Proof,
    /// A run of a Pacemaker tool. The CIB's manager answers in milliseconds, unless it has a problem.
    Pacemaker,
    /// A podman command that only reads, about containers or images.
    Podman,
    /// A podman command that changes something, except the launch of etcd's container.
    PodmanChange,
    /// A run of a container that prints the version of etcd in its image.
    ImageVersion,
    /// The launch of etcd's container by podman.
    Launch,
}

/// The time limit of a request to another program.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// A limit that is the same on every machine.
    Fixed(Duration),
    Of(Question),
    /// The present limit of a [`Question`], plus the time in the first field, which the request takes in any case.
    Beyond(Duration, Question),
}

impl From<Duration> for Limit {
    fn from(fixed: Duration) -> Self {
        Self::Fixed(fixed)
    }
}

impl From<Question> for Limit {
    fn from(question: Question) -> Self {
        Self::Of(question)
    }
}

/// The greatest share of the action's remaining time that one request may take, because further requests follow.
const SHARE: (u32, u32) = (2, 5);
/// The greatest share of the action's remaining time that requests to this node's own etcd may take. It is large, because a monitor exists
/// to learn that etcd's state, and etcd serves its clients at the same time.
const SHARE_OF_OUR_ETCD: (u32, u32) = (3, 5);
/// The share of a probe's remaining time that podman may take. A probe asks podman only whether etcd runs, and fails without an
/// answer. The rest of the time is for publishing this node's state.
const SHARE_IN_A_PROBE: (u32, u32) = (3, 4);
/// The longest time that a Pacemaker tool takes on a machine that counts as fast. Such a tool runs in every observation.
const QUICK: Duration = Duration::from_millis(500);
/// The limit of a vote proxy, as a multiple of the longest recorded time of a Pacemaker tool. A vote proxy usually runs once in a boot, so
/// no durations of it are recorded. On a fast machine the product is at most the least limit (see [`Question::floor`]).
const VOTE_PROXY_PER_TOOL: u32 = 6;
/// The time that an action must have left to launch etcd's container, as a multiple (numerator, denominator) of the slowest recorded
/// launch. The agent does not begin a launch that would be cut short.
const LAUNCH_MARGIN: (u32, u32) = (3, 2);

impl Question {
    /// Returns the least time limit of this kind of request, which applies on every machine.
    pub fn floor(self) -> Duration {
        Duration::from_millis(match self {
            Self::OwnPeerPort => 1_000,
            Self::PeerEtcd => 1_500,
            Self::Proof => 2_000,
            Self::OwnEtcd => 2_500,
            Self::VoteProxy => 3_000,
            Self::Check => 4_000,
            Self::Members => 5_000,
            Self::Pacemaker | Self::Podman | Self::PodmanChange => 8_000,
            Self::ImageVersion => 20_000,
            Self::Launch => 60_000,
        })
    }

    /// Returns whether only programs on this machine must answer, so that a late answer may mean a slow machine. An etcd that does not
    /// answer may also lack its leader, or hang.
    fn is_of_a_program(self) -> bool {
        matches!(self, Self::Pacemaker | Self::Podman | Self::PodmanChange | Self::ImageVersion | Self::Launch)
    }
}

/// The durations and counts that are kept between two actions, until the next boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    questions: BTreeMap<Question, Outcomes>,
    /// The number of consecutive actions that had too little time left for a recovery, and postponed it to the next action.
    #[serde(default)]
    postponed: u64,
}

/// The speed of this machine. The time limits of an action's requests follow from it.
#[derive(Debug, Default)]
pub struct Pace {
    /// The file in which durations are recorded; `None` for an observation outside of an action, which records nothing.
    path: Option<PathBuf>,
    /// The deadline of the action, which no request outlasts; `None` outside of an action.
    end: Option<Deadline>,
    /// True if the action is a probe. A probe is usually the first action in a boot: no durations are recorded yet, and
    /// everything is slowest.
    is_probe: bool,
    kept: Mutex<Kept>,
}

impl Pace {
    /// Creates a `Pace` for an action that ends at `end`, without recorded durations.
    pub fn until(end: Deadline) -> Self {
        Self::default().ending(end)
    }

    /// Reads the recorded durations from the file at `path`, which it does not change. An invalid file counts as missing.
    pub fn read(path: &Path) -> Self {
        let kept = match state_file::read::<Kept>(path) {
            Fact::Known(kept) => kept,
            Fact::Absent | Fact::NotAsked => Kept::default(),
            Fact::Unknown(why) => {
                log::debug!("the durations of this machine cannot be read and are measured again: {why}");
                Kept::default()
            }
        };
        Self { kept: Mutex::new(kept), ..Self::default() }
    }

    /// Returns this `Pace` with the deadline `end`.
    #[must_use]
    pub fn ending(self, end: Deadline) -> Self {
        Self { end: Some(end), ..self }
    }

    /// Returns this `Pace` with `path` as the file in which durations are recorded.
    #[must_use]
    pub fn kept_at(self, path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }

    /// Returns this `Pace` for an action that is a probe, in which podman may take most of the time.
    #[must_use]
    pub fn of_a_probe(self) -> Self {
        Self { is_probe: true, ..self }
    }

    /// Returns the time that Pacemaker needs to receive an action's result. It is the longest recorded time of a Pacemaker tool,
    /// because both need the same daemons.
    pub fn answer_takes(&self) -> Duration {
        self.kept().of(Question::Pacemaker).slowest()
    }

    /// Returns the time limit that a request of the kind `question` has now.
    pub fn limit(&self, question: Question) -> Duration {
        let kept = self.kept();
        let is_quick = kept.is_quick();
        let floor = question.floor();
        // The CIB is asked before podman. If that was fast, a podman that does not answer hangs.
        let has_the_rest = self.is_probe && question == Question::Podman && !is_quick;
        // On a fast machine a missing answer does not mean slowness. The program hangs, or has no leader.
        let may_guess = question.is_of_a_program() || !is_quick;
        let wanted = kept.of(question).wanted(floor, may_guess);
        let wanted = match question {
            Question::VoteProxy => wanted.max(kept.of(Question::Pacemaker).slowest() * VOTE_PROXY_PER_TOOL),
            _ => wanted,
        };
        drop(kept);
        let Some(end) = self.end else { return wanted.max(floor) };
        if has_the_rest {
            return part(end.left(), SHARE_IN_A_PROBE);
        }
        let share = match question {
            // No question follows a launch.
            Question::Launch => end.left(),
            Question::OwnEtcd => part(end.left(), SHARE_OF_OUR_ETCD),
            _ => part(end.left(), SHARE),
        };
        end.at_most(floor.max(wanted.min(share)))
    }

    /// Calls `ask` with the time limit that `limit` gives. Records the duration, unless the limit is fixed. `is_too_late` returns whether
    /// an error means that the time limit was exceeded.
    pub fn within<T, E>(
        &self,
        limit: impl Into<Limit>,
        ask: impl FnOnce(Duration) -> Result<T, E>,
        is_too_late: impl FnOnce(&E) -> bool,
    ) -> Result<T, E> {
        let (besides, question) = match limit.into() {
            Limit::Fixed(fixed) => return ask(self.end.map_or(fixed, |end| end.at_most(fixed))),
            Limit::Of(question) => (Duration::ZERO, question),
            Limit::Beyond(besides, question) => (besides, question),
        };
        let limit = besides + self.limit(question);
        let limit = self.end.map_or(limit, |end| end.at_most(limit));
        let began = Deadline::after(limit);
        let answer = ask(limit);
        match &answer {
            Err(error) if is_too_late(error) => self.too_late(question, began.elapsed().saturating_sub(besides)),
            // A failed question may never have been asked. One that ended before its expected time shows nothing about the rest.
            Err(_) => {}
            Ok(_) if began.elapsed() < besides => {}
            Ok(_) => self.answered(question, began.elapsed().saturating_sub(besides)),
        }
        answer
    }

    /// Records that a request of the kind `question` was answered after the time `took`.
    pub fn answered(&self, question: Question, took: Duration) {
        self.note(question, Outcome::answered(took));
    }

    /// Records that a request of the kind `question` was not answered within `waited`. The next one of that kind gets a longer
    /// limit.
    pub fn too_late(&self, question: Question, waited: Duration) {
        self.note(question, Outcome::too_late(waited));
    }

    /// Returns how many of the last requests of the kind `question` timed out without an answer in between. Only the last few requests are
    /// recorded.
    pub fn unanswered(&self, question: Question) -> u64 {
        self.kept().of(question).unanswered()
    }

    /// Returns the time that an action must have left to begin the launch of etcd's container, including the podman command
    /// before it.
    pub fn launch_needs(&self) -> Duration {
        let kept = self.kept();
        let launches = kept.of(Question::Launch);
        let guessed = launches.guessed(Question::Launch.floor());
        let needed = guessed.max(launches.slowest() * LAUNCH_MARGIN.0 / LAUNCH_MARGIN.1);
        needed + kept.of(Question::Podman).slowest()
    }

    /// Returns the number of consecutive actions that had too little time left for a recovery, and postponed it to the next action.
    pub fn postponed(&self) -> u64 {
        self.kept().postponed
    }

    /// Records whether this action postpones a recovery to the next action, because it has too little time left.
    pub fn note_postponed(&self, is_postponed: bool) {
        let mut kept = self.kept();
        let before = std::mem::take(&mut kept.postponed);
        kept.postponed = if is_postponed { before.saturating_add(1) } else { 0 };
        if kept.postponed != before {
            self.keep(&kept);
        }
    }

    fn note(&self, question: Question, outcome: Outcome) {
        let mut kept = self.kept();
        if kept.questions.entry(question).or_default().add(outcome, question.floor()) {
            self.keep(&kept);
        }
    }

    /// Writes `kept` to its file at once, because a slow action may be killed. A failure is only logged, because the durations
    /// can be measured again.
    fn keep(&self, kept: &Kept) {
        if let Some(path) = &self.path
            && let Err(error) = state_file::write(path, kept)
        {
            log::debug!("the durations of this machine cannot be recorded: {error}");
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn part(whole: Duration, (of, in_all): (u32, u32)) -> Duration {
    whole * of / in_all
}

impl Kept {
    fn of(&self, question: Question) -> Outcomes {
        self.questions.get(&question).cloned().unwrap_or_default()
    }

    /// Returns whether every recorded run of a Pacemaker tool was fast; false if none is recorded.
    fn is_quick(&self) -> bool {
        self.questions.get(&Question::Pacemaker).is_some_and(|outcomes| outcomes.are_all_within(QUICK))
    }
}

#[cfg(test)]
mod tests;
