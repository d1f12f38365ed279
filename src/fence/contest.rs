//! Carries out a race: leaves marks on both BMCs, reads their lists, and waits, as [`race`](super::race) decides.

use std::time::Duration;

use super::config::RaceWith;
use super::race::{Listing, Mark, Pause, Race, RaceEvent, RaceStep, Raised, Site};
use super::sightings::Sightings;
use crate::adapters::redfish::client::Client;
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::mark::{MarkBoard, MarkLogin, Marks, OtherSession};
use crate::adapters::redfish::session::SessionHandle;
use crate::os::clock::{self, Deadline};

/// What the `Context` of each mark begins with.
const PREFIX: &str = "tandem-fence-race";
/// The agent's process ends so long after its action at the latest.
const AFTER_ACTION: Duration = Duration::from_secs(4);
const POLL: Duration = Duration::from_millis(500);
const SHORT: Duration = Duration::from_secs(1);
/// What a reset and its proof need at least.
const RESERVE: Duration = Duration::from_secs(5);
/// A BMC that takes a connection and leaves so many requests for marks unanswered has no list of sessions.
const SILENCES: u8 = 3;
/// For one request of a mark to the target's BMC.
pub(super) const TARGET_LIMIT: Duration = Duration::from_secs(5);
/// For one request to the BMC of the agent's own node.
pub(super) const OWN_LIMIT: Duration = Duration::from_secs(1);

/// A race at work.
#[derive(Debug)]
pub(super) struct Contest {
    race: Race,
    delay: Duration,
    name: MarkName,
    target: Board,
    own: Board,
    handle: SessionHandle,
    is_won: bool,
    /// What the log has last: a poll each half second is one line.
    logged: String,
}

#[derive(Debug)]
struct Board {
    marks: MarkBoard,
    sightings: Sightings,
    silences: u8,
    /// A rival's session that was seen here last.
    rival: Option<String>,
    /// Why nothing is proven here.
    why: Option<String>,
}

impl Board {
    fn new(marks: MarkBoard) -> Self {
        let sightings = Sightings::of(marks.client().address());
        Self { marks, sightings, silences: 0, rival: None, why: None }
    }

    fn address(&self) -> String {
        self.marks.client().address().short()
    }

    /// Whether a request that failed had an answer: one that is silent again and again will never give one.
    fn has_answered(&mut self, failure: &Failure) -> bool {
        self.why = Some(failure.to_string());
        let is_silent = matches!(failure.kind, FailureKind::Interrupted | FailureKind::Silent);
        self.silences = self.silences.saturating_add(u8::from(is_silent));
        failure.is_an_answer() || (is_silent && self.silences >= SILENCES)
    }

    /// Returns what a list means for the race.
    fn judge(&mut self, marks: &Marks, name: &MarkName) -> Listing {
        let user = self.marks.user().to_owned();
        let rivals: Vec<Rival> = marks.others.iter().filter_map(|other| name.rival(other, marks, &user)).collect();
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
}

impl Contest {
    /// A race that has not begun, over the BMC of `target` and the one of this node, `own`. `total` is the action's time.
    pub(super) fn new(
        with: &RaceWith,
        total: Duration,
        [target, own]: [(Client, MarkLogin); 2],
        handle: SessionHandle,
    ) -> Self {
        let board = |(client, login)| Board::new(MarkBoard::new(client, login, handle.clone()));
        let (target, own) = (board(target), board(own));
        let name = MarkName::new(&with.target, total + AFTER_ACTION);
        Self {
            race: Race::new(with.is_preferred),
            delay: with.delay,
            name,
            target,
            own,
            handle,
            is_won: false,
            logged: String::new(),
        }
    }

    fn board(&mut self, site: Site) -> &mut Board {
        match site {
            Site::Target => &mut self.target,
            Site::Own => &mut self.own,
        }
    }

