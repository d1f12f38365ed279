//! The execution of a race: it leaves marks on both BMCs, reads their lists, and waits, as [`race`](super::race) decides.
//!
//! Both BMCs are asked in parallel, each by a thread. The connection to the own node's BMC is opened while the target is still
//! being read. For the race, a late BMC has not answered, but its thread continues to wait. A session that is opened late is a
//! mark like any other, and is deleted in the end. The clean-up after the proof happens in the pauses of powering on, so that the
//! answer does not wait for it.

mod board;
mod name;

use std::time::Duration;

use self::board::{Board, Lane};
pub(super) use self::name::MarkName;
use super::config::RaceWith;
use super::race::{Mark, Open, Pause, Race, RaceEvent, RaceStep, Raised, SITES, Site};
use crate::adapters::redfish::client::Client;
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::mark::{MarkBoard, MarkLogin};
use crate::adapters::redfish::session::SessionHandle;
use crate::os::clock::Deadline;

/// The greatest time from the end of an action to the end of the agent's process.
const AFTER_ACTION: Duration = Duration::from_secs(4);
const POLL: Duration = Duration::from_millis(500);
/// The interval at which the agent sends a request in its mark sessions (see [`Site`]), so that no BMC closes them as idle.
const TOUCH: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_secs(1);
/// The least time that the agent needs for a reset and for proving the system off. If less is left, the fence race fails the
/// action.
const RESERVE: Duration = Duration::from_secs(5);
/// The time for which the fence race waits for one answer of the target's BMC.
pub(super) const TARGET_LIMIT: Duration = Duration::from_secs(5);
/// The time limit of the fence race for reading the target BMC's list of sessions and every session in it. A BMC may take three
/// seconds for each answer.
const READ_LIMIT: Duration = Duration::from_secs(20);
/// The time limit for each step of the fence race on the BMC of the agent's own node.
pub(super) const OWN_LIMIT: Duration = Duration::from_secs(1);
/// The time limit for the BMC's answer to a request that opens a session. Without that answer, the agent does not know the
/// session and cannot close it.
pub(super) const LATE: Duration = Duration::from_secs(8);
/// The time for which the agent waits at the end of an action. In this time BMCs may answer late, and the agent deletes its mark sessions
/// (see [`Site`]).
const FAREWELL: Duration = Duration::from_secs(3);

/// The execution of a fence race, in which the agents of two nodes compete for the right to reset the other node. Each agent
/// announces its reset by mark sessions, which are Redfish sessions on the BMCs of both nodes.
#[derive(Debug)]
pub(super) struct Contest {
    race: Race,
    delay: Duration,
    target: Lane,
    own: Lane,
    handle: SessionHandle,
    is_won: bool,
    /// The deadline of the agent's next request in its mark sessions (see [`Site`]). The requests keep the BMCs from closing these
    /// sessions as idle.
    touched: Deadline,
    /// True once the agent has seen a session by which the other node's agent announces a reset.
    has_met: bool,
    /// True from the proof that the target is off until the mark sessions (see [`Site`]) on its BMC are deleted.
    is_untidy: bool,
    /// The text that was logged last. The agent reads the BMCs' lists every half second, and logs only a text that differs from
    /// the last one.
    logged: String,
}

impl Contest {
    /// Creates a fence race that has not begun. It uses the target's BMC (`target`) and the BMC of this node (`own`). `total` is the time
    /// limit of the action.
    pub(super) fn new(
        with: &RaceWith,
        total: Duration,
        [target, own]: [(Client, MarkLogin); 2],
        handle: SessionHandle,
    ) -> Self {
        let name = MarkName::new(&with.target, total + AFTER_ACTION);
        let lane = |site, (client, login), limit, system| {
            let marks = MarkBoard::new(client, login, handle.clone(), limit);
            Lane::new(Board::new(site, marks, name.clone(), system))
        };
        let target = lane(Site::Target, target, TARGET_LIMIT, None);
        let mut own = lane(Site::Own, own, OWN_LIMIT, with.systems_uri.clone());
        own.start(Board::connect);
        Self {
            race: Race::new(with.is_preferred),
            delay: with.delay,
            target,
            own,
            handle,
            is_won: false,
            touched: Deadline::after(TOUCH),
            has_met: false,
            is_untidy: false,
            logged: String::new(),
        }
    }

