//! Passwords and tokens, which no log, error or debug file may show, and which do not stay in memory.

use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

/// A secret in bytes. It has no readable `Debug` output, and is wiped when it is dropped.
///
/// Copies that TLS and HTTP make while they send a secret cannot be wiped here.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Creates a secret from `bytes`. A vector is moved. A slice is copied, and the caller must wipe its own bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// Returns the secret's bytes, for the code that sends them.
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

/// A filter that replaces secrets in texts from a BMC, because a BMC may repeat what it has received.
///
/// All clones of a filter share one list of secrets. A secret that is added later counts for each clone.
#[derive(Clone, Debug, Default)]
pub struct Scrubber {
    words: Arc<Mutex<Vec<Hidden>>>,
}

/// A secret word that a [`Scrubber`] replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hidden {
    word: Secret,
    /// True if the word is replaced only where no letter or digit is directly before or after it.
    alone: bool,
}

/// The greatest length of a secret that may count as an everyday word. A secret with other characters than letters never counts as such a
/// word.
const EVERYDAY: usize = 8;

impl Hidden {
    fn is_everyday(&self) -> bool {
        let word = self.word.reveal();
        !self.alone && word.len() <= EVERYDAY && word.iter().all(u8::is_ascii_alphabetic)
    }
}

/// The least length of a token that is replaced everywhere. A shorter token could be a part of many words.
const LONG: usize = 8;

impl Scrubber {
    /// Replaces `word` from now on, wherever it occurs in a text.
    pub fn hide(&self, word: &[u8]) {
        self.add(Hidden { word: Secret::new(word), alone: false });
    }

    /// Replaces `token` from now on. The BMC has chosen this token for a session. A short token is replaced only where it is a separate
    /// word.
    pub fn hide_token(&self, token: &[u8]) {
        self.add(Hidden { word: Secret::new(token), alone: token.len() < LONG });
    }

    fn add(&self, hidden: Hidden) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if !hidden.word.is_empty() && !words.contains(&hidden) {
            words.push(hidden);
        }
    }

    /// Returns `text` on one line, without secret words and invisible characters, cut to `limit` characters.
    ///
    /// Invisible characters are removed first, and the text is cut last, because secret words would not be found otherwise. A whole
    /// sentence is replaced if it contains a secret that is an everyday word, because a gap in the sentence would reveal the word.
    pub fn clean(&self, text: &str, limit: usize) -> String {
        self.cleaned(text, limit, true)
    }

    /// Cleans a sentence of this program as [`Scrubber::clean`] does, but does not replace everyday words. The BMC's texts in the sentence
    /// were cleaned before.
    pub fn clean_own(&self, sentence: &str, limit: usize) -> String {
        self.cleaned(sentence, limit, false)
    }

    fn cleaned(&self, text: &str, limit: usize, is_foreign: bool) -> String {
        let line = one_line(text);
        let mut places = Vec::new();
        {
            let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
            let tight = (!words.is_empty()).then(|| Tight::of(&line));
            for hidden in words.iter().filter(|hidden| is_foreign || !hidden.is_everyday()) {
                let before = places.len();
                if let Some(tight) = &tight {
                    tight.find(hidden, &line, &mut places);
                }
                let found = places.get(before..).unwrap_or_default();
                if hidden.is_everyday() && found.iter().any(|place| is_in_a_sentence(&line, place)) {
                    return "***".to_owned();
                }
            }
        }
        let line = without(&line, places);
        match line.char_indices().nth(limit) {
            Some((end, _)) => line.get(..end).unwrap_or_default().chars().chain("...".chars()).collect(),
            None => line,
        }
    }
}

/// A text without blanks, and for each of its bytes the position in the original text.
struct Tight {
    text: Zeroizing<String>,
    places: Vec<usize>,
}

