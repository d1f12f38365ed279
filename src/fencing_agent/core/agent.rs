//! The state of the agent, and the reaction to an event.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::contact::Contacts;
use super::feeding::{Feeding, Turn, log};
use super::input::{Event, Name, OnQuorumLoss, Settings, TieBreaker};
use super::output::{Change, ChangeKind, Output, Weight};
use super::quorum::{Quorum, Reach};
use super::snapshot::{MemberState, MemberView, Snapshot};
use super::swim::Swim;
use super::timing::{FEW, Timing};
use super::wire::{Datagram, MOST_ACCUSED, Message};

/// The limit for the delay of a wake-up. After a longer delay, the agent assumes that this node itself was held up.
const HELD_UP: Duration = Duration::from_millis(500);
/// The pause after a challenge to a member that has not answered it yet. If this member challenges this node during the pause, no further
/// challenge is sent back.
const JUST_ASKED: Duration = Duration::from_millis(100);
/// The longest time until the agent wakes up without an event.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The number of times that a leave message is sent, because a datagram may be lost.
const LEAVES: usize = 3;
/// The fewest listed members with which a watchdog is used. Of two members that lose each other, neither knows which one is cut off.
const FEWEST: usize = 3;

#[derive(Debug)]
pub(crate) struct Agent {
    settings: Settings,
    others: Vec<Name>,
    timing: Timing,
    quorum: Quorum,
    contacts: Contacts,
    swim: Swim,
    feeding: Feeding,
    /// The time at which each other member is challenged next.
    next: BTreeMap<Name, Duration>,
    /// The time at which all other members are challenged next, if they are challenged at the same moment (see [`Agent::has_rounds`]).
    round: Duration,
    /// The received challenges that must still be answered, each with its member, network and nonce.
    owed: Vec<(Name, usize, u64)>,
    wakes_at: Option<Duration>,
    /// The time at which this node removed itself from the list of members because it lost the quorum; `None` while it is in the list.
    dropped_at: Option<Duration>,
    dropped: BTreeMap<&'static str, u64>,
    left_total: u64,
    join_total: u64,
}

impl Agent {
    /// Creates an agent that has not reached any member yet. `now` is the time since boot.
    pub(crate) fn new(now: Duration, settings: Settings) -> Self {
        let timing = Timing::of(settings.members.len(), &settings.timing);
        let (me, number) = (settings.node.clone(), settings.number);
        let members = settings.members.clone();
        let mut agent = Self {
            others: Vec::new(),
            timing,
            quorum: Quorum::of(members.len(), None, false),
            contacts: Contacts::new(settings.networks, settings.network_rule),
            swim: Swim::new(me, number, timing, settings.lifeguard, settings.adaptive_threshold),
            feeding: Feeding::new(settings.on_quorum_loss, settings.watchdog.clone()),
            next: BTreeMap::new(),
            round: now,
            owed: Vec::new(),
            wakes_at: None,
            dropped_at: None,
            dropped: BTreeMap::new(),
            left_total: 0,
            join_total: 0,
            settings,
        };
        agent.list(now, &members);
        agent
    }

    /// Returns the outputs for `event`. `random` must return numbers that no other node can guess, because they become nonces.
    pub(crate) fn handle(&mut self, now: Duration, event: Event, random: &mut dyn FnMut() -> u64) -> Vec<Output> {
        let mut outputs = Vec::new();
        if self.feeding.has_ended() {
            return outputs;
        }
        let late = self.wakes_at.map(|at| now.saturating_sub(at)).filter(|late| *late > HELD_UP);
        if let Some(late) = late {
            self.swim.held_up(late);
        }
        self.take(now, event, &mut outputs);
        self.swim.advance(now, &self.contacts);
        self.challenge(now, random, &mut outputs);
        let mut fed = Vec::new();
        let turn = self.feeding.update(now, self.quorum, &self.contacts.all_counted(), self.timing.window, &mut fed);
        self.notify(now, turn);
        self.flush(&mut outputs);
        if self.feeding.has_ended() {
            self.leave(&mut outputs);
        }
        outputs.extend(fed);
        if !self.feeding.has_ended() {
            let challenges = self.next.values().copied().chain(self.has_rounds().then_some(self.round)).min();
            let wakes = [self.swim.wake_at(&self.contacts), challenges, self.feeding.wake_at(now)];
            let soonest = wakes.into_iter().flatten().min().unwrap_or(now + LONGEST_SLEEP);
            let at = soonest.clamp(now + Duration::from_millis(1), now + LONGEST_SLEEP);
            self.wakes_at = Some(at);
            outputs.push(Output::WakeAt(at));
        }
        outputs
    }