    /// Takes the preference in the fence race from this node, because this node has no vote. The caller calls this before this node
    /// opens a mark session (see [`Contest`]).
    ///
    /// It also doubles this node's delay. The other node has no preference either, and with equal delays both nodes could withdraw and
    /// return at the same times.
    pub(super) fn yield_to_marks(&mut self) {
        self.race = Race::new(false);
        self.delay *= 2;
    }

    /// Returns once this node may reset the target. At that time the sessions that announce its reset (see [`Contest`]) are open
    /// on the BMCs. Fails if the action's time is too short.
    pub(super) fn win(&mut self, deadline: Deadline) -> Result<(), Failure> {
        let began = deadline.elapsed();
        while !self.is_won {
            match self.race.step() {
                RaceStep::Raise(open) => {
                    let unanswered = |site| RaceEvent::Raised(site, Raised::Unanswered);
                    self.ask(open, TARGET_LIMIT, Board::raise, unanswered);
                }
                RaceStep::Read(open) => {
                    self.ask(open, READ_LIMIT, Board::read, |site| RaceEvent::Listed(site, None));
                }
                RaceStep::Lower => {
                    log::info!("race: this node withdraws: {}", self.seen());
                    self.lower(deadline)?;
                    self.race = self.race.after(RaceEvent::Lowered);
                }
                RaceStep::Wait(pause) => {
                    self.wait(pause, deadline)?;
                    self.hear_late_answers();
                    self.race = self.race.after(RaceEvent::Waited);
                }
                RaceStep::Reset { proven } => {
                    let took = deadline.elapsed().saturating_sub(began).as_millis();
                    log::info!("race: this node resets after {took} ms: both lists decided the race: {proven}");
                    self.is_won = true;
                }
            }
            self.has_met |= SITES.into_iter().any(|site| self.race.sees_rival(site));
        }
        Ok(())
    }

    /// Starts `step` on each BMC in `open`, and reports the results to the fence race. The target's BMC counts as late after
    /// `patience`, and the own node's BMC after [`OWN_LIMIT`]. `unanswered` returns the result for a late BMC.
    fn ask(&mut self, open: Open, patience: Duration, step: fn(&mut Board), unanswered: fn(Site) -> RaceEvent) {
        let asked = Deadline::after(patience);
        self.touched = Deadline::after(TOUCH);
        let lanes = [(Site::Target, &mut self.target, patience), (Site::Own, &mut self.own, OWN_LIMIT)];
        let mut lanes: Vec<_> = lanes.into_iter().filter(|(site, ..)| open.has(*site)).collect();
        for (_, lane, _) in &mut lanes {
            lane.start(step);
        }
        for (site, lane, limit) in lanes {
            let event = lane.wait(limit.saturating_sub(asked.elapsed()));
            self.race = self.race.after(event.unwrap_or_else(|| unanswered(site)));
        }
    }

