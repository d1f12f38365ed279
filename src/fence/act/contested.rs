//! The part of an action that races with the agent of the other node. It sends no reset before the race is won. In the end it
//! deletes its marks, unless a reset may still be under way.

use std::time::Duration;

use super::Actor;
use crate::adapters::redfish::failure::Failure;
use crate::adapters::redfish::quirks::PowerWord;
use crate::fence::plan::{Event, Goal, Moment};
use crate::os::clock::Deadline;

impl Actor<'_> {
    /// Posts a reset to the BMC. If the reset switches the system off, this node's agent must first win the race with the other node's
    /// agent.
    pub(super) fn post_if_won(&mut self, at: usize, reset_type: &str, goal: Goal) -> Result<Event, Failure> {
        let Some(contest) = self.contest.as_mut().filter(|_| matches!(goal, Goal::Off | Goal::Cycle)) else {
            return Ok(self.post(at, reset_type));
        };
        contest.win(self.deadline)?;
        let is_under_way = contest.sends()?;
        let event = self.post(at, reset_type);
        if let (Event::Refused(failure), Some(contest)) = (&event, &self.contest) {
            // An earlier reset may still take effect.
            if failure.is_an_answer() && !is_under_way {
                contest.has_settled();
            }
        }
        Ok(event)
    }

    /// Returns whether a reset must still wait because this node's etcd has no vote. If the target reports Off, a reset does not
    /// wait, because the target's etcd cannot vote.
    pub(super) fn yields(&mut self, goal: Goal, history: &[Moment]) -> bool {
        let last = history.last().map(|last| &last.event);
        let is_off = matches!(last, Some(Event::Read { power, .. }) if power.is(PowerWord::Off));
        let Some(wait) = self.wait.as_mut().filter(|_| !is_off && matches!(goal, Goal::Off | Goal::Cycle)) else {
            return false;
        };
        if wait.begin(self.deadline.left()) == Some(true)
            && let Some(contest) = &mut self.contest
        {
            contest.yield_to_marks();
        }
        wait.goes_on()
    }

    /// Ends the race with the other node's agent, because every system of that node is proven off. No reset is in progress any
    /// more.
    pub(super) fn settle_contest(&mut self) {
        if let Some(contest) = &mut self.contest {
            contest.has_settled();
            contest.begin_tidying();
        }
    }

    /// Waits until the time `at`, counted from the time `began`. While it waits, it sends requests in the sessions of the fence
    /// race, so that no BMC closes them as idle. If `goal` is On, the race is over, and it deletes these sessions.
    pub(super) fn pause(&mut self, goal: Goal, began: Duration, at: Duration) {
        let left = |deadline: Deadline| at.saturating_sub(deadline.elapsed().saturating_sub(began));
        match &mut self.contest {
            Some(contest) if goal == Goal::On => contest.tidy_in_pause(Deadline::after(left(self.deadline))),
            Some(contest) => contest.touch(),
            None => {}
        }
        self.deadline.sleep(left(self.deadline));
    }

    /// Deletes this agent's mark sessions (see [`Site`](crate::fence::race::Site)) on both BMCs, whether the action succeeded or failed.
    pub(super) fn end_contest(&mut self) {
        if let Some(contest) = &mut self.contest {
            contest.end();
        }
    }
}
