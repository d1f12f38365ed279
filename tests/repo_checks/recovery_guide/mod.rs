//! The recovery guide contains every sentence that the code can print when it refuses or fails, and no others. Each
//! ends with a command to type. The sentences are taken from the sources, so a new one fails here until the guide has
//! it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod crm_mon;
mod exceptions;
mod guide;
mod sentences;

pub(crate) use guide::GUIDE;
use sentences::Sentence;

/// Returns the hints that the table of BMCs' messages adds to the BMC's own words. They are sentences that the guide has to
/// contain.
fn hints() -> impl Iterator<Item = Sentence> {
    let hints = tandem::adapters::redfish::quirks::MESSAGES.iter().map(|row| row.hint).filter(|hint| !hint.is_empty());
    hints.map(|hint| Sentence { text: hint.to_owned(), place: "src/adapters/redfish/quirks.rs".to_owned() })
}

fn all_sentences() -> Vec<Sentence> {
    let mut all = sentences::all();
    all.extend(hints());
    all.push(Sentence { text: "Unable to create file {}: {}".to_owned(), place: "src/fence/trace.rs".to_owned() });
    all
}

/// Returns whether the guide's `words` are `sentence`, a sentence of a source, with values in place of its
/// placeholders.
fn fits(sentence: &str, words: &str) -> bool {
    let mut pieces = sentence.split("{}");
    let Some(mut rest) = pieces.next().and_then(|first| words.strip_prefix(first)) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn every_sentence_is_in_the_guide() {
    let entries = guide::entries();
    let known = |sentence: &Sentence| {
        entries.iter().any(|entry| entry.is_ours && entry.words.iter().any(|words| fits(&sentence.text, words)))
    };
    let all = all_sentences();
    assert!(all.len() > 150, "only {} sentences were found in the sources", all.len());
    let missing: Vec<String> =
        all.iter().filter(|sentence| !known(sentence)).map(|one| format!("  {}: {}", one.place, one.text)).collect();
    assert!(
        missing.is_empty(),
        "{GUIDE} does not say what to do about:\n{}\nAdd each, word for word with capitals for what fills its holes, \
         as `### \\`words\\`` with a ```sh block or as a table's row that ends with a command. If it is no refusal, say so \
         in tests/repo_checks/recovery_guide/exceptions.rs.",
        missing.join("\n")
    );
}

#[test]
fn the_guide_knows_no_sentence_that_the_code_does_not_print() {
    let all = all_sentences();
    let mut stale = Vec::new();
    for entry in guide::entries().into_iter().filter(|entry| entry.is_ours) {
        for words in &entry.words {
            if !all.iter().any(|sentence| fits(&sentence.text, words)) {
                stale.push(format!("  line {}: {words}", entry.line));
            }
        }
    }
    assert!(stale.is_empty(), "nothing in src/ prints these words of {GUIDE} any more:\n{}", stale.join("\n"));
}

#[test]
fn every_entry_ends_with_a_way_on() {
    let entries = guide::entries();
    let without: Vec<String> = entries
        .iter()
        .filter(|entry| !entry.has_way_on || entry.words.is_empty())
        .map(|entry| format!("  line {}: {}", entry.line, entry.words.join(", ")))
        .collect();
    assert!(without.is_empty(), "these entries of {GUIDE} name no command to type:\n{}", without.join("\n"));
}

#[test]
fn holes_are_filled_and_words_are_not() {
    assert!(fits("{} may have gone on: start {}", "PEER may have gone on: start PEER"));
    assert!(!fits("{} may have gone on: start {}", "PEER may have gone on: stop PEER"));
    assert!(fits("etcd is still running after SIGKILL", "etcd is still running after SIGKILL"));
    assert!(!fits("etcd is still running after SIGKILL", "etcd is still running after SIGKILL: WHY"));
}
