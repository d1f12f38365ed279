//! What must be, and what must come to be. A check that fails says what was there instead.

use std::fmt::Debug;
use std::time::Duration;

use crate::sh::{self, Result};

/// What an agent or Pacemaker writes after an event is there within a monitor or two, on a machine that is busy with
/// other things as well.
const COMES_TO_BE: Duration = Duration::from_secs(90);
/// How much of what was there is shown: all of what `crm_mon` prints, and not a whole log.
const SHOWN: usize = 3000;

/// Looks once, at what is so at this moment or else never. What is written a moment after the event that was waited for
/// is for [`eventually`].
pub fn must<T: Debug>(what: &str, seen: T, fits: impl FnOnce(&T) -> bool) -> Result<T> {
    if fits(&seen) { Ok(seen) } else { Err(format!("it does not hold that {what}: there is {}", shown(&seen)).into()) }
}

/// Looks until it fits.
pub fn eventually<T: Debug>(what: &str, look: impl FnMut() -> T, fits: impl Fn(&T) -> bool) -> Result<T> {
    within(COMES_TO_BE, what, look, fits)
}

/// Looks until it fits, at most `limit`.
pub fn within<T: Debug>(
    limit: Duration,
    what: &str,
    mut look: impl FnMut() -> T,
    fits: impl Fn(&T) -> bool,
) -> Result<T> {
    let mut last = String::new();
    let found = sh::wait_for(&format!("it to hold that {what}"), limit, Duration::from_millis(300), || {
        let seen = look();
        if fits(&seen) {
            return Some(seen);
        }
        last = shown(&seen);
        None
    });
    found.map_err(|error| format!("{error}: there is {last}").into())
}

fn shown(seen: &impl Debug) -> String {
    let text = format!("{seen:?}");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
