//! The progress of a recipient: counts delivered and lost events. Sending is the caller's part.

use serde::{Deserialize, Serialize};

use crate::records::events::{Event, KEPT, Type};

/// Age up to which a new recipient still gets past events, in milliseconds.
const AT_FIRST: u64 = 60 * 60 * 1000;
/// Seconds until the next attempt after a first failure. Each further failure doubles the pause, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: u64 = 15;
const LONGEST_PAUSE: u64 = 300;

/// The progress of delivering this node's events to one recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cursor {
    /// The sequence number of the last event that was delivered to the recipient.
    pub brought: u64,
    /// Number of events that will never be delivered to the recipient.
    pub lost: u64,
    /// Number of undeliverable events that were not yet reported to the recipient.
    pub lost_untold: u64,
    /// Number of failed attempts in a row.
    pub failures: u32,
    /// The time of the next attempt, in seconds since 1970; 0 if there is no pause.
    pub again_at: u64,
}

/// The result of one attempt to deliver events to a recipient.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub delivered: u64,
    pub failure: Option<String>,
}

impl Cursor {
    /// Returns the progress of a new recipient. A new recipient gets only the events of the last hour.
    pub(super) fn new(events: &[Event], now: u64) -> Self {
        let is_old = |event: &&Event| event.time.saturating_add(AT_FIRST) < now.saturating_mul(1000);
        let brought = events.iter().filter(is_old).map(|event| event.number).max().unwrap_or_default();
        let first = events.first().map_or(0, |first| first.number.saturating_sub(1));
        Self { brought: brought.max(first), ..Self::default() }
    }

    /// Returns whether the pause after a failure still lasts. A clock that was set back does not lengthen the pause.
    pub(super) fn pauses(&self, now: u64) -> bool {
        self.again_at > now && self.again_at <= now.saturating_add(LONGEST_PAUSE)
    }

    /// Returns the number of events that are still to be delivered.
    pub(super) fn waiting(&self, events: &[Event]) -> u64 {
        events.iter().filter(|event| event.number > self.brought).count() as u64
    }

    /// Delivers the waiting events in order, until all are delivered, a delivery fails or `is_over` returns true.
    pub(super) fn bring(
        &mut self,
        events: &[Event],
        now: u64,
        is_over: &mut dyn FnMut() -> bool,
        send: &mut dyn FnMut(&Event) -> Result<(), String>,
    ) -> Run {
        let mut run = Run::default();
        let waiting = self.give_up(events);
        let mut result = self.tell_of_lost(waiting, send);
        for event in waiting {
            if result.is_err() || is_over() {
                break;
            }
            result = send(event);
            if result.is_ok() {
                self.brought = event.number;
                run.delivered += 1;
            }
        }
        match result {
            Ok(()) => (self.failures, self.again_at) = (0, 0),
            Err(why) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
                self.failures = self.failures.saturating_add(1);
                self.again_at = now.saturating_add(pause);
                run.failure = Some(why);
            }
        }
        run
    }

    /// Returns the events that wait for delivery, at most the last [`KEPT`]. Counts as lost the earlier waiting events, and those
    /// that are no longer in the file.
    fn give_up<'a>(&mut self, events: &'a [Event]) -> &'a [Event] {
        if events.last().is_some_and(|last| last.number < self.brought) {
            // The file was removed, and the numbers began again.
            self.brought = 0;
        }
        let begin = events.partition_point(|event| event.number <= self.brought);
        let waiting = events.get(begin..).unwrap_or_default();
        let too_many = waiting.len().saturating_sub(usize::try_from(KEPT).unwrap_or(usize::MAX));
        let kept = waiting.get(too_many..).unwrap_or_default();
        if let Some(first) = kept.first()
            && let lost = first.number.saturating_sub(self.brought).saturating_sub(1)
            && lost > 0
        {
            self.lost = self.lost.saturating_add(lost);
            self.lost_untold = self.lost_untold.saturating_add(lost);
            self.brought = first.number - 1;
        }
        kept
    }

    fn tell_of_lost(
        &mut self,
        waiting: &[Event],
        send: &mut dyn FnMut(&Event) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(first) = waiting.first().filter(|_| self.lost_untold > 0) else { return Ok(()) };
        let count = self.lost_untold;
        let message = format!("{count} events before this one were not brought: more than {KEPT} waited");
        let cause = format!("lost {} {count}", first.number);
        send(&Event::new(
            first.time,
            Type::Warning,
            crate::records::events::reason::LOST,
            &first.node,
            message,
            cause,
        ))?;
        self.lost_untold = 0;
        Ok(())
    }
}
