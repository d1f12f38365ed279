//! Passwords and tokens: values that no log, error or debug file may show.

use std::fmt::{self, Write as _};
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
            for writing in writings(&String::from_utf8_lossy(word.reveal())) {
                cleaned = cleaned.replace(&writing, "***");
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

/// A word as it is, and as JSON may write it: with escapes where they are needed, and for all that is not ASCII.
fn writings(word: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(word).to_string();
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(word).to_owned();
    let (lower, upper) = (ascii(&inner, |unit| format!("{unit:04x}")), ascii(&inner, |unit| format!("{unit:04X}")));
    let mut writings = vec![word.to_owned(), inner, lower, upper];
    let with_slashes: Vec<String> = writings.iter().map(|writing| writing.replace('/', "\\/")).collect();
    writings.extend(with_slashes);
    writings.dedup();
    writings
}

/// `text` with `\u` and four hex digits for each UTF-16 unit of what is not ASCII.
fn ascii(text: &str, hex: impl Fn(u16) -> String) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]).iter() {
                let _ = write!(escaped, "\\u{}", hex(*unit));
            }
        }
    }
    escaped
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
    fn a_hidden_word_is_found_however_json_writes_it() {
        let scrubber = Scrubber::default();
        scrubber.hide("ä/\"ß😀".as_bytes());
        for text in ["ä/\"ß😀", "ä/\\\"ß😀", r#"\u00e4/\"\u00df\ud83d\ude00"#, r#"\u00E4\/\"\u00DF\uD83D\uDE00"#]
        {
            assert_eq!(scrubber.clean(text, 100), "***", "{text}");
        }
        scrubber.hide(b"x\xffy");
        assert_eq!(scrubber.clean(&String::from_utf8_lossy(b"x\xffy"), 100), "***", "bytes that are no text");
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