    pub(crate) fn snapshot(&self, now: Duration) -> Snapshot {
        let reach = self.feeding.reach();
        let own = MemberView {
            name: self.settings.node.clone(),
            state: if self.dropped_at.is_some() { MemberState::Lost } else { MemberState::Alive },
            contacts: vec![Some(now); self.contacts.networks()],
            round_trip: None,
            lost_at: self.dropped_at,
        };
        let others = self.swim.roster.members().map(|(name, known)| MemberView {
            name: name.clone(),
            state: known.state,
            contacts: self.contacts.by_network(name),
            round_trip: self.contacts.round_trip(name).map(|found| found.mean),
            lost_at: known.lost_at,
        });
        let mut members: Vec<MemberView> = others.chain([own]).collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        let mut dropped_total = self.swim.dropped.clone();
        self.dropped.iter().for_each(|(why, count)| *dropped_total.entry(why).or_default() += count);
        let contacts = self.contacts.all_counted();
        let reachable = self.quorum.reach(now, &contacts, self.timing.window, None).reachable;
        Snapshot {
            members,
            quorum: self.quorum.needed,
            reachable,
            window: self.timing.window,
            armed: self.feeding.is_armed(),
            fed: reach.is_some_and(|reach| reach.is_fed(now)),
            deadline: reach.and_then(|reach: Reach| reach.deadline()),
            disarmed_because: self.feeding.disarmed_because(),
            unfed_because: self.feeding.unfed_because(),
            score: self.swim.score(),
            suspicions_total: self.swim.roster.suspicions_total,
            left_total: self.left_total,
            join_total: self.join_total,
            dropped_total,
            api_up: self.feeding.api_up(),
        }
    }

    fn take(&mut self, now: Duration, event: Event, outputs: &mut Vec<Output>) {
        match event {
            Event::Wake => {}
            Event::Received { from, network, payload } => self.receive(now, &from, network, &payload),
            Event::Listed(members) => self.list(now, &members),
            Event::Maintenance(reasons) => self.feeding.hold(reasons),
            Event::Opened { identity, timeout, has_magic_close } => {
                outputs.extend(self.feeding.opened(&identity, timeout, has_magic_close));
            }
            Event::NotOpened { why } => outputs.push(self.feeding.not_opened(now, why)),
            Event::ApiAnswered { asked } => self.feeding.api_answered(asked),
            Event::ApiFailed { .. } => self.feeding.api_failed(),
            Event::Terminate => self.feeding.terminate(),
        }
    }

    /// Replaces the list of members. The quorum and the timings change immediately.
    fn list(&mut self, now: Duration, members: &[Name]) {
        let me = &self.settings.node;
        let others: BTreeSet<Name> = members.iter().filter(|name| *name != me).cloned().collect();
        let listed = others.len() + 1;
        self.others = others.into_iter().collect();
        self.timing = Timing::of(listed, &self.settings.timing);
        let has_tie_breaker = self.settings.tie_breaker == TieBreaker::Api;
        self.quorum = Quorum::of(listed, self.settings.quorum, has_tie_breaker);
        self.contacts.list(self.others.iter().cloned());
        self.swim.list(now, &self.others, self.timing, &self.contacts);
        let mut before = std::mem::take(&mut self.next);
        self.next = self.others.iter().map(|name| (name.clone(), before.remove(name).unwrap_or(now))).collect();
        self.feeding.listed(if !members.contains(me) {
            Some(format!("{me} is not listed"))
        } else if listed < FEWEST {
            Some(format!("fewer than {FEWEST} members are listed"))
        } else {
            None
        });
    }

    fn receive(&mut self, now: Duration, from: &Name, network: usize, payload: &[u8]) {
        if !self.swim.roster.is_listed(from) || network >= self.contacts.networks() {
            return self.drop("unlisted");
        }
        let Some(Datagram { number, message }) = Datagram::decode(payload) else { return self.drop("malformed") };
        if !self.swim.roster.is_current(from, number) {
            return self.drop("old number");
        }
        match message {
            Message::Challenge { nonce, suspected, accused } => {
                self.challenged(now, (from, network), nonce, suspected, &accused);
            }
            Message::Answer { nonce, incarnation } => self.answered(now, (from, network, number), nonce, incarnation),
            Message::AnswerAndChallenge { answered, incarnation, nonce, suspected, accused } => {
                self.answered(now, (from, network, number), answered, incarnation);
                self.challenged(now, (from, network), nonce, suspected, &accused);
            }
            Message::Leave => self.swim.leaves(now, from, number, &self.contacts),
            Message::Swim(body) => self.swim.receive(now, from, number, &body, &self.contacts),
        }
    }

