//! The pure core of the multiplexer: events in, outputs out. It has no clock, no file and no socket.
//!
//! `now` is the time since the machine started, sleep included. The wall clock is no input, so a step of it has no effect.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The greatest number of clients that are served at the same time.
pub(super) const MOST_CLIENTS: usize = 100;
/// The last byte of a client that leaves cleanly. The end of a connection after this byte does not end the feeding of the device.
pub(super) const LEAVES: u8 = b'V';

/// The number of a client's connection. No other connection in the life of this process has the same number.
pub(super) type Id = u64;

/// The program that has connected as a client. The kernel provides the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) name: String,
    pub(super) pid: i32,
    pub(super) uid: u32,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {}, uid {})", self.name, self.pid, self.uid)
    }
}

/// An input of the multiplexer, from a client, a signal or the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Connected {
        id: Id,
        peer: Peer,
    },
    /// A client has sent bytes. Only the last one counts.
    Bytes {
        id: Id,
        last: u8,
    },
    /// The connection of a client has ended, for any reason.
    Closed {
        id: Id,
    },
    /// A second has passed.
    Tick,
    /// The service manager or the operator asks the multiplexer to end.
    Terminate,
    /// The feeding thread has stopped, because the main loop did not renew its deadline in time.
    Starved,
}

/// An action of the multiplexer, which the main loop carries out. It carries out several actions in the order of their list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Create the marker, a directory that exists while clients are connected.
    Mark,
    /// Remove the marker, a directory that exists while clients are connected.
    Unmark,
    /// Close the connection of a client that the multiplexer does not serve.
    Refuse(Id),
    /// Forget a connection, because it has ended.
    Forget(Id),
    /// Stop the feeding thread permanently.
    StopFeeding,
    /// Write `V` to the device, close it, and end the process.
    Disarm,
    Log(Line),
}

/// The level of a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Info,
    Warning,
    /// A warning that may be among the last lines before a reset. The journal is synced to disk after it.
    Synced,
}

/// A line of the log, with its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) weight: Weight,
    pub(super) text: String,
}

/// A client that the multiplexer serves.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) peer: Peer,
    pub(super) joined: Duration,
    pub(super) last_byte: Duration,
    leaves: bool,
    is_warned: bool,
}

/// The state of the multiplexer: its clients, and whether the device is fed.
#[derive(Clone, Debug)]
pub(super) struct Mux {
    client_timeout: Duration,
    /// The time-out of the watchdog device, which the log names.
    reset_within: Duration,
    clients: BTreeMap<Id, Client>,
    /// The reason why the device is no longer fed; `None` while it is fed.
    ended: Option<String>,
    is_ending: bool,
}

impl Mux {
    pub(super) fn new(client_timeout: Duration, reset_within: Duration) -> Self {
        Self { client_timeout, reset_within, clients: BTreeMap::new(), ended: None, is_ending: false }
    }

    /// Returns the actions that follow from `event` at the time `now`. First ends the feeding if a client has been silent for too long,
    /// whatever the event is.
    pub(super) fn handle(&mut self, now: Duration, event: Event) -> Vec<Output> {
        let mut outputs = self.find_silent(now);
        match event {
            Event::Connected { id, peer } => outputs.extend(self.connect(now, id, peer)),
            Event::Bytes { id, last } => self.keep_alive(now, id, last),
            Event::Closed { id } => outputs.extend(self.close(id)),
            Event::Terminate => outputs.extend(self.terminate()),
            Event::Starved if self.ended.is_none() => {
                outputs
                    .extend(self.end_feeding("the multiplexer itself was held up beyond a client's time".to_owned()));
            }
            Event::Tick | Event::Starved => {}
        }
        outputs
    }

    /// Returns the time until which the device is fed if no client sends another byte. Returns `None` while no client is connected,
    /// because the device is then fed without a limit.
    pub(super) fn fed_until(&self) -> Option<Duration> {
        if self.ended.is_some() {
            return Some(Duration::ZERO);
        }
        self.clients.values().map(|client| client.last_byte).min().map(|oldest| oldest + self.client_timeout)
    }

