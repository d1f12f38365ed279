//! Passwords and tokens: values that no log, error or debug file may show.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The value itself, for the one place that sends it.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(***)")
    }
}

/// Takes secrets out of text that comes from elsewhere: a BMC may send back what it was sent.
///
/// Clones share their words: what one learns to hide, all hide.
#[derive(Clone, Debug, Default)]
pub struct Scrubber {
    words: Arc<Mutex<Vec<Secret>>>,
}

impl Scrubber {
    /// From now on `word` is replaced wherever it turns up.
    pub fn hide(&self, word: &[u8]) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if !word.is_empty() && !words.iter().any(|known| known.reveal() == word) {
            words.push(Secret::new(word));
        }
    }

    /// `text` without any hidden word, on one line, at most `limit` characters.
    pub fn clean(&self, text: &str, limit: usize) -> String {
        let mut cleaned = text.to_owned();
        for word in self.words.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Ok(word) = std::str::from_utf8(word.reveal()) {
                cleaned = cleaned.replace(word, "***");
                // The same word as JSON writes it.
                let quoted = serde_json::Value::from(word).to_string();
                let inner = quoted.trim_matches('"');
                if inner != word && !inner.is_empty() {
                    cleaned = cleaned.replace(inner, "***");
                }
            }
        }
        cleaned.retain(|character| character.is_whitespace() || !character.is_control());
        let mut line = cleaned.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() > limit {
            line = line.chars().take(limit).chain("...".chars()).collect();
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_words_leave_no_trace() {
        let scrubber = Scrubber::default();
        scrubber.hide(b"s3\"cret");
        scrubber.hide(b"dG9rZW4=");
        let text = "you sent s3\"cret,\n\tor \"s3\\\"cret\" or dG9rZW4= \u{7}";
        assert_eq!(scrubber.clean(text, 100), "you sent ***, or \"***\" or ***");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(Scrubber::default().clean("aaaa bbbb", 6), "aaaa b...");
    }

    #[test]
    fn debug_output_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(***)");
    }
}
