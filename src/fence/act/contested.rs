//! The part of an action that races with the agent of the other node. It sends no reset before the race is won. In the end it
//! deletes its marks, unless a reset may still be under way.

use std::time::Duration;

use super::Actor;
use crate::adapters::redfish::failure::Failure;
use crate::adapters::redfish::quirks::PowerWord;
use crate::fence::plan::{Event, Goal, Moment};
use crate::os::clock::Deadline;

impl Actor<'_> {
    /// Posts a reset. A reset that switches off must win the race first.
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

    /// Returns whether a reset must wait because this node has no vote. A target that reports Off is not a live voter.
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

    /// Ends the race, because every system is proven off. No reset is under way, and no agent of the other node runs.
    pub(super) fn settle_contest(&mut self) {
        if let Some(contest) = &mut self.contest {
            contest.has_settled();
            contest.begin_tidying();
        }
    }

    /// Waits until `at` of a phase that began at `began`. While the system powers on, cleans up after the race.
    pub(super) fn pause(&mut self, goal: Goal, began: Duration, at: Duration) {
        let left = |deadline: Deadline| at.saturating_sub(deadline.elapsed().saturating_sub(began));
        match &mut self.contest {
            Some(contest) if goal == Goal::On => contest.tidy_in_pause(Deadline::after(left(self.deadline))),
            Some(contest) => contest.touch(),
            None => {}
        }
        self.deadline.sleep(left(self.deadline));
    }

    /// Deletes the marks at every end of the action.
    pub(super) fn end_contest(&mut self) {
        if let Some(contest) = &mut self.contest {
            contest.end();
        }
    }
}