    /// Returns the reason why the device is no longer fed; `None` while it is fed.
    pub(super) fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// Returns whether the multiplexer was asked to end and still runs.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.values()
    }

    fn connect(&mut self, now: Duration, id: Id, peer: Peer) -> Vec<Output> {
        let refused = if self.ended.is_some() {
            Some("feeding has ended".to_owned())
        } else if self.is_ending {
            Some("this multiplexer ends".to_owned())
        } else {
            (self.clients.len() >= MOST_CLIENTS).then(|| format!("there are {MOST_CLIENTS} clients"))
        };
        if let Some(why) = refused {
            return vec![Output::Refuse(id), log(Weight::Warning, format!("client refused: {peer}: {why}"))];
        }
        let mut outputs: Vec<Output> = self.clients.is_empty().then_some(Output::Mark).into_iter().collect();
        outputs.push(log(Weight::Info, format!("client joined: {peer}; clients: {}", self.clients.len() + 1)));
        self.clients.insert(id, Client { peer, joined: now, last_byte: now, leaves: false, is_warned: false });
        outputs
    }

    fn keep_alive(&mut self, now: Duration, id: Id, last: u8) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.last_byte = now;
            client.leaves = last == LEAVES;
            client.is_warned = false;
        }
    }

    fn close(&mut self, id: Id) -> Vec<Output> {
        let Some(client) = self.clients.remove(&id) else { return vec![Output::Forget(id)] };
        let mut outputs = vec![Output::Forget(id)];
        if client.leaves {
            let left = format!("client left: {}; clients: {}", client.peer, self.clients.len());
            outputs.push(log(Weight::Info, left));
        } else if self.ended.is_none() {
            outputs.extend(self.end_feeding(format!("{} closed without V", client.peer)));
        }
        if self.clients.is_empty() && self.ended.is_none() {
            outputs.push(Output::Unmark);
            outputs.extend(self.is_ending.then_some(Output::Disarm));
        }
        outputs
    }

    fn terminate(&mut self) -> Vec<Output> {
        self.is_ending = true;
        if let Some(why) = &self.ended {
            return vec![log(Weight::Warning, format!("end refused: feeding has ended, the machine resets: {why}"))];
        }
        if self.clients.is_empty() {
            return vec![Output::Disarm];
        }
        let names: Vec<String> = self.clients.values().map(|client| client.peer.to_string()).collect();
        let waits = format!("end delayed: fed until {} clients have left: {}", names.len(), names.join(", "));
        vec![log(Weight::Warning, waits)]
    }

    /// Warns of clients that have been silent for five sixths of the allowed time. Ends the feeding if a client has been silent for the
    /// whole allowed time.
    fn find_silent(&mut self, now: Duration) -> Vec<Output> {
        if self.ended.is_some() {
            return Vec::new();
        }
        let (most, early) = (self.client_timeout, self.client_timeout * 5 / 6);
        let mut outputs = Vec::new();
        let mut over = None;
        for client in self.clients.values_mut() {
            let silent = now.saturating_sub(client.last_byte);
            if silent >= most && over.is_none() {
                over = Some(format!("{} sent no byte for {} s", client.peer, most.as_secs()));
            } else if silent >= early && !client.is_warned {
                client.is_warned = true;
                let left = most.saturating_sub(silent).as_secs();
                let line = format!(
                    "client silent: {} sent no byte for {} s; feeding ends in {left} s",
                    client.peer,
                    silent.as_secs()
                );
                outputs.push(log(Weight::Synced, line));
            }
        }
        if let Some(why) = over {
            outputs.extend(self.end_feeding(why));
        }
        outputs
    }

    fn end_feeding(&mut self, why: String) -> [Output; 2] {
        let line = format!("feeding ended: {why}; reset in at most {} s", self.reset_within.as_secs());
        self.ended = Some(why);
        [Output::StopFeeding, log(Weight::Synced, line)]
    }
}

fn log(weight: Weight, text: String) -> Output {
    Output::Log(Line { weight, text })
}

#[cfg(test)]
mod tests;
