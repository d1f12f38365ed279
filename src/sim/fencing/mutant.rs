//! Rules broken on purpose, from the outside: the input of the core, or the use of its outputs. The core has no switch.

use std::time::Duration;

use crate::fencing_agent::core::{Datagram, Message, Name};

/// A broken rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mutant {
    #[default]
    None,
    /// An answer counts from its arrival.
    CountedFromArrival,
    /// Any answer of a member answers the newest challenge.
    NoNonce,
    /// The health score lengthens the window.
    ScoreMovesWindow,
    /// The quorum is one of the members that the list shows.
    QuorumOfSeen,
    /// A device that was left running is fed before any contact.
    FedBeforeContact,
    /// A signal to end writes `V` without a quorum.
    VAfterLoss,
    /// A start takes no list from disk.
    LastListIgnored,
    /// A suspicion that is passed on confirms it.
    EchoConfirms,
    /// Time is the wall clock's, which steps.
    WallClock,
    /// A start takes the number of the last one.
    NumberReused,
}

/// All broken rules, with the names that the command takes.
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
    /// Returns the deadline that the feeding thread gets instead.
    pub(super) fn deadline(self, deadline: Duration, under_way: Duration, score: u8, window: Duration) -> Duration {
        match self {
            _ if deadline.is_zero() => deadline,
            Self::CountedFromArrival => deadline + under_way,
            Self::ScoreMovesWindow => deadline + window * u32::from(score) / 2,
            _ => deadline,
        }
    }

    /// Returns the datagram that arrives instead. `newest` is the nonce of the receiver's newest challenge of its
    /// sender. `suspects` are all members that the sender suspects, on its own evidence or another's.
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
