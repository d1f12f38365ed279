//! The moments of an action at which the model takes decisions.

use crate::agent::resource::actions;
use crate::decide::Request;

/// A moment of an action at which the model lets the agent decide.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// The name of the moment in a scenario file.
    pub name: &'static str,
    /// The time since the action began. If the action's own time is shorter, the moment is at the end of that time.
    pub elapsed_ms: u64,
    /// True if the present phase of the action begins at this moment. If false, the phase began together with the action.
    is_new_phase: bool,
}

impl When {
    const fn new(name: &'static str, elapsed_ms: u64, is_new_phase: bool) -> Self {
        Self { name, elapsed_ms, is_new_phase }
    }

    /// Returns the time since the action began, and the time at which its phase began, both in milliseconds.
    pub fn of(self, request: Request) -> (u64, u64) {
        let elapsed_ms = self.elapsed_ms.min(budget_ms(request) - LAST_MS);
        (elapsed_ms, if self.is_new_phase { elapsed_ms } else { 0 })
    }
}

/// The time that an action has left when the model lets the agent decide in it for the last time, in milliseconds.
const LAST_MS: u64 = 1_000;
/// A number of milliseconds that is longer than any action's time-out.
const END_MS: u64 = 3_600_000;

/// The moments at which an action decides: at once, after each wait of the core (`src/decide/timing.rs`), and at the end. Two of the
/// late moments exist also with a phase of the action that has just begun. A test checks that every wait of the core ends between two
/// of these moments.
pub const MOMENTS: [When; 7] = [
    When::new("", 0, false),
    When::new("a little later", 6_000, false),
    When::new("later", 16_500, false),
    When::new("much later", 82_000, false),
    When::new("at the end", END_MS, false),
    When::new("later, in a new phase", 16_500, true),
    When::new("at the end, in a new phase", END_MS, true),
];

/// Returns the advertised time-out of an action in milliseconds, less the time that the agent keeps for its answer.
pub fn budget_ms(request: Request) -> u64 {
    let budget = actions::budget(actions::advertised_timeout(request), std::time::Duration::ZERO);
    u64::try_from(budget.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::timing::PATIENCES;

    #[test]
    fn every_patience_of_the_core_ends_between_two_moments() {
        let fixed = || MOMENTS.iter().filter(|when| !when.is_new_phase && when.elapsed_ms < END_MS);
        for &(name, patience_ms) in PATIENCES {
            let is = |test: &dyn Fn(u64) -> bool| fixed().any(|when| test(when.elapsed_ms));
            let lies_between = is(&|elapsed_ms| elapsed_ms < patience_ms) && is(&|elapsed_ms| elapsed_ms > patience_ms);
            assert!(lies_between, "{name} = {patience_ms}: MOMENTS needs one past it");
        }
    }

    /// Asserts that the last two moments are at the end of the action's time. At one of them, a new phase has just begun and lasted 0
    /// ms, so no wait in it is over.
    #[test]
    fn the_last_moments_are_at_the_end_of_an_actions_time() {
        for request in [Request::Start, Request::Stop, Request::Monitor, Request::Notify, Request::Promote] {
            let end_ms = budget_ms(request) - LAST_MS;
            let (last, in_new_phase) = (MOMENTS[4].of(request), MOMENTS[6].of(request));
            assert_eq!((last, in_new_phase), ((end_ms, 0), (end_ms, end_ms)), "{request:?}");
        }
        assert_eq!(budget_ms(Request::Notify), 58_000);
        assert_eq!(budget_ms(Request::Promote), 28_000);
    }
}
