//! The state that a running agent writes for `status` and `metrics`.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::place::STATUS;
use crate::os::beneath::Dir;
use crate::os::{clock, proc};

const LIMIT: u64 = 4 * 1024 * 1024;
/// Interval at which an unchanged state is written. `fencing-agent status` treats an agent as dead if its state is older than 5 s.
const QUIET: Duration = Duration::from_secs(2);

/// The state of a running agent, as it is written for `status` and `metrics`. `written` and `deadline` are nanoseconds since boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) boot: String,
    pub(crate) written: u64,
    pub(crate) pid: u32,
    pub(crate) node: String,
    pub(crate) group: String,
    pub(crate) on_quorum_loss: String,
    pub(crate) device: Option<String>,
    pub(crate) identity: Option<String>,
    pub(crate) timeout: u64,
    pub(crate) quorum: usize,
    pub(crate) reachable: usize,
    pub(crate) window: f64,
    pub(crate) armed: bool,
    pub(crate) fed: bool,
    pub(crate) deadline: Option<u64>,
    pub(crate) disarmed: Option<String>,
    pub(crate) unfed: Option<String>,
    pub(crate) score: u8,
    pub(crate) suspicions: u64,
    pub(crate) joins: u64,
    pub(crate) leaves: u64,
    pub(crate) datagrams: Vec<Datagrams>,
    pub(crate) dropped: BTreeMap<String, u64>,
    pub(crate) api_up: Option<bool>,
    /// Seconds since the watch of this node's Node last received anything; `None` without a watch.
    pub(crate) watch_age: Option<f64>,
    pub(crate) members: Vec<Member>,
}

/// A writer of the agent's state that skips unchanged states, because a new file each second took a quarter of an idle agent's processor
/// time.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The kernel's id of this boot.
    pub(crate) boot: String,
    last: Option<State>,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self { boot: proc::boot_id(), last: None }
    }

    /// Writes the state immediately if it differs in more than times and counts from the last one. Otherwise writes it if the last write
    /// was [`QUIET`] ago.
    pub(crate) fn write(&mut self, state: State, dir: &Path) -> io::Result<()> {
        if self.last.as_ref().is_some_and(|last| !state.is_due(last)) {
            return Ok(());
        }
        // After a failure the next second tries again.
        self.last = None;
        state.write(dir)?;
        self.last = Some(state);
        Ok(())
    }
}

/// The number of datagrams that were sent or received on one network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Datagrams {
    pub(crate) direction: String,
    pub(crate) network: String,
    pub(crate) count: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) state: String,
    /// Seconds since the newest answered challenge was sent, for each network; `None` if none was answered.
    pub(crate) contacts: Vec<Option<f64>>,
    /// The mean round-trip time, in milliseconds; `None` before the first answer.
    pub(crate) round_trip: Option<f64>,
}

impl State {
    /// Returns whether this state must be written, after the state `last` was written.
    fn is_due(&self, last: &Self) -> bool {
        self.written.saturating_sub(last.written) >= clock::nanoseconds(QUIET) || self.news() != last.news()
    }

    /// Returns the state without the times, counts and round trips, which change each second even on an idle node.
    fn news(&self) -> Self {
        let news = |member: &Member| Member { contacts: Vec::new(), round_trip: None, ..member.clone() };
        Self {
            written: 0,
            deadline: None,
            datagrams: Vec::new(),
            dropped: BTreeMap::new(),
            watch_age: None,
            members: self.members.iter().map(news).collect(),
            ..self.clone()
        }
    }

    fn write(&self, dir: &Path) -> io::Result<()> {
        Dir::open(dir)?.replace(STATUS, &serde_json::to_vec(self)?, 0o600)
    }

    /// Reads the agent's state. Returns `None` if no agent has written one since this boot, or if the last agent ended cleanly.
    pub(crate) fn read(dir: &Path) -> io::Result<Option<Self>> {
        match Dir::open(dir).and_then(|dir| dir.own_file(STATUS, LIMIT)) {
            Ok(bytes) => {
                Ok(Some(serde_json::from_slice::<Self>(&bytes)?).filter(|state| state.boot == proc::boot_id()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn remove(dir: &Path) -> io::Result<()> {
        Dir::open(dir)?.remove(STATUS)
    }

    /// Returns the time since this state was written.
    pub(crate) fn age(&self) -> Duration {
        Duration::from_nanos(clock::boot_nanoseconds().saturating_sub(self.written))
    }
}
