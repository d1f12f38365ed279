//! Secondary work that must not end the main work by a panic: logs, events, records of decisions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`. If it panics, logs one line with `what` and the message, and returns.
pub(crate) fn isolated(what: &str, work: impl FnOnce()) {
    if let Err(why) = caught(work) {
        log::error!("{what}: a bug ended this work: {why}");
    }
}

/// Runs `work`. If it panics, returns the message as an error.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| message(&*payload).to_owned())
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let formatted = payload.downcast_ref::<String>().map(String::as_str);
    formatted.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it has no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_its_message_and_ends_nothing() {
        assert_eq!(caught(|| 1), Ok(1));
        assert_eq!(caught(|| assert!(u8::try_from(300).is_ok(), "too {}", "large")), Err("too large".to_owned()));
        isolated("record", || panic!("plain"));
    }
}
