//! Ends processes, first gently and then by force. It is used for a known process and for the processes that hold a data dir.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::os::clock::Deadline;

/// The time in which a process must disappear after SIGKILL.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// Sends SIGTERM to processes through `send`, and SIGKILL after `grace`. If `grace` is zero, SIGKILL comes at once. Checks after every
/// `pause` whether the processes have ended, and returns whether they have.
pub(crate) fn end<Error>(
    grace: Duration,
    pause: Duration,
    send: impl Fn(Signal),
    is_gone: impl Fn() -> Result<bool, Error>,
) -> Result<bool, Error> {
    for (signal, patience) in [(Signal::SIGTERM, grace), (Signal::SIGKILL, AFTER_KILL)] {
        if patience.is_zero() {
            continue;
        }
        let deadline = Deadline::after(patience);
        send(signal);
        loop {
            // The check is repeated after the deadline, because a pause may have lasted until then.
            let is_over = deadline.has_passed();
            if is_gone()? {
                return Ok(true);
            }
            if is_over {
                break;
            }
            deadline.sleep(pause);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::convert::Infallible;

    use super::*;

    /// Runs [`end`] on a fake process that the signal `deadly` ends. Returns whether the process has ended, and the signals that were sent
    /// to it.
    fn sent(grace: Duration, deadly: Signal) -> (bool, Vec<Signal>) {
        let sent = RefCell::new(Vec::new());
        let send = |signal| sent.borrow_mut().push(signal);
        let is_gone = || Ok::<_, Infallible>(sent.borrow().contains(&deadly));
        let Ok(gone) = end(grace, Duration::from_millis(1), send, is_gone);
        (gone, sent.into_inner())
    }

    #[test]
    fn force_comes_after_the_grace_and_only_where_it_is_needed() {
        let (grace, none) = (Duration::from_millis(20), Duration::ZERO);
        assert_eq!(sent(grace, Signal::SIGTERM), (true, vec![Signal::SIGTERM]));
        assert_eq!(sent(grace, Signal::SIGKILL), (true, vec![Signal::SIGTERM, Signal::SIGKILL]));
        assert_eq!(sent(none, Signal::SIGKILL), (true, vec![Signal::SIGKILL]));
    }

    #[test]
    fn who_cannot_tell_is_not_waited_for() {
        let asked = end(Duration::from_secs(60), Duration::from_millis(1), |_| {}, || Err::<bool, _>("unknown"));
        assert_eq!(asked, Err("unknown"));
    }
}
