//! JSON to types by one reader. `serde_json` has others, for a `str` and for a `Value`, and each is another copy in the binary of what reads a type.

use serde::de::DeserializeOwned;
use serde_json::{Result, Value};

/// Reads a type from a text.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_slice(text.as_bytes())
}

/// Reads a type from a value. Texts are copied once more, which are not wiped: not for what is secret.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T> {
    serde_json::from_slice(&serde_json::to_vec(value)?)
}