    /// Reports to the fence race which BMCs have answered after their time limit. A BMC may have opened a session late.
    fn hear_late_answers(&mut self) {
        for lane in [&mut self.target, &mut self.own] {
            if let Some(event) = lane.wait(Duration::ZERO) {
                self.race = self.race.after(event);
            }
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
        let line = format!("race: this node waits {:.1} s with the marks up: {}", time.as_secs_f64(), self.seen());
        if !is_withdrawn && line != self.logged {
            log::info!("{line}");
            self.logged = line;
        }
        let end = Deadline::after(time.min(deadline.left()));
        while !end.has_passed() {
            end.sleep(TOUCH);
            if !is_withdrawn && !end.has_passed() {
                self.touch();
            }
        }
        Ok(())
    }

    /// Sends a request in each mark session (see [`Site`]) every [`TOUCH`], so that no BMC closes the session as idle.
    pub(super) fn touch(&mut self) {
        if self.touched.elapsed() < TOUCH || (!self.handle.keeps_marks() && self.is_won) {
            return;
        }
        self.touched = Deadline::after(TOUCH);
        self.hear_late_answers();
        for lane in [&mut self.target, &mut self.own] {
            if !lane.is_busy() {
                lane.start(Board::touch);
            }
        }
    }

    /// Returns the reason why this node may not reset yet, for the log.
    fn seen(&self) -> String {
        let of = |lane: &Lane| match (&lane.last().rival, &lane.last().why) {
            _ if lane.is_busy() => Some(format!("{} has not answered yet", lane.address())),
            (Some(rival), _) => Some(format!("{} has a mark of the other node, {rival}", lane.address())),
            (None, Some(why)) => Some(format!("{}: {why}", lane.address())),
            (None, None) => None,
        };
        let seen = [of(&self.target), of(&self.own)];
        seen.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    fn out_of_time(&self) -> Failure {
        let rival = [&self.target, &self.own].into_iter().find_map(|lane| Some((lane, lane.last().rival.as_ref()?)));
        let text = match rival {
            Some((lane, rival)) => format!(
                "delete the session {rival} on the BMC {} if no fence agent runs on the other node: it is that agent's mark, \
                 and nothing is reset while it stands",
                lane.address()
            ),
            None => format!("no time was left for a reset after the race with the other node: {}", self.seen()),
        };
        Failure::new(FailureKind::Refused, text)
    }

    /// Records that the agent is about to send a reset. From now on, this agent's mark sessions (see [`Site`]) stay open until
    /// [`Self::has_settled`]. Returns whether an earlier reset is still in progress.
    pub(super) fn sends(&self) -> Result<bool, Failure> {
        self.handle.begin_reset()
    }

    /// Records that no reset is in progress any more, because the BMC has refused every reset or the target is proven off.
    pub(super) fn has_settled(&self) {
        self.handle.settle_reset();
    }

    /// Begins to delete the mark sessions (see [`Site`]) on this node's BMC, because the target is proven off. The other node's agent no
    /// longer runs, so neither agent needs them.
    pub(super) fn begin_tidying(&mut self) {
        if self.is_won {
            self.is_untidy = true;
            self.own.start(Board::look_for_rivals);
        }
    }

    /// Deletes the mark sessions (see [`Site`]) on the target's BMC within `pause`. Before that, waits until this node's BMC has shown
    /// whether the other node left a session there.
    pub(super) fn tidy_in_pause(&mut self, pause: Deadline) {
        if self.is_untidy && !pause.has_passed() {
            self.own.wait(pause.left());
            if !self.own.is_busy() {
                self.tidy();
                self.target.wait(pause.left());
            }
        }
    }

    fn tidy(&mut self) {
        self.is_untidy = false;
        // An agent marks both BMCs at once. If its target's BMC has no mark, there is none here.
        let sweeps = self.has_met || self.own.is_busy() || !self.own.last().is_clean;
        self.own.start(Board::leave);
        self.target.start(move |target| {
            if sweeps {
                target.look_for_rivals();
            }
            target.leave();
        });
    }

    /// Deletes this agent's mark sessions (see [`Site`]) at the end of the action. Keeps them if a reset is still in progress.
    pub(super) fn end(&mut self) {
        if self.handle.keeps_marks() {
            log::warn!(
                "race: this node's marks are kept until their sessions end, because the outcome of a sent reset is not known"
            );
            return;
        }
        if self.is_untidy {
            self.own.wait(OWN_LIMIT);
            self.tidy();
        } else {
            self.begin_lowering();
        }
        let patience = Deadline::after(FAREWELL);
        for lane in [&mut self.target, &mut self.own] {
            lane.wait(patience.left());
            if lane.is_busy() {
                log::warn!("race: a session may be left on {}, which has not answered yet", lane.address());
            }
        }
    }

    /// Deletes this agent's mark sessions (see [`Site`]), and returns once both BMCs have answered. Fails if a BMC does not answer in
    /// time.
    fn lower(&mut self, deadline: Deadline) -> Result<(), Failure> {
        self.begin_lowering();
        for lane in [&mut self.target, &mut self.own] {
            lane.wait(deadline.left());
        }
        if self.target.is_busy() || self.own.is_busy() { Err(self.out_of_time()) } else { Ok(()) }
    }

    fn begin_lowering(&mut self) {
        self.target.start(Board::lower);
        self.own.start(Board::lower);
    }
}
