//! Passwords and tokens: values that no log, error or debug file may show, and that memory does not keep.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

/// Bytes that are never printed, and wiped when they are dropped.
///
/// What TLS and HTTP copy of them on their way out is not ours to wipe.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes over; of a slice it takes a copy, and the caller wipes its own.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
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
        let mut cleaned = Zeroizing::new(text.to_owned());
        for word in self.words.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            for writing in writings(&String::from_utf8_lossy(word.reveal())) {
                cleaned = Zeroizing::new(cleaned.replace(writing.as_str(), "***"));
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
fn writings(word: &str) -> Vec<Zeroizing<String>> {
    let inner = quoted(word);
    let (lower, upper) = (ascii(&inner, |unit| format!("{unit:04x}")), ascii(&inner, |unit| format!("{unit:04X}")));
    let mut writings = vec![Zeroizing::new(word.to_owned()), inner, lower, upper];
    let with_slashes: Vec<_> = writings.iter().map(|writing| Zeroizing::new(writing.replace('/', "\\/"))).collect();
    writings.extend(with_slashes);
    writings.dedup();
    writings
}

/// The longest that JSON makes of a byte: `\u0000`.
const ESCAPED: usize = 6;

/// `word` as it stands between the quotes of a JSON string. The room is there from the start: a text that grows leaves
/// copies behind.
fn quoted(word: &str) -> Zeroizing<String> {
    let mut json = Zeroizing::new(Vec::with_capacity(word.len() * ESCAPED + 2));
    let written = serde_json::to_writer(&mut *json, word).ok();
    let text = written.and_then(|()| std::str::from_utf8(&json).ok());
    let inner = text.and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    Zeroizing::new(inner.unwrap_or(word).to_owned())
}

/// `text` with `\u` and four hex digits for each UTF-16 unit of what is not ASCII.
fn ascii(text: &str, hex: impl Fn(u16) -> String) -> Zeroizing<String> {
    let mut escaped = Zeroizing::new(String::with_capacity(text.len() * ESCAPED));
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
