//! The checks of a line's fields. Every member of Pacemaker's group can have written the line, so no field is trusted.

use serde::{Deserialize, Deserializer, de};

use super::{CAUSE_LIMIT, HIGHEST, MESSAGE_LIMIT, NODE_LIMIT, cut};

/// The longest name of an event's reason, in bytes.
const REASON_LIMIT: usize = 64;

pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = u64::deserialize(from)?;
    if number <= HIGHEST { Ok(number) } else { Err(de::Error::custom("no event has this number")) }
}

/// Reads the reason of an event. It must be one word, because it becomes a label of a metric and a word in a line.
pub(super) fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let reason = String::deserialize(from)?;
    let is_word = (1..=REASON_LIMIT).contains(&reason.len()) && reason.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_word { Ok(reason) } else { Err(de::Error::custom("no reason has this form")) }
}

pub(super) fn node<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|node| cut(node, NODE_LIMIT))
}

pub(super) fn message<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|message| cut(message, MESSAGE_LIMIT))
}

pub(super) fn cause<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|cause| cut(cause, CAUSE_LIMIT))
}
