//! The conversion of JSON to types, by one reader. `serde_json` has others, for a `str` and for a `Value`. Each of them would add
//! another copy of every type's reader to the binary.

use serde::de::DeserializeOwned;
use serde_json::{Result, Value};

/// Parses a JSON text as a `T`.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_slice(text.as_bytes())
}

/// Converts a JSON value to a `T`. This copies the texts without wiping the copies, so it must not be used for secrets.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T> {
    serde_json::from_slice(&serde_json::to_vec(value)?)
}
