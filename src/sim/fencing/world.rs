//! The network in simulated time: the queue of events, and the work of each agent's shell with the outputs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::judge::{Judge, name_of};
use super::machine::{Device, Machine, TIMEOUT};
use super::mutant::Mutant;
use super::{Options, Outcome, Random};
use crate::fencing_agent::core::{
    ChangeKind, Datagram, Event, MemberState, Message, Name, Output, Timing, TimingOverrides,
};

/// The interval at which the feeding thread feeds the watchdog.
const FEEDS: Duration = Duration::from_secs(1);
/// The time that a machine takes to boot.
pub(super) const BOOT: Duration = Duration::from_secs(20);
/// The number of datagrams of which one is delivered a second time, much later.
const COPIES: usize = 200;
/// The number of bytes that each datagram has in addition to its payload. They are the headers of IP and UDP, and the seal with a name,
/// a boot, a counter and a tag.
const AROUND: u64 = 28 + 56;

/// An event of the simulation. The queue has the time of each.
#[derive(Debug)]
pub(super) enum Happening {
    Wake { at: usize, life: u32, meant: Duration },
    Arrives { at: usize, from: usize, payload: Vec<u8> },
    Opened { at: usize, life: u32 },
    Api { at: usize, life: u32, asked: Duration },
    Feed { at: usize },
    Start { at: usize },
    Rates,
    Fault,
    Undo,
    Kill { at: usize },
    Terminate { at: usize },
    SeesAll,
}

pub(super) struct World {
    pub(super) options: Options,
    pub(super) now: Duration,
    pub(super) random: Random,
    pub(super) names: Vec<Name>,
    pub(super) machines: Vec<Machine>,
    pub(super) judge: Judge,
    queue: BTreeMap<(Duration, u64), Happening>,
    sequence: u64,
    pub(super) outcome: Outcome,
    /// The description of the current fault, for the log and the report.
    pub(super) fault: String,
    /// The time at which machines were cut off, with the number of `LEFT` events that each machine still has to publish; `None` if no
    /// machine is cut off.
    pub(super) cut_at: Option<(Duration, Vec<usize>)>,
}

impl World {
    pub(super) fn new(options: Options) -> Self {
        let count = options.members;
        let judge = Judge {
            members: count,
            timing: Timing::of(count, &TimingOverrides::default()),
            cut: vec![vec![None; count]; count],
            no_api: vec![None; count],
            settled: Duration::ZERO,
            lossy: None,
            round_trip: options.delay * 2,
            loss: options.loss,
        };
        let mut world = Self {
            now: Duration::ZERO,
            random: Random(options.seed),
            names: (0..count).map(|at| Name::from(name_of(at))).collect(),
            machines: (0..count).map(|_| Machine::new()).collect(),
            judge,
            queue: BTreeMap::new(),
            sequence: 0,
            outcome: Outcome::default(),
            fault: "none".to_owned(),
            cut_at: None,
            options,
        };
        for at in 0..count {
            let begins = world.random.between(Duration::ZERO, Duration::from_secs(1));
            world.after(begins, Happening::Start { at });
            world.after(begins, Happening::Feed { at });
        }
        world.after(Duration::from_secs(30), Happening::Rates);
        if world.options.faults {
            world.after(Duration::from_secs(30), Happening::Fault);
        }
        world
    }

    pub(super) fn run(mut self) -> Outcome {
        let end = Duration::from_secs(self.options.minutes * 60);
        while let Some(((now, _), what)) = self.queue.pop_first() {
            if now > end {
                break;
            }
            self.now = now;
            if let Err(wrong) = self.happen(what) {
                self.outcome.fault = Some(format!("{now:.3?}: {wrong} (fault: {})", self.fault));
                break;
            }
        }
        self.outcome
    }

    pub(super) fn after(&mut self, delay: Duration, what: Happening) {
        self.sequence += 1;
        self.queue.insert((self.now + delay, self.sequence), what);
    }

    pub(super) fn log(&mut self, text: &str) {
        self.outcome.log.push(format!("{:9.3} {text}", self.now.as_secs_f64()));
    }

