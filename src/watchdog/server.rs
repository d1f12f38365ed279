//! The loop around the core: it collects connections, signals and the passing seconds, and carries out the outputs.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;

use super::clients::Clients;
use super::core::{self, Event, Id, Mux, Output};
use super::feeder::{Feeder, INTERVAL};
use super::paths::Paths;
use super::state::{Served, State};
use crate::adapters::chronicle::{Chronicle, Line, Weight};
use crate::adapters::watchdog::About;
use crate::os::{clock, daemon, notify, proc};

/// The longest time since the last feeding with which the state file still shows the device as fed.
const LATE: Duration = Duration::from_secs(3);

/// The main loop of the multiplexer, with everything that it uses.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) paths: Paths,
    pub(super) about: About,
    pub(super) client_timeout: Duration,
    pub(super) mux: Mux,
    pub(super) clients: Clients,
    pub(super) signals: SignalFd,
    pub(super) feeder: Feeder,
    pub(super) chronicle: Chronicle,
    /// The socket of the service manager (`NOTIFY_SOCKET`); `None` if there is none.
    pub(super) service: Option<OsString>,
}

/// The inputs that are ready after a wait of the main loop.
#[derive(Debug, Default)]
struct Ready {
    connections: bool,
    signals: bool,
    clients: Vec<Id>,
}

/// The failures that are already logged, so that the main loop does not log them each second.
#[derive(Debug, Default)]
struct Reported {
    failures: u64,
    is_state_written: bool,
    /// True if a connection could not be accepted. The main loop tries again in the next second.
    is_deaf: bool,
}

