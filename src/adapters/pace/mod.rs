//! How long what is asked outside may take: etcd, podman, Pacemaker. On a quick machine each question has a fixed time, its
//! floor, so that who is dead or hangs is noticed soon. A machine that is many times slower answers later and is as healthy:
//! there it follows from what such questions took in this boot, and from what is left of the action's time.

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

/// What is asked: each kind is measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Our etcd, how it stands; it is on this machine.
    OwnEtcd,
    /// The peer's. A machine that lost its power does not even refuse.
    PeerEtcd,
    /// Our etcd's peer port, who its members are.
    OwnPeerPort,
    /// What an operator wants checked besides.
    Check,
    /// A change of etcd's members.
    Members,
    /// A vote proxy, all of it: a tenth of its floor is much.
    #[serde(rename = "stand_in")]
    VoteProxy,
    /// Our etcd, to confirm a read or to take a write once it is the only voter.
    Proof,
    /// One of Pacemaker's tools: the CIB's manager answers in milliseconds or is in trouble.
    Pacemaker,
    /// podman, what there is.
    Podman,
    /// podman, to change something, a launch excepted.
    PodmanChange,
    /// A container, which etcd its image holds.
    ImageVersion,
    /// podman, to launch etcd's container.
    Launch,
}

/// A time-out.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// The same on every machine.
    Fixed(Duration),
    Of(Question),
    /// What the question may take besides this, which is meant to pass.
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

/// Of what is left of the action's time one question has at most two fifths: others follow it.
const SHARE: (u32, u32) = (2, 5);
/// How our etcd stands is what a monitor is for, and it has to answer beside its clients.
const SHARE_OF_OUR_ETCD: (u32, u32) = (3, 5);
/// Whether etcd runs is the only thing that a probe asks podman, and it fails without an answer. The rest is for a last word of
/// this node's, published.
const SHARE_IN_A_PROBE: (u32, u32) = (3, 4);
/// What a tool of Pacemaker's takes on a quick machine, at most. It is asked with every look.
const QUICK: Duration = Duration::from_millis(500);
/// A vote proxy votes once in a boot, as a rule, so that nothing was measured of it: it may take so many times what Pacemaker's slowest tool
/// took, which is its floor where that was as slow as on a quick machine at most.
const VOTE_PROXY_PER_TOOL: u32 = 6;
/// A launch that would be cut short is not begun: it has half as much again as the slowest one took.
const LAUNCH_MARGIN: (u32, u32) = (3, 2);

impl Question {
    /// What it may take on any machine.
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

    /// Whether this machine alone has to answer. An etcd that is asked in vain may lack its leader, or hang.
    fn is_of_a_program(self) -> bool {
        matches!(self, Self::Pacemaker | Self::Podman | Self::PodmanChange | Self::ImageVersion | Self::Launch)
    }
}

/// What is kept between two actions, for this boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    questions: BTreeMap<Question, Outcomes>,
    /// How many actions in a row have left a recovery to the next one, as their time was too short for it.
    #[serde(default)]
    postponed: u64,
}

/// How long everything takes here, for the questions of one action.
#[derive(Debug, Default)]
pub struct Pace {
    /// Where it is kept; a look that is nobody's action keeps nothing.
    path: Option<PathBuf>,
    /// The end of the action, where it has one: nothing outlasts it.
    end: Option<Deadline>,
    /// Whether the action is a probe: mostly the first in a boot, of which nothing was measured, and that is slowest then.
    is_probe: bool,
    kept: Mutex<Kept>,
}

impl Pace {
    /// Of an action that ends at `end`, on a machine of which nothing is known.
    pub fn until(end: Deadline) -> Self {
        Self::default().ending(end)
    }