    fn happen(&mut self, what: Happening) -> Result<(), String> {
        match what {
            Happening::Wake { at, life, meant } if self.is_life(at, life) && self.machines[at].wakes_at == meant => {
                if self.machines[at].is_frozen {
                    self.again(Happening::Wake { at, life, meant });
                    return Ok(());
                }
                self.give(at, Event::Wake)
            }
            Happening::Arrives { at, from, payload } => self.arrives(at, from, payload),
            Happening::Opened { at, life } if self.is_life(at, life) => {
                self.machines[at].device = Device::Running { fed: self.now, is_held: true };
                self.judge.fed(self.now, &self.machines, at).map_err(|wrong| format!("{}: {wrong}", name_of(at)))?;
                self.give(at, Event::Opened { identity: "softdog".to_owned(), timeout: TIMEOUT, has_magic_close: true })
            }
            Happening::Api { at, life, asked } if self.is_life(at, life) => {
                let answers = self.judge.no_api[at].is_none();
                self.give(at, if answers { Event::ApiAnswered { asked } } else { Event::ApiFailed { asked } })
            }
            Happening::Wake { .. } | Happening::Opened { .. } | Happening::Api { .. } => Ok(()),
            Happening::Feed { at } => self.feed(at),
            Happening::Start { at } => self.start(at),
            Happening::Rates => {
                self.rates();
                Ok(())
            }
            Happening::Fault => {
                self.begin_fault();
                Ok(())
            }
            Happening::Undo => {
                self.end_fault();
                Ok(())
            }
            Happening::Kill { at } => {
                self.machines[at].kill(self.now);
                self.settle();
                Ok(())
            }
            Happening::Terminate { at } => self.terminate(at),
            Happening::SeesAll => self.sees_all(),
        }
    }

    fn is_life(&self, at: usize, life: u32) -> bool {
        self.machines[at].life == life && self.machines[at].agent.is_some()
    }

    pub(super) fn settle(&mut self) {
        self.judge.settle(self.now, &mut self.machines);
    }

    /// Puts an event back into the queue, because the process that it is for is frozen and cannot handle it yet.
    fn again(&mut self, what: Happening) {
        self.after(Duration::from_millis(50), what);
    }

    fn start(&mut self, at: usize) -> Result<(), String> {
        if self.machines[at].agent.is_some() {
            return Ok(());
        }
        let (me, mutant) = (self.names[at].clone(), self.options.mutant);
        self.machines[at].start(self.now, &me, &self.names, mutant);
        self.settle();
        self.give(at, Event::Maintenance(Vec::new()))
    }

    fn arrives(&mut self, at: usize, from: usize, payload: Vec<u8>) -> Result<(), String> {
        if self.machines[at].agent.is_none() {
            return Ok(());
        }
        if self.machines[at].is_frozen {
            self.again(Happening::Arrives { at, from, payload });
            return Ok(());
        }
        let newest = self.machines[at].newest.get(&from).copied();
        let suspects = || self.suspects_of(from);
        let payload = self.options.mutant.arriving(payload, newest, suspects);
        let sent = match Datagram::decode(&payload).map(|datagram| datagram.message) {
            Some(Message::Answer { nonce: answered, .. } | Message::AnswerAndChallenge { answered, .. }) => {
                self.machines[at].sent.remove(&answered)
            }
            _ => None,
        };
        self.machines[at].under_way = sent.map_or(Duration::ZERO, |sent| self.now.saturating_sub(sent));
        let given = self.give(at, Event::Received { from: self.names[from].clone(), network: 0, payload });
        self.machines[at].under_way = Duration::ZERO;
        given
    }

    fn suspects_of(&self, at: usize) -> Vec<Name> {
        let clock = self.machines[at].clock(self.now, self.options.mutant);
        let members = self.machines[at].agent.as_ref().map(|agent| agent.snapshot(clock).members);
        let suspects = members.into_iter().flatten().filter(|member| member.state == MemberState::Suspect);
        suspects.map(|member| member.name).collect()
    }

