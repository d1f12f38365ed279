//! The list: SWIM by the crate foca, with the additions that foca lacks.
//!
//! foca probes, gossips and manages the incarnations. Every message for it first passes [`Swim::filter`]. Its timers wait in the
//! queue of this module, with delays of this module. So the health score stretches probes, and the times follow the list's
//! length. Only this module ends suspicions, because foca knows neither confirmations nor contact.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::num::{NonZeroU8, NonZeroUsize};
use std::time::Duration;

use foca::{Config, Foca, Member, Message, NoCustomBroadcast, Notification, PeriodicParams, Runtime, State, Timer};

use super::contact::Contacts;
use super::input::Name;
use super::roster::Roster;
use super::suspicion::Health;
use super::swim_wire::{Codec, Id, Packet, third_party};
use super::timing::Timing;

/// The largest size of a datagram in bytes, including its seal. A datagram of this size fits into an Ethernet frame.
const LARGEST: usize = 1_200;
/// The number of members that probe on this node's behalf after its own probe failed. Each gossip message goes to the same number of
/// members.
const HELPERS: usize = 3;

/// A generator of random numbers with which foca chooses members. No secret depends on it.
struct Dice(u64);

impl rand::TryRng for Dice {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|number| (number >> 32) as u32)
    }

    /// Returns the next random number, by the algorithm SplitMix64.
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(mixed ^ (mixed >> 31))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for part in bytes.chunks_mut(8) {
            let number = self.try_next_u64()?.to_le_bytes();
            part.copy_from_slice(&number[..part.len()]);
        }
        Ok(())
    }
}

/// The datagrams and timers that the SWIM library foca requests during one call.
#[derive(Default)]
struct Asked {
    sends: Vec<(Id, Vec<u8>)>,
    timers: Vec<(Timer<Id>, Duration)>,
    is_idle: bool,
}

impl Runtime<Id> for Asked {
    fn notify(&mut self, notification: Notification<'_, Id>) {
        if notification == Notification::Idle {
            self.is_idle = true;
            self.timers.clear();
        }
    }

    fn send_to(&mut self, to: Id, data: &[u8]) {
        self.sends.push((to, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<Id>, after: Duration) {
        self.timers.push((event, after));
    }
}

/// The probe of a member that is in progress.
#[derive(Clone, Debug)]
struct Probe {
    target: Id,
    number: u8,
    began: Duration,
    is_answered: bool,
}

type Inner = Foca<Id, Codec, Dice, NoCustomBroadcast>;

/// The list of members by the SWIM protocol, as the crate foca implements it, with Tandem's additions.
pub(super) struct Swim {
    foca: Inner,
    me: Id,
    /// This node's incarnation inside foca, which does not expose it.
    incarnation: u16,
    timing: Timing,
    adaptive_threshold: u32,
    health: Health,
    timers: BTreeMap<(Duration, u64), Timer<Id>>,
    sequence: u64,
    probe: Option<Probe>,
    /// The time of the next search for members that answer no challenge.
    scans_at: Duration,
    pub(super) roster: Roster,
    /// Datagrams that must be sent, each with the name of its receiver.
    pub(super) sends: Vec<(Name, Vec<u8>)>,
    /// Members that must be challenged immediately.
    pub(super) challenges: Vec<Name>,
    pub(super) dropped: BTreeMap<&'static str, u64>,
}

impl fmt::Debug for Swim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Swim").field("me", &self.me).field("roster", &self.roster).finish_non_exhaustive()
    }
}

fn config(listed: usize, timing: &Timing) -> Config {
    // As in memberlist, this is four times the number of decimal digits of the list's length.
    let transmissions = 4 * (listed.max(1).ilog10() + 1);
    let helpers = NonZeroUsize::MIN.saturating_add(HELPERS - 1);
    Config {
        max_transmissions: NonZeroU8::MIN.saturating_add(u8::try_from(transmissions).unwrap_or(u8::MAX)),
        num_indirect_probes: helpers,
        max_packet_size: NonZeroUsize::MIN.saturating_add(LARGEST - 1),
        periodic_gossip: Some(PeriodicParams { frequency: timing.gossip, num_members: helpers }),
        ..Config::simple()
    }
}

