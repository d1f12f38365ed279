//! The decision when the watchdog is opened, fed and disarmed, and the log lines about a lost quorum.
//!
//! Its only measure is the [`Reach`] of this node's own contacts. `V` is written only while a quorum is reached.

use std::time::Duration;

use super::input::{OnQuorumLoss, Watchdog};
use super::output::{Line, Output, Weight};
use super::quorum::{API_INTERVAL, Quorum, Reach};

/// The duration of uninterrupted contact with a quorum after which the watchdog is opened.
const ARMED_AFTER: Duration = Duration::from_secs(10);
/// The pause after the watchdog could not be opened.
const RETRY: Duration = Duration::from_secs(10);
/// The pause after the watchdog could not be opened, if an earlier agent left it running. It is short, because the watchdog will reset
/// the machine.
const RETRY_RUNNING: Duration = Duration::from_secs(1);
/// The time after the agent's start at which it warns that there is still no quorum. The warning only occurs if an earlier agent left the
/// watchdog running.
const WARNED_AFTER: Duration = Duration::from_secs(2);

/// The state of the watchdog device.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Device {
    Closed,
    Opening,
    Open { has_magic_close: bool, timeout: Duration },
}

/// The change of the quorum since the last update: none, lost, or regained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    None,
    Lost,
    Regained,
}

/// The state of the watchdog, and what decides whether it is opened, fed and closed.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and most of their combinations occur")]
pub(super) struct Feeding {
    mode: OnQuorumLoss,
    watchdog: Watchdog,
    device: Device,
    next_try: Duration,
    /// The start of the present uninterrupted contact with a quorum; `None` without a quorum.
    contact_since: Option<Duration>,
    /// The reason for the loss of the quorum, until it is regained; `None` if it was never reached or is not lost.
    lost: Option<String>,
    is_by_tie: bool,
    /// The shell's reasons for not using the watchdog; `None` until the shell has checked them.
    reasons: Option<Vec<String>>,
    /// The core's own reason for not using the watchdog: a fault in the list of members. `None` if there is none.
    unfit: Option<String>,
    /// True if the watchdog is fed even without a quorum, because it must not be used and cannot be closed.
    is_maintained: bool,
    is_delay_logged: bool,
    is_ending: bool,
    has_ended: bool,
    reach: Option<Reach>,
    /// The deadline that was last sent to the feeding thread; `None` before the first one.
    given: Option<Duration>,
    api: Option<Duration>,
    api_asked: Option<Duration>,
    api_up: Option<bool>,
    /// The reason why the watchdog could not be opened; `None` if the last attempt succeeded.
    not_opened: Option<String>,
    /// The time of this agent's first update without a quorum.
    began: Option<Duration>,
    /// True after the warning that an earlier agent left the watchdog running.
    is_warned: bool,
}

impl Feeding {
    pub(super) fn new(mode: OnQuorumLoss, watchdog: Watchdog) -> Self {
        Self {
            mode,
            watchdog,
            device: Device::Closed,
            next_try: Duration::ZERO,
            contact_since: None,
            lost: None,
            is_by_tie: false,
            reasons: None,
            unfit: None,
            is_maintained: false,
            is_delay_logged: false,
            is_ending: false,
            has_ended: false,
            reach: None,
            given: None,
            api: None,
            api_asked: None,
            api_up: None,
            not_opened: None,
            began: None,
            is_warned: false,
        }
    }

    /// Replaces the shell's reasons for not using the watchdog. An empty list means none.
    pub(super) fn hold(&mut self, reasons: Vec<String>) {
        self.reasons = Some(reasons);
        self.is_delay_logged = false;
    }

    /// Replaces the core's own reason for not using the watchdog, such as fewer than three listed members.
    pub(super) fn listed(&mut self, unfit: Option<String>) {
        self.unfit = unfit;
    }

