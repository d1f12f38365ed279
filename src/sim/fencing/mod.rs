//! A network of agents of `fencing-agent` in simulated time: the real core on each machine, datagrams that are lost,
//! late and copied, and faults that a seed chooses. `docs/design/fencing-agent.md` lists the invariants.

mod faults;
mod judge;
mod machine;
pub mod mutant;
mod world;

use std::time::Duration;

use machine::Machine;
use mutant::Mutant;

use crate::fencing_agent::core::{Event, Name};

/// The options of a simulated run of fencing agents. Equal options make equal runs.
#[derive(Clone, Debug)]
pub struct Options {
    pub members: usize,
    pub seed: u64,
    pub minutes: u64,
    /// The share of datagrams that are lost, in percent.
    pub loss: u8,
    /// The longest travel time of a datagram. The shortest is half as long.
    pub delay: Duration,
    /// True if the run has faults in addition to the loss and delay of datagrams.
    pub faults: bool,
    pub mutant: Mutant,
}

/// The result of a simulated run of fencing agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The first broken invariant, with its time and the fault at that time; `None` if no invariant was broken.
    pub fault: Option<String>,
    pub datagrams: u64,
    /// The largest number of bytes per second that a machine has sent, averaged over ten seconds. It includes the headers of IP and
    /// UDP, and each datagram's seal.
    pub bytes_a_second: u64,
    pub resets: u64,
    pub left: u64,
    pub join: u64,
    /// The longest time that a machine with a quorum needed to publish `LEFT` for every machine that was cut off from it.
    pub slowest_left: Duration,
    /// The log of all machines, with the beginning and end of each fault.
    pub log: Vec<String>,
}

/// Runs a network for `options.minutes` of simulated time. Ends earlier if an invariant is broken.
pub fn run(options: &Options) -> Outcome {
    world::World::new(options.clone()).run()
}

/// Hands datagrams to one of three members, which takes their seals as checked. Returns how many outputs the member's agent made. The
/// first byte of each datagram chooses its sender, and the time since the previous datagram.
pub fn receive(datagrams: &[&[u8]]) -> usize {
    let names: Vec<Name> = ["a", "b", "c"].map(Name::from).to_vec();
    let mut machine = Machine::new();
    let mut random = Random(1);
    let mut now = Duration::from_secs(60);
    machine.start(now, &names[0], &names, Mutant::None);
    let mut asked = 0;
    for datagram in datagrams {
        let Some((sender, payload)) = datagram.split_first() else { continue };
        let from = names[usize::from(*sender) % names.len()].clone();
        now += Duration::from_millis(u64::from(*sender) * 10);
        let event = Event::Received { from, network: 0, payload: payload.to_vec() };
        let outputs = machine.agent.as_mut().map(|agent| agent.handle(now, event, &mut || random.next()));
        asked += outputs.into_iter().flatten().count();
    }
    asked
}

/// A generator of pseudo-random numbers. They depend only on the seed.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or_default()
    }

    fn between(&mut self, from: Duration, to: Duration) -> Duration {
        let span = u64::try_from(to.saturating_sub(from).as_micros()).unwrap_or(u64::MAX);
        from + Duration::from_micros(self.next() % span.max(1))
    }
}
