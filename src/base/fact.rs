//! A fact that is known, absent or unknown. A failed question never means that there is nothing.

use serde::{Deserialize, Serialize};

/// The result of asking one source, such as etcd or podman, for a value. A source that does not answer never counts as one without a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// The source was asked. The field is the value that it has.
    Known(T),
    /// The source was asked, and has no value.
    Absent,
    /// The source could not be asked or did not answer, for the reason in the field.
    Unknown(String),
    /// The program deliberately did not ask the source, because the action does not need the value.
    #[default]
    NotAsked,
}

impl<T> Fact<T> {
    /// Returns the value; `None` unless the fact is `Known`.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown(_) | Self::NotAsked => None,
        }
    }

    /// Returns the fact with a reference to the value.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Known(value) => Fact::Known(value),
            Self::Absent => Fact::Absent,
            Self::Unknown(why) => Fact::Unknown(why.clone()),
            Self::NotAsked => Fact::NotAsked,
        }
    }

    /// Converts a known value by `into`. Returns any other fact unchanged.
    pub fn map<U>(self, into: impl FnOnce(T) -> U) -> Fact<U> {
        self.and_then(|value| Fact::Known(into(value)))
    }

    /// Returns the result of `next` for a known value. Returns a fact without a value unchanged.
    pub fn and_then<U>(self, next: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Known(value) => next(value),
            Self::Absent => Fact::Absent,
            Self::Unknown(why) => Fact::Unknown(why),
            Self::NotAsked => Fact::NotAsked,
        }
    }

    /// Returns whether the source was asked and has no value.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Returns whether the program deliberately did not ask the source.
    pub fn is_not_asked(&self) -> bool {
        matches!(self, Self::NotAsked)
    }

    /// Returns the reason why the value is unknown. The text is never empty, not even for a known value, because callers put it into
    /// sentences.
    pub fn why_unknown(&self) -> &str {
        match self {
            Self::Unknown(why) => why,
            Self::NotAsked => "not asked",
            Self::Known(_) | Self::Absent => "nothing is unknown",
        }
    }
}
