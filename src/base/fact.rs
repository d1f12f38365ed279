//! A fact is known, absent or unknown; "could not ask" is never "nothing there".

use serde::{Deserialize, Serialize};

/// The answer of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// Asked, and this is it.
    Known(T),
    /// Asked, and there is nothing.
    Absent,
    /// Not asked, or no answer: why.
    Unknown(String),
    /// Out of scope for this action, on purpose.
    #[default]
    NotAsked,
}

impl<T> Fact<T> {
    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown(_) | Self::NotAsked => None,
        }
    }

    /// Whether the source was asked and has nothing.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Whether nobody was asked.
    pub fn is_not_asked(&self) -> bool {
        matches!(self, Self::NotAsked)
    }

    /// Why the value is not known; for sentences, so never empty.
    pub fn why_unknown(&self) -> &str {
        match self {
            Self::Unknown(why) => why,
            Self::NotAsked => "not asked",
            Self::Known(_) | Self::Absent => "nothing is unknown",
        }
    }
}
