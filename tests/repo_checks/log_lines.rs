//! `docs/operate/log.md` quotes lines of the journal, and the program prints each of them.

#![allow(clippy::unwrap_used, reason = "a failure ends the test")]

use std::fs;

use crate::tree::{root, rust_files};

/// The length that a piece of a quoted line must have to be compared with the sources. A shorter piece fits too many
/// sentences to show anything.
const LEAST: usize = 8;

/// Returns the lines of the journal that `docs/operate/log.md` quotes in its table.
fn quoted() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/operate/log.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    rows.map(|(words, _)| words.to_owned()).collect()
}

/// Returns the pieces of a quoted line between its placeholders, which are words of three capitals and more.
fn pieces(line: &str) -> Vec<String> {
    let is_placeholder = |word: &str| {
        let word = word.trim_matches([':', ',']);
        word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    let mut pieces = vec![String::new()];
    for word in line.split(' ') {
        if is_placeholder(word) {
            pieces.push(String::new());
        } else {
            let last = pieces.last_mut().unwrap();
            last.push_str(word);
            last.push(' ');
        }
    }
    pieces.iter().map(|piece| piece.trim().to_owned()).filter(|piece| piece.len() >= LEAST).collect()
}

/// Returns the text of all sources. A string that continues on the next line becomes one line.
fn sources() -> String {
    let texts = rust_files(&root().join("src")).into_iter().map(|path| fs::read_to_string(path).unwrap());
    let joined: Vec<String> = texts.map(|text| text.split("\\\n").map(str::trim_start).collect()).collect();
    joined.join("\n")
}

#[test]
fn each_quoted_line_is_printed_by_the_program() {
    let (lines, sources) = (quoted(), sources());
    assert_eq!(lines.len(), 10, "{lines:?}");
    for line in &lines {
        let pieces = pieces(line);
        assert!(!pieces.is_empty(), "{line}");
        for piece in pieces {
            assert!(sources.contains(&piece), "docs/operate/log.md: no source has '{piece}' of '{line}'");
        }
    }
}