    fn challenged(
        &mut self,
        now: Duration,
        (from, network): (&Name, usize),
        nonce: u64,
        suspected: Option<u16>,
        accused: &[Name],
    ) {
        if let Some(incarnation) = suspected {
            self.swim.suspected(now, incarnation, &self.contacts);
        }
        for name in accused {
            self.swim.roster.confirm(name, from);
        }
        self.challenge_back(now, from);
        self.owed.push((from.clone(), network, nonce));
    }

    fn answered(&mut self, now: Duration, (from, network, number): (&Name, usize, u64), nonce: u64, incarnation: u16) {
        match self.contacts.answered(from, network, nonce, now) {
            None => self.drop("unknown answer"),
            Some(sent) => {
                self.swim.answered(now, (from, number), incarnation, sent, &self.contacts);
                self.postpone(from, sent, nonce);
            }
        }
    }

    /// Returns whether all members are challenged at the same moment. With few members this saves wake-ups, which cost more than the
    /// datagrams. With many members, the simultaneous answers might not fit into the socket's buffer.
    fn has_rounds(&self) -> bool {
        (1..FEW).contains(&self.others.len())
    }

    /// Postpones the next challenge to the member `name`, which has answered a challenge that was sent at `sent`. Members that do not
    /// answer are challenged as often as suspects.
    fn postpone(&mut self, name: &Name, sent: Duration, random: u64) {
        let own = sent + a_little_sooner(self.timing.challenge, random);
        let turn = if self.has_rounds() { self.round } else { own };
        self.next.entry(name.clone()).and_modify(|at| *at = turn.max(*at));
    }

    /// Challenges the member `from` immediately, because a challenge from it has arrived: the connection to it evidently works again. Does
    /// so only if `from` has answered no challenge for two intervals, and was not challenged within [`JUST_ASKED`].
    fn challenge_back(&mut self, now: Duration, from: &Name) {
        let is_old = self.contacts.newest(from).is_none_or(|contact| contact + self.timing.challenge * 2 <= now);
        let is_asked = self.contacts.pending(from).is_some_and(|sent| sent + JUST_ASKED > now);
        if is_old && !is_asked {
            self.swim.challenges.push(from.clone());
        }
    }

    /// Sends an answer to each received challenge, and challenges the members that are due on each network.
    fn challenge(&mut self, now: Duration, random: &mut dyn FnMut() -> u64, outputs: &mut Vec<Output>) {
        for name in std::mem::take(&mut self.swim.challenges) {
            self.next.entry(name).and_modify(|at| *at = now);
        }
        for name in self.swim.roster.suspects() {
            let soon = now + self.timing.challenge_of_suspects();
            self.next.entry(name).and_modify(|at| *at = soon.min(*at));
        }
        let mut accused = self.swim.roster.accused();
        if accused.len() > MOST_ACCUSED {
            let first = usize::try_from(random() % accused.len() as u64).unwrap_or_default();
            accused.rotate_left(first);
            accused.truncate(MOST_ACCUSED);
        }
        for (name, network, answered) in std::mem::take(&mut self.owed) {
            let incarnation = self.swim.incarnation();
            let message = if self.rides_along(now, &name) {
                self.next.insert(name.clone(), now + self.timing.challenge);
                let (nonce, suspected, accused) = self.challenge_of(now, &name, network, random(), &accused);
                Message::AnswerAndChallenge { answered, incarnation, nonce, suspected, accused }
            } else {
                Message::Answer { nonce: answered, incarnation }
            };
            outputs.push(self.send(name, network, message));
        }
        let is_round = self.has_rounds() && self.round <= now;
        if is_round {
            self.round = now + a_little_sooner(self.timing.challenge, random());
        }
        // A challenge that was sent with an answer a moment ago counts as that of this round.
        let until = if is_round { now + self.timing.challenge / 2 } else { now };
        let due: Vec<Name> = self.next.iter().filter(|(_, at)| **at <= until).map(|(name, _)| name.clone()).collect();
        let soon = self.timing.challenge_of_suspects();
        for name in due {
            let is_in_its_round = self.has_rounds() && soon >= self.timing.challenge;
            let next = if is_in_its_round { self.round } else { now + a_little_sooner(soon, random()) };
            self.next.insert(name.clone(), next);
            for network in 0..self.contacts.networks() {
                let (nonce, suspected, accused) = self.challenge_of(now, &name, network, random(), &accused);
                outputs.push(self.send(name.clone(), network, Message::Challenge { nonce, suspected, accused }));
            }
        }
    }

