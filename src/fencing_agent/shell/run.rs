//! The loop: it passes events to the core, and carries out the outputs.

pub(super) mod alarm;
mod changes;
mod draws;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use self::alarm::Alarm;
use self::draws::Draws;
use super::feeder::Feeder;
use super::grpc::hub::Hub;
use super::grpc::messages;
use super::keeper::Keeper;
use super::kubernetes::Kubernetes;
use super::lists::Lists;
use super::network::{LONGEST, Networks};
use super::report::Report;
use super::seal::{Dropped, Sealer};
use super::state::{Datagrams, Member, State, Writer};
use crate::adapters::chronicle::{self, Chronicle};
use crate::fencing_agent::config::Config;
use crate::fencing_agent::core::{self, Agent, Change, ChangeKind, Event, MemberView, Name, Output, Snapshot};
use crate::os::{clock, notify};

/// Interval at which the main loop writes the state if it changed, and checks files for changes.
const TICK: Duration = Duration::from_secs(1);
/// The greatest number of datagrams that are read before the main loop handles clients and signals.
const BATCH: usize = 256;

/// The main loop, with everything that it needs.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) config: Config,
    pub(crate) run_dir: PathBuf,
    pub(crate) agent: Agent,
    pub(crate) sealer: Sealer,
    pub(crate) networks: Networks,
    pub(crate) alarm: Alarm,
    /// The name of this node's interface on each network.
    pub(crate) interfaces: Vec<String>,
    pub(crate) feeder: Feeder,
    pub(crate) reports: UnboundedReceiver<Report>,
    pub(crate) hub: Hub,
    pub(crate) keeper: Keeper,
    pub(crate) lists: Lists,
    pub(crate) writer: Writer,
    pub(crate) kubernetes: Option<Kubernetes>,
    pub(crate) chronicle: Chronicle,
    /// The socket of the service manager (`NOTIFY_SOCKET`); `None` if there is none.
    pub(crate) service: Option<OsString>,
    pub(crate) work: Work,
}

/// The data that only the main loop changes.
#[derive(Debug, Default)]
pub(crate) struct Work {
    addresses: BTreeMap<Name, Vec<SocketAddr>>,
    wake: Duration,
    draws: Draws,
    events: Vec<messages::Event>,
    sent: Vec<u64>,
    received: Vec<u64>,
    dropped: BTreeMap<&'static str, u64>,
    identity: Option<String>,
    timeout: Duration,
    /// The reason why the connection to `watchdog-mux` is closed without `V`; `None` if it is not.
    mux_closed: Option<String>,
    maintenance: Option<Vec<String>>,
    /// The reasons for not using the watchdog, from this node's Node; `None` until the API server has answered.
    of_node: Option<Vec<String>>,
    feeding_failures: u64,
    is_state_written: bool,
}

/// The event that ended a wait of the main loop.
enum Found {
    Datagram { network: usize, length: usize },
    Report(Report),
    Time,
}

impl Shell {
    /// Runs the main loop until the core requests the end. Orders to the feeding thread are carried out before it returns.
    pub(crate) async fn run(mut self) {
        let networks = self.interfaces.len();
        self.work.sent = vec![0; networks];
        self.work.received = vec![0; networks];
        self.work.is_state_written = true;
        self.list();
        let mut next_tick = now();
        let mut buffer = vec![0; LONGEST];
        let mut is_end = self.handle(Event::Wake);
        let mut is_ready = false;
        while !is_end {
            if now() >= next_tick {
                next_tick = now() + TICK;
                is_end = self.tick();
                if !is_ready {
                    is_ready = true;
                    self.announce();
                }
                continue;
            }
            is_end = match self.wait(next_tick, &mut buffer).await {
                Found::Datagram { network, length } => self.receive(network, length, &mut buffer).await,
                Found::Report(report) => self.reported(report),
                Found::Time => self.handle(Event::Wake),
            };
        }
        self.end();
    }

