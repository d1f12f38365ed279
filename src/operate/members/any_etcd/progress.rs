//! The messages of a waiting command: the reason, and the progress of a learner.

use std::time::Duration;

use crate::decide::members::{Forbidden, Member, Membership};
use crate::os::clock::Deadline;

/// Time after which a waiting command prints an unchanged reason again.
const EVERY: Duration = Duration::from_secs(10);

/// The last message of a waiting command, which decides when the next message is due.
#[derive(Debug, Default)]
pub(in crate::operate::members) struct Progress {
    last: Option<Told>,
}

#[derive(Debug)]
struct Told {
    why: String,
    lag: Option<u64>,
    at: Deadline,
}

impl Progress {
    /// Returns whether the command has not yet printed why it waits.
    pub(in crate::operate::members) fn is_silent(&self) -> bool {
        self.last.is_none()
    }

    /// Returns the next message about why the command waits. Returns `None` if the reason is unchanged and the last message is recent.
    pub(in crate::operate::members) fn line(&mut self, why: &Forbidden, membership: &Membership) -> Option<String> {
        let lag = membership.learners().next().and_then(|learner: &Member| learner.lag);
        let why_now = match why {
            Forbidden::Lags { member, .. } => format!("{member} catches up"),
            why => why.to_string(),
        };
        if self.last.as_ref().is_some_and(|last| last.why == why_now && !last.at.has_passed()) {
            return None;
        }
        let before = self.last.as_ref().and_then(|last| Some((last.lag?, last.at.elapsed())));
        let line = format!("waits: {why_now}{}", lag.map(|lag| rate(lag, before)).unwrap_or_default());
        self.last = Some(Told { why: why_now, lag, at: Deadline::after(EVERY) });
        Some(line)
    }
}

/// Returns the number of log entries that the learner lacks, and the rate at which that number falls.
fn rate(lag: u64, before: Option<(u64, Duration)>) -> String {
    if lag == 0 {
        return String::new();
    }
    let lacks = format!(", {lag} entries behind");
    let Some((before, elapsed)) = before.filter(|(before, _)| *before > lag) else { return lacks };
    let per_second = (before - lag) / elapsed.as_secs().max(1);
    if per_second == 0 {
        return lacks;
    }
    format!("{lacks}, {per_second} fewer a second: about {} s", lag.div_ceil(per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_is_told_with_its_rate() {
        assert_eq!(rate(0, None), "");
        assert_eq!(rate(900, None), ", 900 entries behind");
        assert_eq!(rate(900, Some((800, Duration::from_secs(10)))), ", 900 entries behind");
        let told = rate(400, Some((900, Duration::from_secs(10))));
        assert_eq!(told, ", 400 entries behind, 50 fewer a second: about 8 s");
    }

    #[test]
    fn the_same_is_not_told_with_every_look() {
        let (mut progress, membership) = (Progress::default(), Membership::default());
        let why = |member: &str| Forbidden::NotStarted { member: member.to_owned() };
        assert!(progress.is_silent());
        assert_eq!(progress.line(&why("m4"), &membership).as_deref(), Some("waits: m4 has never started"));
        assert_eq!(progress.line(&why("m4"), &membership), None);
        assert!(progress.line(&Forbidden::Unconfirmed, &membership).is_some());
    }
}
