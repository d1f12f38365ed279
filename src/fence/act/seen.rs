//! The facts that an action has seen, for the note that outlives it.

use std::time::Duration;

use super::Actor;
use crate::adapters::redfish::bmc::Target;
use crate::adapters::redfish::quirks::PowerWord;
use crate::adapters::redfish::select::Candidate;
use crate::fence::config::Method;
use crate::fence::plan::{self, Event, Goal, Moment, Reached};
use crate::os::clock;

/// The systems that an action has observed, and the times at which it fenced them.
#[derive(Debug, Default)]
pub(in crate::fence) struct ActorSeen {
    pub(in crate::fence) hosts: Vec<Target>,
    pub(in crate::fence) listed: Vec<Candidate>,
    pub(in crate::fence) fenced: Fenced,
}

/// The times at which the agent switched a node off and on again. If the action names several systems, these are the times of the
/// slowest one.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fence) struct Fenced {
    /// The time from the first accepted reset until the system was proven off; `None` if the agent did not switch the system off.
    pub(in crate::fence) to_off: Option<Duration>,
    /// The time at which the system was proven off, in milliseconds since 1970; `None` if the agent did not switch it off.
    pub(in crate::fence) off_at: Option<u64>,
    /// The time at which the system was proven on, in milliseconds since 1970; `None` if the agent did not switch it on.
    pub(in crate::fence) on_at: Option<u64>,
}

impl Fenced {
    pub(super) fn note(&mut self, goal: Goal, reached: &Reached, history: &[Moment]) {
        match (goal, reached) {
            (Goal::Off, Reached::ByUs) => {
                self.to_off = self.to_off.max(plan::since_reset(history));
                self.off_at = Some(clock::wall_millis());
            }
            (Goal::On, Reached::ByUs) => self.on_at = Some(clock::wall_millis()),
            _ => {}
        }
    }
}

impl Actor<'_> {
    /// Returns the reading of Off that proved the system at the index `at` off. It is the first event of powering the system on,
    /// so that the agent posts On without another reading. If the system is already on, On changes nothing.
    ///
    /// Returns nothing for `method=cycle`, because the BMC powers such a system on by itself.
    pub(super) fn reading_of_proof(&self, at: usize) -> Vec<Moment> {
        let system = self.hosts.get(at).and_then(Target::system).filter(|system| system.power.is(PowerWord::Off));
        let system = system.filter(|_| self.config.method == Method::OnOff);
        let event = system.map(|system| Event::Read {
            power: system.power.clone(),
            last_reset: system.last_reset.clone(),
            is_there: true,
        });
        event.into_iter().map(|event| Moment { at: Duration::ZERO, event }).collect()
    }
}