    async fn wait(&mut self, next_tick: Duration, buffer: &mut [u8]) -> Found {
        self.alarm.set(self.work.wake.min(next_tick));
        // Reports come first because they are few, so a flood of datagrams delays none. A waiting answer comes before the time,
        // so that it does not become late.
        tokio::select! {
            biased;
            Some(report) = self.reports.recv() => Found::Report(report),
            (network, length) = self.networks.receive(buffer) => Found::Datagram { network, length },
            () = self.alarm.rings() => Found::Time,
        }
    }

    /// Passes a datagram, and those that arrived after it, to the agent's pure core. Returns whether the agent must end.
    async fn receive(&mut self, network: usize, length: usize, buffer: &mut [u8]) -> bool {
        let (mut network, mut length) = (network, length);
        for _ in 0..BATCH {
            if let Some(count) = self.work.received.get_mut(network) {
                *count += 1;
            }
            match self.sealer.open(buffer.get(..length).unwrap_or_default(), network) {
                Ok((from, payload)) => {
                    if self.handle(Event::Received { from: Name::from(from), network, payload }) {
                        return true;
                    }
                }
                Err(why) => {
                    // The sender may be a node that was added to the group since the last list.
                    if let (Dropped::Unlisted, Some(kubernetes)) = (why, &self.kubernetes) {
                        kubernetes.list();
                    }
                    *self.work.dropped.entry(why.word()).or_default() += 1;
                }
            }
            if now() >= self.work.wake {
                return self.handle(Event::Wake);
            }
            let next = tokio::select! {
                biased;
                next = self.networks.receive(buffer) => next,
                () = std::future::ready(()) => return false,
            };
            (network, length) = next;
        }
        // Clients and signals have their turn here.
        tokio::task::yield_now().await;
        false
    }

    /// Passes a report of a thread to the agent's pure core. Returns whether the agent must end.
    fn reported(&mut self, report: Report) -> bool {
        let device = self.config.watchdog.device.display().to_string();
        let event = match report {
            Report::Opened { identity, timeout, has_magic_close, warnings } => {
                for warning in warnings {
                    self.chronicle.warn(format!("{device}: {warning}"));
                }
                self.work.identity = Some(identity.clone());
                self.work.timeout = timeout;
                self.work.mux_closed = None;
                Event::Opened { identity, timeout, has_magic_close }
            }
            Report::NotOpened { why } => Event::NotOpened { why },
            Report::Terminate => Event::Terminate,
            Report::Kubernetes(told) => return self.of_kubernetes(told),
            Report::MuxClosed { why } => {
                let why = format!("{device} closed without V ({why})");
                let text = format!("{why}: reset in at most {} s", self.work.timeout.as_secs());
                self.work.mux_closed = Some(why);
                self.chronicle.log(chronicle::Line { weight: chronicle::Weight::Synced, text });
                return false;
            }
        };
        self.handle(event)
    }

    /// Passes `event` to the agent's pure core, and carries out the outputs. Returns whether the agent must end.
    fn handle(&mut self, event: Event) -> bool {
        let draws = &mut self.work.draws;
        let outputs = self.agent.handle(now(), event, &mut || draws.next());
        let mut is_end = false;
        let mut answers = Vec::new();
        for output in outputs {
            match output {
                Output::Send { to, network, payload } => self.send(&to, network, &payload),
                Output::Arm => self.feeder.arm(),
                Output::FeedUntil(until) => self.feeder.feed_until(until),
                Output::Disarm => self.feeder.disarm(),
                Output::Publish(change) => self.publish(&change),
                Output::Log(line) => self.chronicle.log(of_core(line)),
                Output::RememberUnfed(reason) => self.keeper.remember(reason),
                Output::AskApi { asked } => match &self.kubernetes {
                    Some(kubernetes) => kubernetes.read(asked),
                    None => answers.push(Event::ApiFailed { asked }),
                },
                Output::WakeAt(at) => self.work.wake = at,
                Output::End => is_end = true,
            }
        }
        if !self.work.events.is_empty() {
            let events = std::mem::take(&mut self.work.events);
            self.hub.publish(self.nodes(), &events);
        }
        answers.into_iter().fold(is_end, |is_end, answer| self.handle(answer) || is_end)
    }

