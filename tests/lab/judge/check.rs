//! Checks of a state now, or of a state that must occur soon. A failed check reports what it observed instead.

use std::fmt::Debug;
use std::time::Duration;

use crate::sh::{self, Result};

/// The time within which an agent or Pacemaker logs or publishes an event. It covers one or two runs of the monitor on a busy machine.
const COMES_TO_BE: Duration = Duration::from_secs(90);
/// The number of characters of an observed value that an error shows. `crm_mon` fits into it, a whole log does not.
const SHOWN: usize = 3000;

/// Checks once whether `fits` accepts `seen`, for a state that must be true now. For a value that is written shortly after an event, use
/// [`eventually`].
pub fn must<T: Debug>(what: &str, seen: T, fits: impl FnOnce(&T) -> bool) -> Result<T> {
    if fits(&seen) { Ok(seen) } else { Err(format!("it does not hold that {what}: there is {}", shown(&seen)).into()) }
}

/// Calls `look` until the returned value fits. Fails after [`COMES_TO_BE`].
pub fn eventually<T: Debug>(what: &str, look: impl FnMut() -> T, fits: impl Fn(&T) -> bool) -> Result<T> {
    within(COMES_TO_BE, what, look, fits)
}

/// Calls `look` until the returned value fits. Fails after `limit`.
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