impl Swim {
    pub(super) fn new(me: Name, number: u64, timing: Timing, lifeguard: bool, adaptive_threshold: u32) -> Self {
        let seed = me.bytes().fold(number, |seed, byte| seed.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte));
        let id = Id { name: me.clone(), number };
        Self {
            foca: Foca::new(id.clone(), config(1, &timing), Dice(seed), Codec),
            me: id,
            incarnation: 0,
            timing,
            adaptive_threshold,
            health: Health::new(lifeguard),
            timers: BTreeMap::new(),
            sequence: 0,
            probe: None,
            scans_at: Duration::ZERO,
            roster: Roster::new(me),
            sends: Vec::new(),
            challenges: Vec::new(),
            dropped: BTreeMap::new(),
        }
    }

    pub(super) fn score(&self) -> u8 {
        self.health.score()
    }

    pub(super) fn incarnation(&self) -> u16 {
        self.incarnation
    }

    /// Replaces the other listed members. Members that are no longer listed are removed immediately.
    pub(super) fn list(&mut self, now: Duration, others: &[Name], timing: Timing, contacts: &Contacts) {
        self.timing = timing;
        // foca never refuses a change of these two.
        let _ = self.foca.set_config(config(others.len() + 1, &timing));
        for (name, number, incarnation) in self.roster.list(now, others) {
            let id = Id { name, number };
            let down = Member::new(id.clone(), incarnation, State::Down);
            self.call(now, contacts, |foca, asked| foca.apply_many(std::iter::once(down), false, &mut *asked));
            self.call(now, contacts, |foca, asked| foca.handle_timer(Timer::RemoveDown(id), asked));
        }
    }

    /// Handles a SWIM message from the listed member `from`. `number` is the sender's start number.
    pub(super) fn receive(&mut self, now: Duration, from: &Name, number: u64, body: &[u8], contacts: &Contacts) {
        let Some(mut packet) = Packet::decode(body) else { return self.drop("malformed") };
        let is_own = *packet.header.src.name == **from && packet.header.src.number == number;
        let listed = third_party(&packet.header.message)
            .is_none_or(|id| self.roster.is_listed(&id.name) || id.name == self.me.name);
        if !is_own || !listed || matches!(packet.header.message, Message::TurnUndead | Message::Broadcast) {
            return self.drop("forged");
        }
        let updates = std::mem::take(&mut packet.updates);
        packet.updates = updates.into_iter().filter(|update| self.filter(now, update, contacts)).collect();
        self.note_answer(&packet);
        let bytes = packet.encode();
        self.call(now, contacts, |foca, asked| foca.handle_data(&bytes, asked));
        self.roster.sync(now, from, self.foca.iter_membership_state(), contacts);
    }

    /// Returns whether foca may receive an update from gossip. The update must be about a listed member and must not contradict this
    /// node's own contact. foca does not receive an update about this node itself: `filter` handles such an update, and refutes a
    /// suspicion.
    fn filter(&mut self, now: Duration, update: &Member<Id>, contacts: &Contacts) -> bool {
        let name = &update.id().name;
        if *name == self.me.name {
            if update.id().number == self.me.number && update.state() != State::Alive {
                self.suspected(now, update.incarnation(), contacts);
            }
            return false;
        }
        if !self.roster.is_listed(name) {
            self.drop("unlisted");
            return false;
        }
        match update.state() {
            State::Alive => true,
            State::Suspect => self.roster.is_present(name),
            State::Down => {
                // The suspicion that ended elsewhere has lasted at least this long, even if this node learned of it later.
                let least = now.saturating_sub(self.timing.suspicion.0);
                let began = self.roster.suspicion(name).map_or(least, |suspicion| suspicion.began.min(least));
                let answers = contacts.newest(name).is_some_and(|contact| contact >= began);
                if answers {
                    self.drop("contradicted");
                }
                !answers
            }
        }
    }

    /// Refutes another member's suspicion of this node. `incarnation` is the incarnation of this node that is suspected.
    pub(super) fn suspected(&mut self, now: Duration, incarnation: u16, contacts: &Contacts) {
        if incarnation == u16::MAX || incarnation < self.incarnation {
            return;
        }
        self.incarnation = incarnation + 1;
        self.health.worsen();
        let suspect = Member::new(self.me.clone(), incarnation, State::Suspect);
        self.call(now, contacts, |foca, asked| foca.apply_many(std::iter::once(suspect), true, asked));
    }

    /// Records whether `packet` answers the probe in progress, directly or through another member.
    fn note_answer(&mut self, packet: &Packet) {
        let Some(probe) = &mut self.probe else { return };
        let is_answer = match &packet.header.message {
            Message::Ack(number) => *number == probe.number && packet.header.src == probe.target,
            Message::ForwardedAck { origin, probe_number } => *probe_number == probe.number && *origin == probe.target,
            _ => false,
        };
        probe.is_answered |= is_answer;
    }

    /// Handles a member's answer to a challenge that was sent at `sent`. The answer shows that the member is present. It also answers a
    /// probe of the member that began before `sent`.
    pub(super) fn answered(
        &mut self,
        now: Duration,
        id: (&Name, u64),
        incarnation: u16,
        sent: Duration,
        contacts: &Contacts,
    ) {
        let id = Id { name: id.0.clone(), number: id.1 };
        if !self.roster.may_return(&id) {
            return;
        }
        let was_present = self.roster.is_present(&id.name);
        if let Some(number) = self.roster.number(&id.name).filter(|_| !was_present) {
            let gone = Id { name: id.name.clone(), number };
            self.call(now, contacts, |foca, asked| foca.handle_timer(Timer::RemoveDown(gone), asked));
        }
        let alive = Member::new(id.clone(), incarnation, State::Alive);
        self.call(now, contacts, |foca, asked| foca.apply_many(std::iter::once(alive), true, asked));
        if !was_present {
            let to = id.clone();
            self.call(now, contacts, |foca, asked| foca.announce(to, asked));
        }
        if let Some(probe) =
            self.probe.as_mut().filter(|probe| probe.target == id && !probe.is_answered && sent >= probe.began)
        {
            probe.is_answered = true;
            let message = Message::Ack(probe.number);
            let header = foca::Header { src: id, src_incarnation: incarnation, dst: self.me.clone(), message };
            let bytes = Packet { header, updates: Vec::new() }.encode();
            self.call(now, contacts, |foca, asked| foca.handle_data(&bytes, asked));
        }
        let me = self.me.name.clone();
        self.roster.sync(now, &me, self.foca.iter_membership_state(), contacts);
    }

    /// Handles the message of the member `from` that it leaves cleanly.
    pub(super) fn leaves(&mut self, now: Duration, from: &Name, number: u64, contacts: &Contacts) {
        if self.roster.leaves(from, number) {
            self.lose(now, from, number, from, contacts);
        }
    }

    /// Removes the member `name` from the list, because this node has lost its quorum and cannot reach the member.
    pub(super) fn drop_unreached(&mut self, now: Duration, name: &Name, contacts: &Contacts) {
        let me = self.me.name.clone();
        if let Some(number) = self.roster.number(name).filter(|_| self.roster.is_present(name)) {
            self.lose(now, name, number, &me, contacts);
        }
    }

    fn lose(&mut self, now: Duration, name: &Name, number: u64, source: &Name, contacts: &Contacts) {
        let down = Member::new(Id { name: name.clone(), number }, self.roster.incarnation(name), State::Down);
        self.call(now, contacts, |foca, asked| foca.apply_many(std::iter::once(down), true, asked));
        self.roster.sync(now, source, self.foca.iter_membership_state(), contacts);
    }

    /// Performs all work that is due: foca's timers, and the ends of suspicions.
    pub(super) fn advance(&mut self, now: Duration, contacts: &Contacts) {
        let me = self.me.name.clone();
        while let Some(entry) = self.timers.first_entry().filter(|entry| entry.key().0 <= now) {
            let timer = entry.remove();
            let failed = matches!(timer, Timer::ProbeRandomMember(_)).then(|| self.finish_probe()).flatten();
            if let Timer::SendIndirectProbe { probed_id, .. } = &timer {
                let is_open = self.probe.as_ref().is_some_and(|probe| probe.target == *probed_id && !probe.is_answered);
                self.challenges.extend(is_open.then(|| probed_id.name.clone()));
            }
            self.call(now, contacts, |foca, asked| foca.handle_timer(timer, asked));
            self.roster.sync(now, &me, self.foca.iter_membership_state(), contacts);
            if let Some(failed) = failed {
                self.roster.accuse(&failed.target.name, &me, contacts, failed.began);
            }
        }
        if self.scans_at <= now {
            self.scans_at = now + self.timing.challenge_of_suspects() / 2;
            self.suspect_silent(now, contacts);
        }
        for name in self.roster.suspects() {
            let patience = self.timing.probe / 2 + self.wait(&name, contacts);
            self.roster.accuse_silent(&name, now, patience, contacts);
            if self.roster.is_due(&name, now, self.timing.suspicion, contacts)
                && let Some((number, source)) =
                    self.roster.suspicion(&name).map(|found| (found.number, found.first.clone()))
            {
                self.lose(now, &name, number, &source, contacts);
            }
        }
    }

    /// Suspects the members that answer no challenge. foca alone would find them one by one, but a cut loses many at once.
    fn suspect_silent(&mut self, now: Duration, contacts: &Contacts) {
        let me = self.me.name.clone();
        for (id, incarnation) in self.roster.silent(now, self.health.stretch(self.timing.silence()), contacts) {
            let suspect = Member::new(id.clone(), incarnation, State::Suspect);
            self.call(now, contacts, |foca, asked| foca.apply_many(std::iter::once(suspect), true, asked));
            self.roster.sync(now, &me, self.foca.iter_membership_state(), contacts);
            self.roster.confirm(&id.name, &me);
        }
    }

    /// Ends the probe in progress. Returns the probe if it failed.
    fn finish_probe(&mut self) -> Option<Probe> {
        let probe = self.probe.take()?;
        if probe.is_answered {
            self.health.improve();
            return None;
        }
        self.health.worsen();
        Some(probe)
    }

    /// Returns the time of the next work that is due without an event.
    pub(super) fn wake_at(&self, contacts: &Contacts) -> Option<Duration> {
        let timer = self.timers.keys().next().map(|(at, _)| *at);
        let patience = |name: &Name| self.timing.probe / 2 + self.wait(name, contacts);
        let ends = self.roster.next_end(self.timing.suspicion, patience);
        timer.into_iter().chain(ends).min()
    }

    /// Records that this node was held up for `gap`. All suspicions last longer by `gap`.
    pub(super) fn held_up(&mut self, gap: Duration) {
        self.roster.held_up(gap);
    }

    /// Returns how long a probe of `name` waits for an answer before other members are asked to probe. The time follows the round-trip
    /// time.
    fn wait(&self, name: &str, contacts: &Contacts) -> Duration {
        let half = self.timing.probe / 2;
        let known = contacts.round_trip(name).map(|found| found.mean + found.deviation * self.adaptive_threshold);
        known.map_or(half, |known| known.max(self.timing.probe / 5).min(half))
    }

    fn drop(&mut self, why: &'static str) {
        *self.dropped.entry(why).or_default() += 1;
    }

    /// Calls foca, and takes over the datagrams and timers that it requests.
    fn call(
        &mut self,
        now: Duration,
        contacts: &Contacts,
        act: impl FnOnce(&mut Inner, &mut Asked) -> Result<(), foca::Error>,
    ) {
        let mut asked = Asked::default();
        if act(&mut self.foca, &mut asked).is_err() {
            self.drop("malformed");
        }
        if asked.is_idle {
            self.timers.clear();
            self.probe = None;
        }
        for (to, data) in asked.sends {
            if let Some(Message::Ping(number)) = Packet::decode(&data).map(|packet| packet.header.message) {
                self.probe = Some(Probe { target: to.clone(), number, began: now, is_answered: false });
            }
            self.sends.push((to.name, data));
        }
        for (timer, delay) in asked.timers {
            let delay = match &timer {
                Timer::ProbeRandomMember(_) => self.health.stretch(self.timing.probe),
                Timer::SendIndirectProbe { probed_id, .. } => self.health.stretch(self.wait(&probed_id.name, contacts)),
                Timer::PeriodicGossip(_) => self.timing.gossip,
                // The roster ends suspicions, and a lost member stays known until it answers.
                Timer::ChangeSuspectToDown { .. } | Timer::RemoveDown(_) => continue,
                Timer::PeriodicAnnounce(_) | Timer::PeriodicAnnounceDown(_) => delay,
            };
            self.sequence += 1;
            self.timers.insert((now + delay, self.sequence), timer);
        }
    }
}