    fn send(&mut self, to: &Name, network: usize, payload: &[u8]) {
        let Some(address) = self.work.addresses.get(to).and_then(|all| all.get(network)).copied() else { return };
        let sent = self.sealer.seal(to, network, payload).map(|sealed| self.networks.send(network, address, &sealed));
        if matches!(sent, Some(Ok(()))) {
            if let Some(count) = self.work.sent.get_mut(network) {
                *count += 1;
            }
        } else {
            *self.work.dropped.entry("unsent").or_default() += 1;
        }
    }

    fn publish(&mut self, change: &Change) {
        let kind = match change.kind {
            ChangeKind::Left => messages::EventType::Left,
            ChangeKind::Join => messages::EventType::Join,
        };
        self.work.events.push(messages::Event {
            node: Some(self.node(&change.name, change.lost_at)),
            time: Some(wall(change.at)),
            r#type: kind.into(),
            source_name: Some(change.source.to_string()),
        });
    }

    /// Returns the members that are present, for local clients.
    fn nodes(&self) -> Vec<messages::Node> {
        let members = self.agent.snapshot(now()).members;
        let present = members.iter().filter(|member| member.state.is_present());
        present.map(|member| self.node(&member.name, member.lost_at)).collect()
    }

    fn node(&self, name: &Name, lost_at: Option<Duration>) -> messages::Node {
        let addresses = self.work.addresses.get(name).map(Vec::as_slice).unwrap_or_default();
        let named = addresses.iter().enumerate().map(|(network, address)| {
            let interface = self.interfaces.get(network).cloned();
            (interface.unwrap_or_else(|| "InternalIP".to_owned()), address.ip().to_string())
        });
        messages::Node { name: name.to_string(), addresses: named.collect(), prev_disconnect_time: lost_at.map(wall) }
    }

    /// Applies the members in the configuration: sets their addresses, and accepts datagrams only from them. Returns their names.
    fn list(&mut self) -> Vec<Name> {
        self.sealer.list(self.config.members.keys().map(String::as_str));
        let port = self.config.port;
        let of = |addresses: &Vec<_>| addresses.iter().map(|address| SocketAddr::new(*address, port)).collect();
        let members = self.config.members.iter();
        self.work.addresses = members.map(|(name, all)| (Name::from(name.as_str()), of(all))).collect();
        self.work.addresses.keys().cloned().collect()
    }

    /// Checks the disable file and the file of members, and writes the state if it is due. Returns whether the agent must end.
    fn tick(&mut self) -> bool {
        let mut is_end = false;
        is_end |= self.maintain();
        let changed = self.lists.changed(&self.config);
        is_end |= self.take_list(changed);
        is_end |= self.handle(Event::Wake);
        self.hub.publish(self.nodes(), &[]);
        self.report();
        is_end
    }

    /// Writes the state of the agent, and logs new failures of feeding and writing.
    fn report(&mut self) {
        let (failures, error) = self.feeder.failures();
        if failures > 0 && self.work.feeding_failures == 0 {
            self.chronicle.warn(format!("feeding failed: {}: {error}", self.config.watchdog.device.display()));
        }
        self.work.feeding_failures = failures;
        let now = now();
        let state = self.state(self.agent.snapshot(now), now);
        match self.writer.write(state, &self.run_dir) {
            Ok(()) => self.work.is_state_written = true,
            Err(error) if self.work.is_state_written => {
                self.work.is_state_written = false;
                self.chronicle.warn(format!("{} cannot be written: {error}", self.run_dir.display()));
            }
            Err(_) => {}
        }
    }