impl Tight {
    /// Removes blanks and JSON's escapes for blanks from `text`, because a reader would recognise a secret word even with a line break in
    /// it.
    fn of(text: &str) -> Self {
        let mut tight = Self { text: Zeroizing::new(String::with_capacity(text.len())), places: Vec::new() };
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            if character == '\\' {
                match characters.peek() {
                    Some((_, 'n' | 'r' | 't')) => {
                        characters.next();
                        continue;
                    }
                    Some((next, '\\')) => {
                        tight.push(*next, '\\');
                        characters.next();
                    }
                    _ => {}
                }
            }
            if !character.is_whitespace() {
                tight.push(at, character);
            }
        }
        tight
    }

    fn push(&mut self, at: usize, character: char) {
        self.text.push(character);
        self.places.resize(self.text.len(), at);
    }

    /// Finds the secret word `hidden` in this text. Appends its positions in `line`, the original text, to `places`.
    fn find(&self, hidden: &Hidden, line: &str, places: &mut Vec<Range<usize>>) {
        for writing in writings(&String::from_utf8_lossy(hidden.word.reveal())) {
            let word = Self::of(&one_line(&writing)).text;
            if word.is_empty() {
                continue;
            }
            for (at, found) in self.text.match_indices(word.as_str()) {
                let last = found.char_indices().next_back().map_or(0, |(last, _)| last);
                let from = self.places.get(at).copied().unwrap_or_default();
                let end = self.places.get(at + last).copied().unwrap_or_default();
                let end = end + line.get(end..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
                if !hidden.alone || is_alone(line, from..end) {
                    places.push(from..end);
                }
            }
        }
    }
}