    pub(super) fn opened(&mut self, identity: &str, timeout: Duration, has_magic_close: bool) -> Vec<Output> {
        self.device = Device::Open { has_magic_close, timeout };
        self.watchdog.left_running = false;
        self.not_opened = None;
        let device = &self.watchdog.device;
        let armed = log(Weight::Info, format!("armed: {device} ({identity}), time-out {} s", timeout.as_secs()));
        // The quorum may have been lost while the device was being opened.
        std::iter::once(armed).chain(self.lost.as_deref().into_iter().flat_map(|why| unfed(why, timeout))).collect()
    }

    pub(super) fn not_opened(&mut self, now: Duration, why: String) -> Output {
        self.device = Device::Closed;
        let after = if self.watchdog.left_running { RETRY_RUNNING } else { RETRY };
        self.next_try = now + after;
        let line = log(Weight::Warning, format!("not armed: {why}; tried again in {} s", after.as_secs()));
        self.not_opened = Some(why);
        line
    }

    /// Records that the API server answered. The answer counts from the time `asked` of the request.
    pub(super) fn api_answered(&mut self, asked: Duration) {
        self.api = self.api.max(self.api_asked.filter(|last| asked <= *last).map(|_| asked));
        self.api_up = Some(true);
    }

    pub(super) fn api_failed(&mut self) {
        self.api_up = Some(false);
    }