    /// As the file at `path` has it, which is left as it is. Rubbish in it counts as no file: what is not known is measured anew.
    pub fn read(path: &Path) -> Self {
        let kept = match state_file::read::<Kept>(path) {
            Fact::Known(kept) => kept,
            Fact::Absent | Fact::NotAsked => Kept::default(),
            Fact::Unknown(why) => {
                log::debug!("how long things take here is measured anew: {why}");
                Kept::default()
            }
        };
        Self { kept: Mutex::new(kept), ..Self::default() }
    }

    /// The same for a look or an action that ends at `end`.
    #[must_use]
    pub fn ending(self, end: Deadline) -> Self {
        Self { end: Some(end), ..self }
    }

    /// The same for an action, which adds what it measures to the file at `path`.
    #[must_use]
    pub fn kept_at(self, path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }

    /// The same for a probe.
    #[must_use]
    pub fn of_a_probe(self) -> Self {
        Self { is_probe: true, ..self }
    }

    /// What an answer to Pacemaker takes, from what its tools took in this boot: both need the same processes of Pacemaker's.
    pub fn answer_takes(&self) -> Duration {
        self.kept().of(Question::Pacemaker).slowest()
    }

    /// What `question` may take now.
    pub fn limit(&self, question: Question) -> Duration {
        let kept = self.kept();
        let is_quick = kept.is_quick();
        let floor = question.floor();
        // The CIB is asked before podman: where that was quick, a podman that is silent hangs.
        let has_the_rest = self.is_probe && question == Question::Podman && !is_quick;
        // On a quick machine silence is no slowness: who is asked hangs, or has no leader.
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
            // Nothing comes after it.
            Question::Launch => end.left(),
            Question::OwnEtcd => part(end.left(), SHARE_OF_OUR_ETCD),
            _ => part(end.left(), SHARE),
        };
        end.at_most(floor.max(wanted.min(share)))
    }

    /// Asks within a limit and remembers what came of it. `is_too_late` tells an error that is the limit's own.
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
            // What has failed may not have been asked, and what was over before its time tells nothing of the rest.
            Err(_) => {}
            Ok(_) if began.elapsed() < besides => {}
            Ok(_) => self.answered(question, began.elapsed().saturating_sub(besides)),
        }
        answer
    }

    /// `question` was answered, after so long.
    pub fn answered(&self, question: Question, took: Duration) {
        self.note(question, Outcome::answered(took));
    }

    /// `question` was not answered after so long: the next one of its kind has more.
    pub fn too_late(&self, question: Question, waited: Duration) {
        self.note(question, Outcome::too_late(waited));
    }

    /// How many of the last questions of this kind, up to now, were not answered in time. Of more than are kept it is those.
    pub fn unanswered(&self, question: Question) -> u64 {
        self.kept().of(question).unanswered()
    }

    /// What a launch is to have left of an action's time, with the question of what there is to launch.
    pub fn launch_needs(&self) -> Duration {
        let kept = self.kept();
        let launches = kept.of(Question::Launch);
        let guessed = launches.guessed(Question::Launch.floor());
        let needed = guessed.max(launches.slowest() * LAUNCH_MARGIN.0 / LAUNCH_MARGIN.1);
        needed + kept.of(Question::Podman).slowest()
    }

    /// How many actions in a row have left a recovery to the next one.
    pub fn postponed(&self) -> u64 {
        self.kept().postponed
    }

    /// This action leaves a recovery to the next one, or does not.
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

    /// At once, as a slow action may be killed. What cannot be kept is measured again.
    fn keep(&self, kept: &Kept) {
        if let Some(path) = &self.path
            && let Err(error) = state_file::write(path, kept)
        {
            log::debug!("how long things take here is not kept: {error}");
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

    /// Whether Pacemaker's tools were quick of late; of a machine of which that is not known it is not said.
    fn is_quick(&self) -> bool {
        self.questions.get(&Question::Pacemaker).is_some_and(|outcomes| outcomes.are_all_within(QUICK))
    }
}

#[cfg(test)]
mod tests;
