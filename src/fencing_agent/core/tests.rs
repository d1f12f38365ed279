//! Tests of the core's rules, on one agent. The test acts as its peers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod challenges;
mod device;
mod list;
mod lost;

use std::collections::BTreeSet;
use std::time::Duration;

use super::swim_wire::{Id, Packet};
use super::*;

/// The step of the simulated time.
const STEP: Duration = Duration::from_millis(50);

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn settings(members: usize) -> Settings {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    Settings {
        node: "a".into(),
        number: 5,
        members: names[..members].iter().map(|name| Name::from(*name)).collect(),
        networks: 1,
        network_rule: NetworkRule::Any,
        on_quorum_loss: OnQuorumLoss::Watchdog,
        quorum: None,
        tie_breaker: TieBreaker::None,
        watchdog: Watchdog { device: "/dev/watchdog".to_owned(), timeout: seconds(15), left_running: false },
        timing: TimingOverrides::default(),
        lifeguard: true,
        adaptive_threshold: 4,
    }
}

/// A simulation of the agent `a`, with all of its outputs. Its peers only answer challenges.
struct Played {
    agent: Agent,
    now: Duration,
    /// The names of the peers that answer.
    there: BTreeSet<&'static str>,
    /// The start number of these peers.
    number: u64,
    has_magic_close: bool,
    /// True if the API server answers.
    api: bool,
    outputs: Vec<(Duration, Output)>,
    nonce: u64,
    done: usize,
}

impl Played {
    fn new(settings: Settings, there: &[&'static str]) -> Self {
        let now = seconds(1_000);
        Self {
            agent: Agent::new(now, settings),
            now,
            there: there.iter().copied().collect(),
            number: 1,
            has_magic_close: true,
            api: false,
            outputs: Vec::new(),
            nonce: 0,
            done: 0,
        }
    }

    /// Returns a simulation of three members. The agent is armed, and the peers in `there` answer.
    fn armed(settings: Settings, there: &[&'static str]) -> Self {
        let mut played = Self::new(settings, there);
        played.give(Event::Maintenance(Vec::new()));
        played.pass(12);
        assert!(played.agent.snapshot(played.now).armed, "{:?}", played.logs());
        played.forget();
        played
    }

    fn give(&mut self, event: Event) {
        let Self { agent, nonce, now, outputs, .. } = self;
        let mut random = || {
            *nonce += 1;
            *nonce
        };
        outputs.extend(agent.handle(*now, event, &mut random).into_iter().map(|output| (*now, output)));
        self.answer();
    }

    /// Responds to the agent's new outputs as its peers, the watchdog and the API server would.
    fn answer(&mut self) {
        while self.done < self.outputs.len() {
            let event = match &self.outputs[self.done].1 {
                Output::Send { to, network, payload } if self.there.contains(&**to) => {
                    match Datagram::decode(payload).unwrap().message {
                        Message::Challenge { nonce, .. } | Message::AnswerAndChallenge { nonce, .. } => {
                            let message = Message::Answer { nonce, incarnation: 0 };
                            let payload = Datagram { number: self.number, message }.encode();
                            Some(Event::Received { from: to.clone(), network: *network, payload })
                        }
                        _ => None,
                    }
                }
                Output::Arm => {
                    let (identity, has_magic_close) = ("softdog".to_owned(), self.has_magic_close);
                    Some(Event::Opened { identity, timeout: seconds(15), has_magic_close })
                }
                Output::AskApi { asked } if self.api => Some(Event::ApiAnswered { asked: *asked }),
                Output::AskApi { asked } => Some(Event::ApiFailed { asked: *asked }),
                _ => None,
            };
            self.done += 1;
            if let Some(event) = event {
                self.give(event);
            }
        }
    }

    fn pass(&mut self, count: u64) {
        self.until(|played, began| played.now >= began + seconds(count));
    }

    fn until(&mut self, ends: impl Fn(&Self, Duration) -> bool) {
        let began = self.now;
        while !ends(self, began) {
            assert!(self.now < began + seconds(100), "it does not come: {:?}", self.logs());
            self.now += STEP;
            self.give(Event::Wake);
        }
    }

    fn hear(&mut self, from: &str, number: u64, message: Message) {
        let payload = Datagram { number, message }.encode();
        self.give(Event::Received { from: from.into(), network: 0, payload });
    }

    /// Delivers gossip with `updates` from the peer `from` to the agent.
    fn gossip(&mut self, from: &str, updates: Vec<foca::Member<Id>>) {
        let id = |name: &str, number| Id { name: name.into(), number };
        let header = foca::Header {
            src: id(from, self.number),
            src_incarnation: 0,
            dst: id("a", 5),
            message: foca::Message::Gossip,
        };
        self.hear(from, self.number, Message::Swim(Packet { header, updates }.encode()));
    }

    fn forget(&mut self) {
        self.outputs.clear();
        self.done = 0;
    }

    fn has(&self, wanted: &Output) -> bool {
        self.outputs.iter().any(|(_, output)| output == wanted)
    }

    fn when(&self, wanted: impl Fn(&Output) -> bool) -> Option<Duration> {
        self.outputs.iter().find(|(_, output)| wanted(output)).map(|(at, _)| *at)
    }

    fn logs(&self) -> Vec<String> {
        let logs = self.outputs.iter().filter_map(|(_, output)| match output {
            Output::Log(line) => Some(line.text.clone()),
            _ => None,
        });
        logs.collect()
    }

    fn logged(&self, words: &str) -> bool {
        self.logs().iter().any(|line| line.contains(words))
    }

    /// Returns the last deadline that the agent sent to the feeding thread.
    fn deadline(&self) -> Option<Duration> {
        self.outputs.iter().rev().find_map(|(_, output)| match output {
            Output::FeedUntil(deadline) => Some(*deadline),
            _ => None,
        })
    }

    fn changes(&self) -> Vec<(ChangeKind, String, String)> {
        let changes = self.outputs.iter().filter_map(|(_, output)| match output {
            Output::Publish(change) => Some((change.kind, change.name.to_string(), change.source.to_string())),
            _ => None,
        });
        changes.collect()
    }

    fn state(&self, name: &str) -> MemberState {
        let members = self.agent.snapshot(self.now).members;
        members.iter().find(|member| &*member.name == name).unwrap().state
    }
}

/// Returns a simulation of `members` members, after those in `there` have joined.
fn joined(members: usize, there: &[&'static str]) -> Played {
    let mut played = Played::new(settings(members), there);
    played.pass(3);
    played.forget();
    played
}