/// Returns whether no letter or digit is next to the text at `place` in `line`.
fn is_alone(line: &str, place: Range<usize>) -> bool {
    let before = line.get(..place.start).and_then(|before| before.chars().next_back());
    let after = line.get(place.end..).and_then(|after| after.chars().next());
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

/// Returns whether the text at `place` in `line` is a separate word, with blanks or punctuation around it.
fn is_in_a_sentence(line: &str, place: &Range<usize>) -> bool {
    let before = line.get(..place.start).and_then(|before| before.chars().next_back());
    let after = line.get(place.end..).and_then(|after| after.chars().next());
    let is_between = |next: Option<char>| next.is_none_or(|next| next.is_whitespace() || ".,;:!?()'".contains(next));
    (before.is_some() || after.is_some()) && is_between(before) && is_between(after)
}

/// Replaces the texts at `places` in `line` by `***`. The places may overlap.
fn without(line: &str, mut places: Vec<Range<usize>>) -> String {
    places.sort_by_key(|place| (place.start, place.end));
    let mut cleaned = String::with_capacity(line.len());
    let mut end = 0;
    for place in places {
        if place.start >= end {
            cleaned.push_str(line.get(end..place.start).unwrap_or_default());
            cleaned.push_str("***");
        }
        end = end.max(place.end);
    }
    cleaned.push_str(line.get(end..).unwrap_or_default());
    cleaned
}

/// Returns `text` with one blank for each sequence of blanks and line breaks. Removes invisible characters, also those that JSON escapes.
fn one_line(text: &str) -> Zeroizing<String> {
    let mut line = Zeroizing::new(String::with_capacity(text.len()));
    let mut rest = text.trim();
    while let Some(character) = rest.chars().next() {
        let length = match escaped(rest) {
            Some(meant) if is_invisible(meant) => ESCAPED,
            _ => character.len_utf8(),
        };
        if length != ESCAPED && !is_invisible(character) {
            match character.is_whitespace() {
                true if line.ends_with(' ') => {}
                true => line.push(' '),
                false => line.push(character),
            }
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    let (begins, ends) = (line.starts_with(' '), line.ends_with(' '));
    if begins || ends { Zeroizing::new(line.trim().to_owned()) } else { line }
}

/// Returns the character that `text` begins with, if it is written as `\u` and four hexadecimal digits; `None` otherwise.
fn escaped(text: &str) -> Option<char> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

/// Returns whether `character` is invisible and not a blank: a control character, or a format character of Unicode, which has no width or
/// changes the direction of the text.
fn is_invisible(character: char) -> bool {
    match character {
        _ if character.is_whitespace() => false,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{70f}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => character.is_control(),
    }
}

/// Returns the forms in which a text may contain `word`: as it is, and as JSON may write it with more or fewer escapes.
fn writings(word: &str) -> Vec<Zeroizing<String>> {
    let inner = quoted(word);
    let (lower, upper) = (ascii(&inner, |unit| format!("{unit:04x}")), ascii(&inner, |unit| format!("{unit:04X}")));
    let mut writings = vec![Zeroizing::new(word.to_owned()), inner, lower, upper];
    let with_slashes: Vec<_> = writings.iter().map(|writing| Zeroizing::new(writing.replace('/', "\\/"))).collect();
    writings.extend(with_slashes);
    writings.dedup();
    writings
}

/// The greatest number of characters that JSON needs for one byte: `\u0000`.
const ESCAPED: usize = 6;

/// Returns `word` as it is written between the quotes of a JSON string. The buffer has its full size from the start, because a buffer
/// that grows leaves copies in memory.
fn quoted(word: &str) -> Zeroizing<String> {
    let mut json = Zeroizing::new(Vec::with_capacity(word.len() * ESCAPED + 2));
    let written = serde_json::to_writer(&mut *json, word).ok();
    let text = written.and_then(|()| std::str::from_utf8(&json).ok());
    let inner = text.and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    Zeroizing::new(inner.unwrap_or(word).to_owned())
}

/// Returns `text` with `\u` and four hexadecimal digits in place of each UTF-16 unit that is not ASCII.
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
    fn a_character_that_shows_nothing_hides_no_word() {
        const WORD: &str = "pass/w #1 long";
        let scrubber = Scrubber::default();
        scrubber.hide(WORD.as_bytes());
        for between in
            ["\u{7}", "\u{200b}", "\u{202e}", "\u{ad}", "\n", " \t", "\\u0007", "\\u200B", "\\n", "\u{7}\u{feff}"]
        {
            for at in 0..=WORD.len() {
                let (before, after) = WORD.split_at(at);
                let text = format!("you sent {before}{between}{after}, it seems");
                let cleaned = scrubber.clean(&text, 100).replace("\\n", " ");
                assert!(cleaned.starts_with("you sent ") && cleaned.contains("***"), "{between:?} {at}: {cleaned}");
                assert!(!cleaned.contains("pass") && !cleaned.contains("#1"), "{between:?} {at}: {cleaned}");
            }
        }
        assert_eq!(scrubber.clean("a\u{202e}b \u{200f}\u{1b}[2J c", 100), "ab [2J c");
    }

    #[test]
    fn a_word_is_found_before_the_text_is_cut() {
        let scrubber = Scrubber::default();
        scrubber.hide(b"hunter2-hunter2");
        let text = format!("{}hunter2-hunter2", "x".repeat(33));
        assert_eq!(scrubber.clean(&text, 40), format!("{}***", "x".repeat(33)));
        assert_eq!(scrubber.clean(&text, 34), format!("{}*...", "x".repeat(33)));
    }

    /// Asserts that a BMC's sentence is not shown if it contains a secret that is an everyday word. A BMC's sentences are public, so a
    /// gap in one would reveal the password.
    #[test]
    fn a_sentence_without_one_everyday_word_is_not_shown_at_all() {
        let scrubber = Scrubber::default();
        scrubber.hide(b"wrong");
        let said = "the user name or password is wrong (Base.1.0.GeneralError)";
        assert_eq!(scrubber.clean(said, 100), "***");
        assert_eq!(scrubber.clean("Wrong or not: the account is locked", 100), "Wrong or not: the account is locked");
        assert_eq!(scrubber.clean("GET /redfish/wrong/1", 100), "GET /redfish/***/1", "no sentence");
        assert_eq!(scrubber.clean("{\"Password\":\"wrong\"}", 100), "{\"Password\":\"***\"}");
        assert_eq!(scrubber.clean_own("the wrong BMC: ***", 100), "the wrong BMC: ***", "the word is ours");
        scrubber.hide(b"hunter2-long");
        assert_eq!(scrubber.clean("you sent hunter2-long here", 100), "you sent *** here");
    }

    #[test]
    fn a_short_token_cuts_no_word_up() {
        let scrubber = Scrubber::default();
        scrubber.hide_token(b"e");
        scrubber.hide_token(b"long-enough");
        assert_eq!(
            scrubber.clean("GET /redfish/v1/Systems: e, xlong-enoughx", 100),
            "GET /redfish/v1/Systems: ***, x***x"
        );
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