    /// Returns once this node may reset the target, with its marks up. An action that runs out of time before fails.
    pub(super) fn win(&mut self, deadline: Deadline) -> Result<(), Failure> {
        let began = deadline.elapsed();
        while !self.is_won {
            let event = match self.race.step() {
                RaceStep::Raise(site) => RaceEvent::Raised(self.raise(site)),
                RaceStep::Read(site) => RaceEvent::Listed(self.read(site)),
                RaceStep::Lower => {
                    log::info!("race: {}; withdrawing", self.seen());
                    self.lower();
                    RaceEvent::Lowered
                }
                RaceStep::Wait(pause) => {
                    self.wait(pause, deadline)?;
                    RaceEvent::Waited
                }
                RaceStep::Reset { proven } => {
                    let took = deadline.elapsed().saturating_sub(began).as_millis();
                    log::info!("race: this node resets: both lists decided it: {proven}; {took} ms");
                    self.is_won = true;
                    break;
                }
            };
            self.race = self.race.after(event);
        }
        Ok(())
    }

    fn raise(&mut self, site: Site) -> Raised {
        let context = self.name.context();
        let board = self.board(site);
        match board.marks.raise(&context) {
            Ok(()) => Raised::Acknowledged,
            Err(failure) if board.has_answered(&failure) => Raised::Refused,
            Err(_) => Raised::Unanswered,
        }
    }

    fn read(&mut self, site: Site) -> Option<Listing> {
        let name = self.name.clone();
        let board = self.board(site);
        match board.marks.read() {
            Ok(marks) => Some(board.judge(&marks, &name)),
            Err(failure) => board.has_answered(&failure).then(Listing::default),
        }
    }

    fn wait(&mut self, pause: Pause, deadline: Deadline) -> Result<(), Failure> {
        let (time, is_withdrawn) = match pause {
            Pause::Poll => (POLL, false),
            Pause::Short => (SHORT, false),
            Pause::Delay => (self.delay, self.race.mark(Site::Target) == Mark::Down),
        };
        if deadline.left() < time + RESERVE {
            return Err(self.out_of_time());
        }
        let line = format!("race: {}; waiting {:.1} s with the marks up", self.seen(), time.as_secs_f64());
        if !is_withdrawn && line != self.logged {
            log::info!("{line}");
            self.logged = line;
        }
        deadline.sleep(time);
        Ok(())
    }

    /// Returns what keeps this node from a reset at once.
    fn seen(&self) -> String {
        let mut seen = Vec::new();
        for board in [&self.target, &self.own] {
            match (&board.rival, &board.why) {
                (Some(rival), _) => seen.push(format!("{} has a mark of the other node, {rival}", board.address())),
                (None, Some(why)) => seen.push(format!("{}: {why}", board.address())),
                (None, None) => {}
            }
        }
        seen.join("; ")
    }

    fn out_of_time(&self) -> Failure {
        let rival = [&self.target, &self.own].into_iter().find_map(|board| Some((board, board.rival.as_ref()?)));
        let text = match rival {
            Some((board, rival)) => format!(
                "delete the session {rival} on the BMC {} if no fence agent runs on the other node: it is that agent's mark, \
                 and nothing is reset while it stands",
                board.address()
            ),
            None => format!("no time was left for a reset after the race with the other node: {}", self.seen()),
        };
        Failure::new(FailureKind::Refused, text)
    }

    /// A reset goes out: from now on the marks stay, until its end is proven. Returns whether an earlier one is under way.
    pub(super) fn sends(&self) -> bool {
        let is_under_way = self.handle.keeps_marks();
        self.handle.keep_marks(true);
        is_under_way
    }

    /// No reset is under way any more: each was refused, or the target is proven off.
    pub(super) fn has_settled(&self) {
        self.handle.keep_marks(false);
    }

    /// Deletes what the agent of the other node left, which is proven to be off: its next boot would have to wait for it.
    pub(super) fn sweep(&mut self) {
        if !self.is_won {
            return;
        }
        let name = self.name.clone();
        for board in [&self.target.marks, &self.own.marks] {
            if !board.is_up() {
                continue;
            }
            let Ok(marks) = board.read() else { continue };
            for other in marks.others.iter().filter(|other| name.is_a_rivals(other)) {
                if let Err(failure) = board.delete(&other.path) {
                    log::info!("race: a mark of the other node stays until its session ends: {failure}");
                }
            }
        }
    }

    /// Takes the marks down, unless a reset is under way.
    pub(super) fn end(&mut self) {
        if self.handle.keeps_marks() {
            log::warn!("race: the marks stay until their sessions end, as a reset was sent and its end is not known");
            return;
        }
        self.lower();
    }