    /// Hands an event to the agent of machine `at`, performs the agent's outputs, and judges the result.
    pub(super) fn give(&mut self, at: usize, event: Event) -> Result<(), String> {
        let mutant = self.options.mutant;
        let clock = self.machines[at].clock(self.now, mutant);
        let mut random = self.random.clone();
        let Some(agent) = self.machines[at].agent.as_mut() else { return Ok(()) };
        let outputs = agent.handle(clock, event, &mut || random.next());
        self.random = random;
        outputs
            .into_iter()
            .try_for_each(|output| self.carry_out(at, output))
            .map_err(|wrong| if wrong.starts_with("node") { wrong } else { format!("{}: {wrong}", name_of(at)) })?;
        self.note_suspects(at);
        self.judge.machine(self.now, &self.machines, at).map_err(|wrong| format!("{}: {wrong}", name_of(at)))?;
        if mutant == Mutant::QuorumOfSeen {
            self.feed_by_seen(at)?;
        }
        Ok(())
    }

    /// Sets the deadline of machine `at`, for [`Mutant::QuorumOfSeen`], by a majority of the members that the machine's agent sees.
    fn feed_by_seen(&mut self, at: usize) -> Result<(), String> {
        let Some(members) = self.machines[at].agent.as_ref().map(|agent| agent.snapshot(self.now).members) else {
            return Ok(());
        };
        let seen = members.into_iter().filter(|member| member.state.is_present());
        let mut contacts: Vec<Duration> =
            seen.filter_map(|member| member.contacts.into_iter().flatten().max()).collect();
        contacts.sort_unstable_by(|one, other| other.cmp(one));
        let deadline = contacts.get(contacts.len() / 2).map(|contact| *contact + self.judge.timing.window);
        self.machines[at].deadline = deadline.unwrap_or_default();
        self.judge.deadline(self.now, &self.machines, at).map_err(|wrong| format!("{}: {wrong}", name_of(at)))
    }

    fn note_suspects(&mut self, at: usize) {
        if self.judge.lossy == Some(at) {
            let (suspects, now) = (self.suspects_of(at), self.now);
            let known = &mut self.machines[at].suspects;
            known.retain(|name, _| suspects.contains(name));
            for name in suspects {
                known.entry(name).or_insert(now);
            }
        }
    }

    fn carry_out(&mut self, at: usize, output: Output) -> Result<(), String> {
        let (life, mutant) = (self.machines[at].life, self.options.mutant);
        match output {
            Output::Send { to, payload, .. } => self.send(at, &to, payload),
            Output::Arm => self.after(Duration::from_millis(5), Happening::Opened { at, life }),
            Output::FeedUntil(deadline) => {
                let score = self.score(at);
                let machine = &mut self.machines[at];
                let deadline = mutant.deadline(deadline, machine.under_way, score, self.judge.timing.window);
                machine.deadline = machine.moment(deadline, mutant);
                self.judge.deadline(self.now, &self.machines, at)?;
            }
            Output::Disarm => {
                self.judge.disarmed(self.now, &self.machines, at)?;
                self.machines[at].device = Device::Closed;
            }
            Output::Publish(change) => {
                let lost = self.names.iter().position(|name| *name == change.name).unwrap_or(at);
                if change.kind == ChangeKind::Left {
                    self.outcome.left += 1;
                    self.note_left(at);
                    self.judge.left(self.now, &self.machines, at, lost)?;
                } else {
                    self.outcome.join += 1;
                }
            }
            Output::Log(line) => self.log(&format!("{}: {}", name_of(at), line.text)),
            Output::AskApi { asked } => self.after(Duration::from_millis(50), Happening::Api { at, life, asked }),
            Output::WakeAt(agents) => {
                let machine = &mut self.machines[at];
                let meant = machine.moment(agents, mutant).max(self.now + Duration::from_millis(1));
                // An earlier wake-up that is still queued is ignored, because `wakes_at` differs.
                machine.wakes_at = meant;
                self.after(meant.saturating_sub(self.now), Happening::Wake { at, life, meant });
            }
            Output::End => {
                self.machines[at].kill(self.now);
                self.settle();
            }
            Output::RememberUnfed(_) => {}
        }
        Ok(())
    }

