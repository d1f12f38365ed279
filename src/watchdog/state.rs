//! The state that `watchdog-mux run` writes each second, for `status` and `metrics`. These do not connect to the process, because
//! a connection would count as a client.

use std::io::{self, ErrorKind};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::paths::{Paths, STATE};
use crate::os::beneath::Dir;
use crate::os::{clock, proc};

/// The greatest size of the state file in bytes.
const LIMIT: u64 = 256 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) boot: String,
    /// The time at which the state was written, in nanoseconds since the machine started.
    pub(super) written: u64,
    pub(super) pid: u32,
    pub(super) device: String,
    pub(super) identity: String,
    pub(super) timeout: u64,
    pub(super) client_timeout: u64,
    pub(super) magic_close: Option<bool>,
    /// The reason why the device is not fed; `None` if it is fed.
    pub(super) unfed: Option<String>,
    pub(super) is_ending: bool,
    pub(super) clients: Vec<Served>,
}

/// The entry of one client in the state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Served {
    pub(super) name: String,
    pub(super) pid: i32,
    pub(super) uid: u32,
    /// The seconds since the client connected.
    pub(super) connected: u64,
    /// The seconds since the client's last byte.
    pub(super) silent: u64,
}

impl State {
    pub(super) fn write(&self, paths: &Paths) -> io::Result<()> {
        Dir::open(&paths.dir)?.replace(STATE, &serde_json::to_vec(self)?, 0o600)
    }

    /// Reads the state file. Returns `None` if no multiplexer has written it since this boot, or if the last multiplexer has ended
    /// cleanly.
    pub(super) fn read(paths: &Paths) -> io::Result<Option<Self>> {
        match Dir::open(&paths.dir).and_then(|dir| dir.own_file(STATE, LIMIT)) {
            Ok(bytes) => {
                Ok(Some(serde_json::from_slice::<Self>(&bytes)?).filter(|state| state.boot == proc::boot_id()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn remove(paths: &Paths) -> io::Result<()> {
        Dir::open(&paths.dir)?.remove(STATE)
    }

    /// Returns the time since the state was written.
    pub(super) fn age(&self) -> Duration {
        Duration::from_nanos(clock::boot_nanoseconds().saturating_sub(self.written))
    }
}
