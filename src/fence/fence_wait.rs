//! The wait of an agent on a node without a vote, before it switches the other node off.
//!
//! `podman-etcd` sets an attribute of its node while its etcd joins or learns. Such a node refuses to run standalone, because it
//! may lack writes. If it fenced its voter in a partition, no etcd would be left. So its agent waits, and the voter's agent
//! fences first. A voter that hangs is fenced after the wait.

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::adapters::command::Programs;
use crate::os::clock::Deadline;

/// The time limit for the answer of Pacemaker's local attribute manager. If there is no answer in this time, the action does not
/// wait.
const PATIENCE: Duration = Duration::from_secs(1);
/// The part of an action's time that must be left after a [`FenceWait`]. In that part, the agent sends the reset and proves the system
/// off.
const AFTER_WAIT: Duration = Duration::from_secs(20);
/// The longest [`FenceWait`] in seconds, even if the node attribute has a higher value.
const LONGEST: u64 = 300;

/// The wait before an agent switches the other node off, if its own node has no vote in etcd. A node attribute has the length of the
/// wait, which counts from the start of the action.
#[derive(Debug)]
pub(super) struct FenceWait {
    name: String,
    answer: Receiver<Option<u64>>,
    began: Deadline,
    /// The end of the wait; `None` until the node attribute is read.
    end: Option<Deadline>,
}

impl FenceWait {
    /// Queries the local attribute manager for the node attribute `name`. Returns before the answer comes.
    pub(super) fn of(name: &str) -> Self {
        let (sends, answer) = mpsc::sync_channel(1);
        let asked = name.to_owned();
        std::thread::spawn(move || sends.send(ask(&asked)));
        Self { name: name.to_owned(), answer, began: Deadline::after(PATIENCE), end: None }
    }

    /// Waits until the node attribute is read, which has the length of the wait in seconds. Then begins the wait. `left` is the action's
    /// remaining time.
    ///
    /// Returns true if the attribute shows that this node has no vote. Returns `None` if an earlier call has already returned the result.
    pub(super) fn begin(&mut self, left: Duration) -> Option<bool> {
        if self.end.is_some() {
            return None;
        }
        let seconds = self.answer.recv_timeout(self.began.left()).ok().flatten();
        let wait = Duration::from_secs(seconds.unwrap_or(0).min(LONGEST)).saturating_sub(self.began.elapsed());
        let wait = wait.min(left.saturating_sub(AFTER_WAIT));
        self.end = Some(Deadline::after(wait));
        if let Some(seconds) = seconds {
            log::info!(
                "this node holds no vote ({}={seconds}) and waits {:.0} s, so that the other node may fence first",
                self.name,
                wait.as_secs_f64()
            );
        }
        Some(seconds.is_some())
    }

    /// Returns whether the wait has begun and has not ended.
    pub(super) fn goes_on(&self) -> bool {
        self.end.is_some_and(|end| !end.has_passed())
    }
}

fn ask(name: &str) -> Option<u64> {
    match Programs::default().run("attrd_updater", &["--query", "--name", name], PATIENCE) {
        Ok(output) => seconds(&output.stdout),
        Err(error) => {
            log::debug!("the node attribute {name} cannot be read, so this action does not wait: {error}");
            None
        }
    }
}

/// Returns the seconds in a line of `attrd_updater` such as `name="etcd_fence_wait" host="node1" value="30"`; `None` if they are zero or
/// missing.
fn seconds(said: &str) -> Option<u64> {
    said.lines().find_map(|line| line.split('"').nth(5)?.parse().ok()).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_of_seconds_is_waited_for() {
        for (said, expected) in [
            ("name=\"etcd_fence_wait\" host=\"node1\" value=\"30\"\n", Some(30)),
            ("name=\"etcd_fence_wait\" host=\"node1\" value=\"\"\n", None),
            ("name=\"etcd_fence_wait\" host=\"node1\" value=\"0\"\n", None),
            ("name=\"etcd_fence_wait\" host=\"node1\" value=\"-3\"\n", None),
            ("Could not query value of etcd_fence_wait: attribute does not exist\n", None),
            ("", None),
        ] {
            assert_eq!(seconds(said), expected, "{said}");
        }
    }

    fn with(answer: Option<u64>) -> FenceWait {
        let (sends, answer_of) = mpsc::sync_channel(1);
        sends.send(answer).unwrap();
        FenceWait { name: "etcd_fence_wait".to_owned(), answer: answer_of, began: Deadline::after(PATIENCE), end: None }
    }

    #[test]
    fn a_wait_leaves_time_for_the_reset() {
        for (answer, left, holds_no_vote, waits) in [
            (Some(30), Duration::from_secs(55), true, true),
            (Some(30), AFTER_WAIT, true, false),
            (None, Duration::from_secs(55), false, false),
        ] {
            let mut wait = with(answer);
            assert!(!wait.goes_on(), "it has not begun");
            assert_eq!((wait.begin(left), wait.goes_on()), (Some(holds_no_vote), waits));
            assert_eq!(wait.begin(left), None);
        }
    }

    #[test]
    fn an_attribute_manager_that_hangs_is_waited_for_a_second() {
        let (_sends, answer) = mpsc::sync_channel(1);
        let began = Deadline::after(PATIENCE);
        let mut hangs = FenceWait { name: String::new(), answer, began, end: None };
        assert_eq!((hangs.begin(Duration::from_secs(55)), hangs.goes_on()), (Some(false), false));
        assert!((PATIENCE..PATIENCE * 3).contains(&began.elapsed()));
    }
}