    /// Returns whether this node's answer to a challenge from `name` also contains a challenge to `name`. It does if the next challenge to
    /// `name` would be due within half an interval. With several networks it never does, because each network is challenged separately.
    fn rides_along(&self, now: Duration, name: &Name) -> bool {
        let is_there = self.swim.roster.suspicion(name).is_none() && self.swim.roster.is_present(name);
        let is_due_soon = self.next.get(name).is_some_and(|at| *at <= now + self.timing.challenge / 2);
        self.contacts.networks() == 1 && is_there && is_due_soon
    }

    /// Records a challenge that is sent to `name` now. Returns its nonce, the incarnation at which `name` is suspected (`None` if it is
    /// not), and the accused members.
    fn challenge_of(
        &mut self,
        now: Duration,
        name: &Name,
        network: usize,
        nonce: u64,
        accused: &[Name],
    ) -> (u64, Option<u16>, Vec<Name>) {
        let suspected = self.swim.roster.suspicion(name).map(|found| found.incarnation);
        // The names are most of a challenge. In a split, half of the members are challenged often and answer nothing.
        let is_there = suspected.is_none() && self.swim.roster.is_present(name);
        self.contacts.challenged(name, network, nonce, now, now.saturating_sub(self.timing.window));
        (nonce, suspected, accused.iter().filter(|_| is_there).cloned().collect())
    }

    /// With `on_quorum_loss` `notify`, removes members from the list when the quorum is lost: this node, and all members that it cannot
    /// reach. Adds this node again when the quorum is regained.
    fn notify(&mut self, now: Duration, turn: Turn) {
        if self.settings.on_quorum_loss != OnQuorumLoss::Notify {
            return;
        }
        let me = self.settings.node.clone();
        match turn {
            Turn::Lost => {
                for name in self.others.clone() {
                    let is_reached = self.contacts.counted(&name).is_some_and(|at| at + self.timing.window > now);
                    if !is_reached {
                        self.swim.drop_unreached(now, &name, &self.contacts);
                    }
                }
                // Each of two members would remove itself and the other one. Pacemaker decides which one is right.
                if self.quorum.listed > 2 {
                    self.dropped_at = Some(now);
                    self.publish(ChangeKind::Left, now, me, Some(now));
                }
            }
            Turn::Regained => {
                if let Some(at) = self.dropped_at.take() {
                    self.publish(ChangeKind::Join, now, me, Some(at));
                }
            }
            Turn::None => {}
        }
    }

    fn publish(&mut self, kind: ChangeKind, at: Duration, name: Name, lost_at: Option<Duration>) {
        let word = if kind == ChangeKind::Left { "LEFT" } else { "JOIN" };
        let line = log(Weight::Warning, format!("{word} {name}, this node itself"));
        let change = Change { kind, name: name.clone(), at, source: name, lost_at };
        self.swim.roster.changes.extend([line, Output::Publish(change)]);
    }

    /// Moves SWIM's datagrams and the changes of the list to `outputs`.
    fn flush(&mut self, outputs: &mut Vec<Output>) {
        for (to, body) in std::mem::take(&mut self.swim.sends) {
            let network = self.contacts.best_network(&to);
            outputs.push(self.send(to, network, Message::Swim(body)));
        }
        for change in std::mem::take(&mut self.swim.roster.changes) {
            if let Output::Publish(change) = &change {
                let total = if change.kind == ChangeKind::Left { &mut self.left_total } else { &mut self.join_total };
                *total += 1;
            }
            outputs.push(change);
        }
    }

    fn leave(&self, outputs: &mut Vec<Output>) {
        for _ in 0..LEAVES {
            for name in &self.others {
                let networks = 0..self.contacts.networks();
                outputs.extend(networks.map(|network| self.send(name.clone(), network, Message::Leave)));
            }
        }
    }

    fn send(&self, to: Name, network: usize, message: Message) -> Output {
        Output::Send { to, network, payload: Datagram { number: self.settings.number, message }.encode() }
    }

    fn drop(&mut self, why: &'static str) {
        *self.dropped.entry(why).or_default() += 1;
    }
}

/// Shortens an interval by up to a tenth, so that members that start together do not challenge in step.
fn a_little_sooner(interval: Duration, random: u64) -> Duration {
    interval.saturating_sub(interval / 1_000 * u32::try_from(random % 100).unwrap_or_default())
}
