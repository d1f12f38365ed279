//! The data of an event for programs, in addition to its message: a few short texts by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::cut;

/// The greatest number of details of one event.
const MOST: usize = 12;
/// The longest name of a detail, in bytes.
const NAME_LIMIT: usize = 32;
/// The longest text of a detail, in bytes.
const TEXT_LIMIT: usize = 300;
/// The greatest sum of all names and texts of an event's details in bytes, so that the event fits into one write.
const ALL_LIMIT: usize = 700;

/// The details of an event: short texts for programs, by name.
pub type Details = BTreeMap<String, String>;

/// Returns the details in `details` that are within the limits of an event. A name must be a word of limited length. Each text is cut to
/// one short line.
pub(super) fn bounded(details: impl IntoIterator<Item = (String, String)>) -> Details {
    let mut left = ALL_LIMIT;
    let is_word = |name: &str| {
        let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        letters && (1..=NAME_LIMIT).contains(&name.len())
    };
    let words = details.into_iter().filter(|(name, _)| is_word(name)).take(MOST);
    let short = words.map(|(name, text)| (name, cut(text, TEXT_LIMIT)));
    let fits = |(name, text): &(String, String)| {
        let rest = left.checked_sub(name.len() + text.len());
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    short.filter(fits).collect()
}

pub(super) fn details<'de, D: Deserializer<'de>>(from: D) -> Result<Details, D::Error> {
    Details::deserialize(from).map(bounded)
}