    fn score(&self, at: usize) -> u8 {
        if self.options.mutant != Mutant::ScoreMovesWindow {
            return 0;
        }
        self.machines[at].agent.as_ref().map_or(0, |agent| agent.snapshot(self.now).score)
    }

    fn send(&mut self, at: usize, to: &Name, payload: Vec<u8>) {
        let Some(other) = self.names.iter().position(|name| name == to) else { return };
        self.outcome.datagrams += 1;
        self.machines[at].bytes.0 += payload.len() as u64 + AROUND;
        let kind = Datagram::decode(&payload).map(|datagram| datagram.message);
        if let Some(Message::Challenge { nonce, .. } | Message::AnswerAndChallenge { nonce, .. }) = kind {
            let machine = &mut self.machines[at];
            let oldest = self.now.saturating_sub(self.judge.timing.window);
            if machine.sent.len() > 64 * self.options.members {
                machine.sent.retain(|_, sent| *sent >= oldest);
            }
            machine.sent.insert(nonce, self.now);
            machine.newest.insert(other, nonce);
        }
        let is_lossy = self.judge.lossy.is_some_and(|lossy| lossy == at || lossy == other);
        let loss = if is_lossy { 60 } else { usize::from(self.options.loss) };
        if self.judge.cut[at][other].is_some() || self.random.below(100) < loss {
            return;
        }
        let delay = self.random.between(self.options.delay / 2, self.options.delay);
        let may_be_copied = kind.is_some_and(|kind| !matches!(kind, Message::Leave | Message::Swim(_)));
        if may_be_copied && self.random.below(COPIES) == 0 {
            let later = self.random.between(Duration::from_millis(500), Duration::from_secs(15));
            self.after(delay + later, Happening::Arrives { at: other, from: at, payload: payload.clone() });
        }
        self.after(delay, Happening::Arrives { at: other, from: at, payload });
    }

    fn feed(&mut self, at: usize) -> Result<(), String> {
        self.after(FEEDS, Happening::Feed { at });
        let Device::Running { fed, is_held } = self.machines[at].device else { return Ok(()) };
        let named = |wrong| format!("{}: {wrong}", name_of(at));
        self.judge.machine(self.now, &self.machines, at).map_err(named)?;
        let machine = &mut self.machines[at];
        if is_held && !machine.is_frozen && self.now < machine.deadline {
            machine.device = Device::Running { fed: self.now, is_held };
            return self.judge.fed(self.now, &self.machines, at).map_err(named);
        }
        if fed + TIMEOUT > self.now {
            return Ok(());
        }
        self.judge.reset(self.now, &self.machines, at).map_err(named)?;
        self.outcome.resets += 1;
        self.log(&format!("{}: reset", name_of(at)));
        self.machines[at].kill(self.now);
        self.machines[at].device = Device::Closed;
        self.settle();
        self.after(BOOT, Happening::Start { at });
        Ok(())
    }

    fn terminate(&mut self, at: usize) -> Result<(), String> {
        if !self.machines[at].answers() {
            return Ok(());
        }
        self.give(at, Event::Terminate)?;
        let is_armed = self.machines[at].device != Device::Closed;
        if is_armed && self.options.mutant == Mutant::VAfterLoss {
            self.judge.disarmed(self.now, &self.machines, at).map_err(|wrong| format!("{}: {wrong}", name_of(at)))?;
            self.machines[at].device = Device::Closed;
        }
        Ok(())
    }

    fn rates(&mut self) {
        for machine in &mut self.machines {
            let sent = machine.bytes.0 - machine.bytes.1;
            machine.bytes.1 = machine.bytes.0;
            if self.now > Duration::from_secs(30) {
                self.outcome.bytes_a_second = self.outcome.bytes_a_second.max(sent / 10);
            }
        }
        self.after(Duration::from_secs(10), Happening::Rates);
    }
}
