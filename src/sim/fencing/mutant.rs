//! Rules broken on purpose, from the outside: the input of the core, or the use of its outputs. The core has no switch.

use std::time::Duration;

use crate::fencing_agent::core::{Datagram, Message, Name};

/// A rule of `fencing-agent` that is broken on purpose. The simulation must catch each one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mutant {
    #[default]
    None,
    /// An answer counts as contact from its arrival, instead of from the time at which its challenge was sent.
    CountedFromArrival,
    /// Any answer of a member counts as the answer to the newest challenge, whatever its nonce.
    NoNonce,
    /// The agent's health score lengthens the window for which a contact counts.
    ScoreMovesWindow,
    /// A quorum is a majority of the members that are seen now, instead of all members of the list.
    QuorumOfSeen,
    /// A watchdog that an earlier agent left armed is fed before the new agent has reached any member.
    FedBeforeContact,
    /// An agent that is asked to end disarms the watchdog (`V`) although it has no quorum.
    VAfterLoss,
    /// An agent starts without the member list that it kept on disk.
    LastListIgnored,
    /// A suspicion that a member only passes on counts as an independent confirmation.
    EchoConfirms,
    /// The agent reads the wall clock, which can be set back.
    WallClock,
    /// A new agent uses the start counter of the agent before it.
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

    /// Returns the datagram that arrives in place of `payload`. `newest` is the nonce of the receiver's newest
    /// challenge to the sender. `suspects` are all members that the sender suspects, on its own evidence or another's.
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