    fn state(&self, seen: Snapshot, now: Duration) -> State {
        let mut dropped: BTreeMap<String, u64> = BTreeMap::new();
        for (reason, count) in self.work.dropped.iter().chain(&seen.dropped_total) {
            *dropped.entry((*reason).to_owned()).or_default() += count;
        }
        let late = self.feeder.late(now);
        let has_watchdog = self.config.on_quorum_loss == core::OnQuorumLoss::Watchdog;
        State {
            boot: self.writer.boot.clone(),
            written: clock::nanoseconds(now),
            pid: std::process::id(),
            node: self.config.node.clone(),
            group: self.config.group.clone(),
            on_quorum_loss: match self.config.on_quorum_loss {
                core::OnQuorumLoss::Watchdog => "watchdog",
                core::OnQuorumLoss::Notify => "notify",
                core::OnQuorumLoss::Wait => "wait",
            }
            .to_owned(),
            device: has_watchdog.then(|| self.config.watchdog.device.display().to_string()),
            identity: self.work.identity.clone().filter(|_| seen.armed),
            timeout: self.work.timeout.as_secs(),
            quorum: seen.quorum,
            reachable: seen.reachable,
            window: seen.window.as_secs_f64(),
            armed: seen.armed && self.feeder.is_open(),
            fed: seen.fed && self.feeder.is_open() && late.is_none(),
            deadline: seen.deadline.map(clock::nanoseconds),
            disarmed: seen.disarmed_because,
            unfed: unfed(seen.unfed_because, self.work.mux_closed.clone(), late),
            score: seen.score,
            suspicions: seen.suspicions_total,
            joins: seen.join_total,
            leaves: seen.left_total,
            datagrams: self.datagrams(),
            dropped,
            api_up: seen.api_up,
            watch_age: self.kubernetes.as_ref().and_then(Kubernetes::watch_age).map(|age| age.as_secs_f64()),
            members: seen.members.iter().map(|member| shown(member, now)).collect(),
        }
    }

    fn datagrams(&self) -> Vec<Datagrams> {
        let counted = [("sent", &self.work.sent), ("received", &self.work.received)];
        let rows = counted.into_iter().flat_map(|(direction, counts)| {
            self.interfaces.iter().zip(counts).map(move |(network, count)| Datagrams {
                direction: direction.to_owned(),
                network: network.clone(),
                count: *count,
            })
        });
        rows.collect()
    }

    /// Reports to the service manager that the agent is ready. The first state must already be written.
    fn announce(&self) {
        let sent = self.service.as_ref().map_or(Ok(()), |socket| notify::send(socket, "READY=1"));
        if let Err(error) = sent {
            self.chronicle.warn(format!("systemd was not reached: {error}"));
        }
    }

    fn end(self) {
        self.hub.end();
        self.feeder.end();
        self.keeper.end();
        let _ = State::remove(&self.run_dir);
        self.chronicle.end();
    }
}

/// Returns the reason why the watchdog is not fed although it runs. The core's reason is the cause of the others, if there is one. The core
/// knows neither that `watchdog-mux` died, nor that a driver refuses bytes.
fn unfed(of_core: Option<String>, mux_closed: Option<String>, late: Option<Duration>) -> Option<String> {
    let late = late.map(|late| format!("the device took no byte for {} s", late.as_secs()));
    of_core.or(mux_closed).or(late)
}

fn shown(member: &MemberView, now: Duration) -> Member {
    let since = |then: Duration| now.saturating_sub(then).as_secs_f64();
    Member {
        name: member.name.to_string(),
        state: member.state.word().to_owned(),
        contacts: member.contacts.iter().map(|contact| contact.map(since)).collect(),
        round_trip: member.round_trip.map(|time| time.as_secs_f64() * 1_000.0),
    }
}

fn of_core(line: core::Line) -> chronicle::Line {
    let weight = match line.weight {
        core::Weight::Info => chronicle::Weight::Info,
        core::Weight::Warning => chronicle::Weight::Warning,
        core::Weight::Synced => chronicle::Weight::Synced,
    };
    chronicle::Line { weight, text: line.text }
}

/// Converts a time since boot to wall-clock time.
fn wall(at: Duration) -> messages::Timestamp {
    let ago = now().saturating_sub(at);
    messages::Timestamp::of(Duration::from_millis(clock::wall_millis()).saturating_sub(ago))
}

fn now() -> Duration {
    Duration::from_nanos(clock::boot_nanoseconds())
}
