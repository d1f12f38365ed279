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
/// The interval at which an unchanged state is written. A reader regards a state older than 5 s as a dead agent's.
const QUIET: Duration = Duration::from_secs(2);

/// The state. `written` and `deadline` are nanoseconds since boot. The page of metrics has relative times.
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
    /// The seconds since the last sign of the watch of the own Node.
    pub(crate) watch_age: Option<f64>,
    pub(crate) members: Vec<Member>,
}

/// A writer of the states of a running agent. It skips unchanged states, because a new file each second was a quarter of an idle
/// agent's cost.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The kernel's id of this boot, which does not change under a running process.
    pub(crate) boot: String,
    last: Option<State>,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self { boot: proc::boot_id(), last: None }
    }

    /// Writes the state at once if it has news, and each [`QUIET`] otherwise.
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

/// The number of datagrams that were sent or received on a network.
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
    /// The seconds since the newest answered challenge was sent, by network.
    pub(crate) contacts: Vec<Option<f64>>,
    /// The round trip in milliseconds.
    pub(crate) round_trip: Option<f64>,
}

impl State {
    /// Returns whether the state must be written, if `last` was written last.
    fn is_due(&self, last: &Self) -> bool {
        self.written.saturating_sub(last.written) >= u64::try_from(QUIET.as_nanos()).unwrap_or(u64::MAX)
            || self.news() != last.news()
    }

    /// Returns the state without the parts that change each second on an idle node: times, counts and round trips.
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

    /// Reads the state; `None` if no agent has written one since this boot, or if the last one ended cleanly.
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

    /// Returns the age of the state.
    pub(crate) fn age(&self) -> Duration {
        Duration::from_nanos(clock::boot_nanoseconds().saturating_sub(self.written))
    }
}