    fn lower(&mut self) {
        self.target.marks.lower();
        self.own.marks.lower();
    }
}

/// By what the marks of this run are known, and those of the other node.
#[derive(Clone, Debug)]
struct MarkName {
    longest: Duration,
    /// Differs between both nodes, and is the same in each run of one.
    id: String,
}

/// A session that may be a mark of the other node.
struct Rival {
    shown: String,
    /// What no other session is called, ever; `None` where the BMC gives nothing of the kind.
    key: Option<String>,
    longest: Duration,
}

impl MarkName {
    fn new(target: &str, longest: Duration) -> Self {
        // FNV-1a: what is compared is what this node itself wrote.
        let id = target
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self { longest, id: format!("{id:016x}") }
    }

    /// The `Context` of a new mark: how long it may stand, what it is for, and a number that no other mark of this node has.
    fn context(&self) -> String {
        format!("{PREFIX} {} {} {:x}", self.longest.as_secs(), self.id, clock::boot_nanoseconds())
    }

    /// Returns whether a session's `Context` names it a mark of the other node.
    fn is_a_rivals(&self, other: &OtherSession) -> bool {
        self.other_marks_time(other).is_some()
    }

    fn other_marks_time(&self, other: &OtherSession) -> Option<Duration> {
        let mut words = other.context.as_deref()?.strip_prefix(PREFIX)?.split_whitespace();
        let longest = words.next().and_then(|word| word.parse().ok()).map_or(self.longest, Duration::from_secs);
        (words.next() != Some(self.id.as_str())).then_some(longest)
    }

    /// Returns the rival that `other` may be, in a list that was read as `user`.
    fn rival(&self, other: &OtherSession, list: &Marks, user: &str) -> Option<Rival> {
        let origin = other.origin.as_ref().map(|origin| format!(" from {origin}")).unwrap_or_default();
        let shown = format!("{}{origin}", other.path);
        if other.context.as_deref().is_some_and(|context| context.starts_with(PREFIX)) {
            let longest = self.other_marks_time(other)?;
            let key = other.context.as_ref().map(|context| format!("{} {context}", other.path));
            return Some(Rival { shown, key, longest });
        }
        if list.keeps_context || other.user.as_deref().is_some_and(|theirs| theirs != user) {
            return None;
        }
        let key = other.created.as_ref().map(|created| format!("{} {created}", other.path));
        Some(Rival { shown, key, longest: self.longest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(user: &str, context: Option<&str>) -> OtherSession {
        let context = context.map(str::to_owned);
        OtherSession { path: "/s/7".into(), user: Some(user.into()), context, ..OtherSession::default() }
    }

    #[test]
    fn a_rival_is_known_by_its_context_and_else_by_its_user() {
        let ours = MarkName::new("192.0.2.2:443  node2", Duration::from_secs(54));
        let theirs = MarkName::new("192.0.2.1:443  node1", Duration::from_secs(99));
        let (kept, dropped) = (Marks { keeps_context: true, ..Marks::default() }, Marks::default());
        let seen =
            |other: &OtherSession, list: &Marks| ours.rival(other, list, "admin").map(|rival| rival.longest.as_secs());
        for list in [&kept, &dropped] {
            assert_eq!(seen(&session("other", Some(&theirs.context())), list), Some(99), "whatever its user");
            assert_eq!(seen(&session("admin", Some(&ours.context())), list), None, "of an earlier run of this node");
            assert_eq!(seen(&session("admin", Some(PREFIX)), list), Some(54), "cut off by the BMC");
            assert_eq!(seen(&session("operator", None), list), None);
        }
        assert_eq!(seen(&session("admin", None), &kept), None, "an operator's");
        assert_eq!(seen(&session("admin", None), &dropped), Some(54));
        assert_eq!(seen(&OtherSession::default(), &dropped), Some(54), "one that may not be read");
        let created = |created: Option<&str>| {
            let other = OtherSession { created: created.map(str::to_owned), ..session("admin", None) };
            ours.rival(&other, &dropped, "admin").and_then(|rival| rival.key)
        };
        assert_eq!(created(None), None, "its path may be another session's later");
        assert_eq!(created(Some("2026-11-29T00:00:00Z")).as_deref(), Some("/s/7 2026-11-29T00:00:00Z"));
    }
}
