//! Rules broken on purpose, from the outside: the input of the core, or the use of its outputs. The core has no switch.

use std::time::Duration;

use crate::fencing_agent::core::{Datagram, Message, Name};

/// A rule of `fencing-agent` that is broken on purpose. The simulation must catch each one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mutant {
    #[default]
    None,
    /// A contact counts from the time at which an answer arrives. Without the mutant it counts from the time at which the challenge was
    /// sent.
    CountedFromArrival,
    /// Any answer of a member counts as the answer to the newest challenge, whatever nonce it has.
    NoNonce,
    /// The agent's health score lengthens the time for which a contact counts.
    ScoreMovesWindow,
    /// A quorum is a majority of the members that the agent sees now. Without the mutant it is a majority of all members of the list.
    QuorumOfSeen,
    /// If an earlier agent left the watchdog armed, it is fed before the new agent has reached any member.
    FedBeforeContact,
    /// An agent that is asked to end writes `V`, which disarms the watchdog, although it has no quorum.
    VAfterLoss,
    /// An agent starts without the member list that it had stored on disk.
    LastListIgnored,
    /// A member that only repeats another member's suspicion counts as an independent confirmation.
    EchoConfirms,
    /// The agent reads the wall clock, which can be set back.
    WallClock,
    /// A new agent has the same number of starts as the agent before it.
    NumberReused,
}

/// All broken rules, each with its name on the command line.
pub const ALL: [(&str, Mutant); 10] = [
    ("counted-from-arrival", Mutant::CountedFromArrival),
    ("no-nonce", Mutant::NoNonce),
    ("score-moves-window", Mutant::ScoreMovesWindow),
    ("quorum-of-seen", Mutant::QuorumOfSeen),
    ("fed-before-contact", Mutant::FedBeforeContact),
    ("v-after-loss", Mutant::VAfterLoss),
    ("last-list-ignored", Mutant::LastListIgnored),
    ("echo-confirms", Mutant::EchoConfirms),
    ("wall-clock", Mutant::WallClock),
    ("number-reused", Mutant::NumberReused),
];

impl Mutant {
    /// Returns the deadline that the mutant gives to the feeding thread in place of `deadline`.
    pub(super) fn deadline(self, deadline: Duration, under_way: Duration, score: u8, window: Duration) -> Duration {
        match self {
            _ if deadline.is_zero() => deadline,
            Self::CountedFromArrival => deadline + under_way,
            Self::ScoreMovesWindow => deadline + window * u32::from(score) / 2,
            _ => deadline,
        }
    }

    /// Returns the datagram that the mutant delivers in place of `payload`. `newest` is the nonce of the newest challenge that the
    /// receiver sent to the sender. `suspects` returns all members that the sender suspects, by its own evidence or by that of another
    /// member.
    pub(super) fn arriving(
        self,
        payload: Vec<u8>,
        newest: Option<u64>,
        suspects: impl FnOnce() -> Vec<Name>,
    ) -> Vec<u8> {
        if !matches!(self, Self::NoNonce | Self::EchoConfirms) {
            return payload;
        }
        let Some(mut datagram) = Datagram::decode(&payload) else { return payload };
        match &mut datagram.message {
            Message::Answer { nonce: answered, .. } | Message::AnswerAndChallenge { answered, .. }
                if self == Self::NoNonce =>
            {
                *answered = newest.unwrap_or(*answered);
            }
            Message::Challenge { accused, .. } | Message::AnswerAndChallenge { accused, .. }
                if self == Self::EchoConfirms =>
            {
                *accused = suspects();
            }
            _ => return payload,
        }
        datagram.encode()
    }
}