    pub(super) fn terminate(&mut self) {
        self.is_ending = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Adds the outputs that follow from the contacts `others` with the other members. The last output is `End` once the process may end.
    /// Returns how the quorum changed.
    pub(super) fn update(
        &mut self,
        now: Duration,
        quorum: Quorum,
        others: &[Option<Duration>],
        window: Duration,
        outputs: &mut Vec<Output>,
    ) -> Turn {
        let reach = quorum.reach(now, others, window, self.api);
        self.reach = Some(reach);
        let turn = self.turn(now, quorum, reach, outputs);
        if reach.wants_api(now) && self.api_asked.is_none_or(|asked| asked + API_INTERVAL <= now) {
            self.api_asked = Some(now);
            outputs.push(Output::AskApi { asked: now });
        }
        let has_contact = reach.is_fed(now);
        if self.mode == OnQuorumLoss::Watchdog {
            self.disarm(now, has_contact, outputs);
            self.give(reach, outputs);
            self.arm(now, has_contact, outputs);
        }
        self.end(has_contact, outputs);
        turn
    }

    /// Logs that the quorum was lost or regained, and returns that change.
    fn turn(&mut self, now: Duration, quorum: Quorum, reach: Reach, outputs: &mut Vec<Output>) -> Turn {
        let halves = format!("equal halves: {} of {}", reach.reachable, quorum.listed);
        if reach.is_fed(now) {
            if reach.is_fed_by_tie(now) && !self.is_by_tie {
                outputs.push(log(Weight::Warning, format!("{halves}; the API server answers: fed")));
            }
            self.is_by_tie = reach.is_fed_by_tie(now);
            let is_new = self.contact_since.is_none();
            self.contact_since.get_or_insert(now);
            if self.lost.take().is_some() {
                let there = format!("quorum regained: {} of {} reachable", reach.reachable, quorum.listed);
                outputs.extend([log(Weight::Warning, there), Output::RememberUnfed(None)]);
                return Turn::Regained;
            }
            if !is_new {
                return Turn::None;
            }
            outputs.extend(std::mem::take(&mut self.is_warned).then_some(Output::RememberUnfed(None)));
            return Turn::Regained;
        }
        if self.contact_since.take().is_none() {
            self.warn(now, quorum, reach, outputs);
            return Turn::None;
        }
        self.is_by_tie = false;
        let mut why =
            format!("quorum lost: {} of {} reachable, {} needed", reach.reachable, quorum.listed, quorum.needed);
        if reach.is_half(now) && self.api_up.is_some() {
            why = format!("{halves}; the API server does not answer");
        }
        match self.device {
            Device::Open { timeout, .. } if !self.is_maintained => {
                outputs.extend(unfed(&why, timeout));
            }
            _ => outputs.push(log(Weight::Warning, why.clone())),
        }
        self.lost = Some(why);
        Turn::Lost
    }

    /// Warns once if an earlier agent left the watchdog running and no quorum is reached within [`WARNED_AFTER`].
    fn warn(&mut self, now: Duration, quorum: Quorum, reach: Reach, outputs: &mut Vec<Output>) {
        let began = *self.began.get_or_insert(now);
        let runs = self.watchdog.left_running && self.mode == OnQuorumLoss::Watchdog;
        if runs && !self.is_warned && began + WARNED_AFTER <= now {
            self.is_warned = true;
            let why = format!(
                "no quorum since the start: {} of {} reachable, {} needed, and {} was left running",
                reach.reachable, quorum.listed, quorum.needed, self.watchdog.device
            );
            outputs.extend(unfed(&why, self.watchdog.timeout));
        }
    }

    /// Returns the reason why the watchdog must not be used; `None` if there is none.
    fn reason(&self) -> Option<String> {
        let given = self.reasons.as_ref().filter(|reasons| !reasons.is_empty()).map(|reasons| reasons.join(", "));
        given.or_else(|| self.unfit.clone())
    }

    /// Closes an open watchdog that must not be used, but only while there is a quorum.
    fn disarm(&mut self, now: Duration, has_contact: bool, outputs: &mut Vec<Output>) {
        let Device::Open { has_magic_close, .. } = self.device else { return };
        let Some(reason) = self.reason() else {
            let settled = self.contact_since.is_some_and(|since| since + ARMED_AFTER <= now);
            if self.is_maintained && settled {
                self.is_maintained = false;
                outputs.push(log(Weight::Info, format!("armed again: {}", self.watchdog.device)));
            }
            return;
        };
        if self.is_maintained {
            return;
        }
        if !has_contact {
            if !self.is_delay_logged {
                self.is_delay_logged = true;
                outputs.push(log(Weight::Synced, format!("disarming refused: quorum is lost: {reason}")));
            }
        } else if has_magic_close {
            self.device = Device::Closed;
            outputs.extend([log(Weight::Info, format!("disarmed: {reason}")), Output::Disarm]);
        } else {
            self.is_maintained = true;
            let line = format!(
                "disarmed: {reason}; {} has no magic close, so that it is fed whatever is reachable",
                self.watchdog.device
            );
            outputs.push(log(Weight::Warning, line));
        }
    }

    /// Sends the deadline to the feeding thread if the deadline has changed.
    fn give(&mut self, reach: Reach, outputs: &mut Vec<Output>) {
        let deadline = if self.is_maintained { Duration::MAX } else { reach.deadline().unwrap_or_default() };
        if self.given != Some(deadline) {
            self.given = Some(deadline);
            outputs.push(Output::FeedUntil(deadline));
        }
    }

    /// Opens the watchdog after [`ARMED_AFTER`] of contact with a quorum. If an earlier agent left it running, opens it at the first
    /// contact.
    fn arm(&mut self, now: Duration, has_contact: bool, outputs: &mut Vec<Output>) {
        if self.device != Device::Closed || !has_contact || self.next_try > now {
            return;
        }
        let is_settled = self.contact_since.is_some_and(|since| since + ARMED_AFTER <= now);
        let is_wanted = self.reasons.is_some() && self.reason().is_none() && !self.is_ending;
        if self.watchdog.left_running || (is_settled && is_wanted) {
            self.device = Device::Opening;
            outputs.push(Output::Arm);
        }
    }

    /// Ends the agent if its end was requested. Disarms an open watchdog first, or leaves it armed if it has no magic close. Without a
    /// quorum an open watchdog stays armed, and the agent does not end.
    fn end(&mut self, has_contact: bool, outputs: &mut Vec<Output>) {
        if !self.is_ending || self.has_ended {
            return;
        }
        match self.device {
            Device::Opening => return,
            Device::Open { .. } if !has_contact && !self.is_maintained => {
                if !self.is_delay_logged {
                    self.is_delay_logged = true;
                    let line = "end delayed: quorum is lost, so that the device stays armed; the machine resets";
                    outputs.push(log(Weight::Synced, line.to_owned()));
                }
                return;
            }
            Device::Open { has_magic_close: true, .. } => {
                self.device = Device::Closed;
                outputs.extend([log(Weight::Info, "disarmed: the agent ends".to_owned()), Output::Disarm]);
            }
            Device::Open { timeout, .. } => {
                let line = format!(
                    "ends with an armed device: {} has no magic close; the machine resets unless an agent starts within {} s",
                    self.watchdog.device,
                    timeout.as_secs()
                );
                outputs.push(log(Weight::Synced, line));
            }
            Device::Closed => {}
        }
        self.has_ended = true;
        outputs.push(Output::End);
    }

    /// Returns the time at which [`Feeding::update`] must be called again, even if no event occurs.
    pub(super) fn wake_at(&self, now: Duration) -> Option<Duration> {
        let reach = self.reach?;
        let asks = reach.asks_from().map(|from| self.api_asked.map_or(from, |asked| from.max(asked + API_INTERVAL)));
        let settles = self.contact_since.map(|since| since + ARMED_AFTER);
        let warns = self.began.filter(|_| !self.is_warned).map(|began| began + WARNED_AFTER);
        let retries = Some(self.next_try);
        [reach.deadline(), asks, settles, warns, retries].into_iter().flatten().filter(|at| *at > now).min()
    }

    pub(super) fn reach(&self) -> Option<Reach> {
        self.reach
    }

    pub(super) fn is_armed(&self) -> bool {
        matches!(self.device, Device::Open { .. }) && !self.is_maintained
    }

    pub(super) fn api_up(&self) -> Option<bool> {
        self.api_up
    }

    /// Returns the reason why the watchdog is not fed although it runs; `None` if it is fed or does not run.
    pub(super) fn unfed_because(&self) -> Option<String> {
        if self.is_armed() {
            return self.lost.clone();
        }
        // The device that an earlier agent left running resets the machine, unless this agent opens it in time.
        if !self.watchdog.left_running || self.mode != OnQuorumLoss::Watchdog {
            return None;
        }
        let device = &self.watchdog.device;
        let waits = || match self.contact_since {
            None => format!("no quorum since the start, and {device} was left running"),
            Some(_) => format!("{device} was left running, and is not open yet"),
        };
        Some(self.lost.clone().or_else(|| self.not_opened.clone()).unwrap_or_else(waits))
    }

    /// Returns the reason why the watchdog is not armed; `None` if it is armed.
    pub(super) fn disarmed_because(&self) -> Option<String> {
        if self.is_armed() {
            return None;
        }
        let other = match self.mode {
            OnQuorumLoss::Watchdog => None,
            OnQuorumLoss::Notify => Some("on_quorum_loss is notify".to_owned()),
            OnQuorumLoss::Wait => Some("on_quorum_loss is wait".to_owned()),
        };
        let waits = || match self.reasons {
            None => "the reasons to be disarmed are not known yet".to_owned(),
            Some(_) => format!("no {} s of contact with a quorum yet", ARMED_AFTER.as_secs()),
        };
        Some(other.or_else(|| self.reason()).or_else(|| self.not_opened.clone()).unwrap_or_else(waits))
    }
}

/// Returns the outputs before an expected reset: a log line, and a file with the reason for the next start.
fn unfed(why: &str, timeout: Duration) -> [Output; 2] {
    let line = log(Weight::Synced, format!("{why}; reset in at most {} s", timeout.as_secs()));
    [line, Output::RememberUnfed(Some(why.to_owned()))]
}

pub(super) fn log(weight: Weight, text: String) -> Output {
    Output::Log(Line { weight, text })
}