impl Server {
    /// Serves clients until the multiplexer is asked to end and no client is left. Then disarms the device. Returns an error if disarming
    /// fails.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut reported = Reported { is_state_written: true, ..Reported::default() };
        let mut next_tick = now();
        self.report(&mut reported);
        self.announce();
        loop {
            let ready = self.wait(next_tick, reported.is_deaf);
            let mut events = self.events(&ready, &mut reported);
            if self.feeder.has_ended() && self.mux.ended().is_none() {
                events.push(Event::Starved);
            }
            let is_tick = now() >= next_tick;
            if is_tick {
                events.push(Event::Tick);
                next_tick = now() + INTERVAL;
                reported.is_deaf = false;
            }
            for event in events {
                if self.handle(event) {
                    return self.end();
                }
            }
            if is_tick {
                self.report(&mut reported);
            }
        }
    }

    /// Reports to the service manager that the multiplexer is ready. The state file must already be written.
    fn announce(&self) {
        let sent = self.service.as_ref().map_or(Ok(()), |socket| notify::send(socket, "READY=1"));
        if let Err(error) = sent {
            self.chronicle.warn(format!("systemd was not reached: {error}"));
        }
    }

    /// Waits until an input is ready, at most until the next second. With `is_deaf`, new connections do not count as an input.
    fn wait(&self, next_tick: Duration, is_deaf: bool) -> Ready {
        let left = next_tick.saturating_sub(now()) + Duration::from_millis(1);
        let timeout = PollTimeout::try_from(left.min(INTERVAL)).unwrap_or(PollTimeout::from(100_u8));
        let (ids, streams): (Vec<Id>, Vec<_>) = self.clients.streams().unzip();
        let asked = if is_deaf { PollFlags::empty() } else { PollFlags::POLLIN };
        let own = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN), PollFd::new(self.clients.listener(), asked)];
        let streams = streams.into_iter().map(|stream| PollFd::new(stream, PollFlags::POLLIN));
        let mut all: Vec<PollFd<'_>> = own.into_iter().chain(streams).collect();
        if let Err(error) = poll(&mut all, timeout) {
            // The wait was interrupted, or the kernel is temporarily out of memory.
            self.chronicle.warn(format!("the wait for inputs failed: {error}"));
            clock::sleep(Duration::from_millis(10));
            return Ready::default();
        }
        let mut is_ready = all.iter().map(|fd| fd.any().unwrap_or(true));
        Ready {
            signals: is_ready.next().unwrap_or_default(),
            connections: is_ready.next().unwrap_or_default(),
            clients: ids.into_iter().zip(is_ready).filter_map(|(id, ready)| ready.then_some(id)).collect(),
        }
    }

    /// Collects the events from the inputs that are ready. The clients' bytes come first. Handling an event ends the feeding if a client
    /// seems silent for too long, so its new bytes must count before.
    fn events(&mut self, ready: &Ready, reported: &mut Reported) -> Vec<Event> {
        let mut events: Vec<Event> = ready.clients.iter().flat_map(|id| self.clients.read(*id)).collect();
        if ready.connections && !reported.is_deaf {
            let (connected, accepted) = self.clients.accept();
            events.extend(connected);
            if let Err(error) = accepted {
                reported.is_deaf = true;
                self.chronicle.warn(format!("connections cannot be accepted: {error}"));
            }
        }
        if ready.signals && daemon::is_asked_to_end(&self.signals) {
            events.push(Event::Terminate);
        }
        events
    }

    /// Carries out the actions that follow from `event`. Returns whether the multiplexer must end.
    fn handle(&mut self, event: Event) -> bool {
        let outputs = self.mux.handle(now(), event);
        self.feeder.feed_until(self.mux.fed_until());
        let mut is_end = false;
        for output in outputs {
            match output {
                Output::Mark => self.mark(),
                Output::Unmark => self.unmark(),
                Output::Refuse(id) | Output::Forget(id) => self.clients.drop(id),
                Output::StopFeeding => self.feeder.stop(),
                Output::Log(line) => self.chronicle.log(of_core(line)),
                Output::Disarm => is_end = true,
            }
        }
        is_end
    }

    fn mark(&self) {
        let marker = self.paths.marker();
        match DirBuilder::new().mode(0o700).create(&marker) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                self.chronicle.warn(format!("{} cannot be made: {error}", marker.display()));
            }
            _ => {}
        }
    }

    fn unmark(&self) {
        let marker = self.paths.marker();
        if let Err(error) = fs::remove_dir(&marker) {
            self.chronicle.warn(format!("{} cannot be removed: {error}", marker.display()));
        }
    }

    /// Writes the state file, and logs failures that are not logged yet.
    fn report(&self, reported: &mut Reported) {
        let (failures, error) = self.feeder.failures();
        if failures > 0 && reported.failures == 0 {
            self.chronicle.warn(format!("feeding failed: {}: {error}", self.about.path.display()));
        }
        reported.failures = failures;
        match self.state().write(&self.paths) {
            Ok(()) => reported.is_state_written = true,
            Err(error) if reported.is_state_written => {
                reported.is_state_written = false;
                self.chronicle.warn(format!("{} cannot be written: {error}", self.paths.state().display()));
            }
            Err(_) => {}
        }
    }

    fn state(&self) -> State {
        let now = now();
        let since = |then: Duration| now.saturating_sub(then).as_secs();
        let late = now.saturating_sub(self.feeder.fed_at());
        let clients = self.mux.clients().map(|client| Served {
            name: client.peer.name.clone(),
            pid: client.peer.pid,
            uid: client.peer.uid,
            connected: since(client.joined),
            silent: since(client.last_byte),
        });
        let is_late = || (late > LATE).then(|| format!("the device took no byte for {} s", late.as_secs()));
        State {
            boot: proc::boot_id(),
            written: clock::boot_nanoseconds(),
            pid: std::process::id(),
            device: self.about.path.display().to_string(),
            identity: self.about.identity.clone(),
            timeout: self.about.timeout.as_secs(),
            client_timeout: self.client_timeout.as_secs(),
            magic_close: self.about.has_magic_close,
            unfed: self.mux.ended().map(str::to_owned).or_else(is_late),
            is_ending: self.mux.is_ending(),
            clients: clients.collect(),
        }
    }

    fn end(self) -> io::Result<()> {
        let disarmed = self.feeder.disarm();
        if disarmed.is_ok() {
            self.chronicle.info(format!("disarmed: {}", self.about.path.display()));
        }
        if self.about.has_magic_close != Some(true) {
            let seconds = self.about.timeout.as_secs();
            self.chronicle
                .warn(format!("{} may keep running: reset in at most {seconds} s", self.about.path.display()));
        }
        let _ = State::remove(&self.paths);
        let _ = fs::remove_file(self.paths.socket());
        self.chronicle.end();
        disarmed
    }
}

fn of_core(line: core::Line) -> Line {
    let weight = match line.weight {
        core::Weight::Info => Weight::Info,
        core::Weight::Warning => Weight::Warning,
        core::Weight::Synced => Weight::Synced,
    };
    Line { weight, text: line.text }
}

fn now() -> Duration {
    Duration::from_nanos(clock::boot_nanoseconds())
}
