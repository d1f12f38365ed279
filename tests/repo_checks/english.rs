//! Words that CONTRIBUTING's rules for English replace. Each wing has a number of them in its prose, and these counts
//! only fall.
//!
//! Prose is comments in Rust and the paragraphs of Markdown. Code between backticks, blocks of code and strings do not
//! count, because programs print strings and scripts of users read them. `english.txt` has the counts. `TANDEM_BLESS=1`
//! writes them again, and refuses a total that rises. A single row may rise with it, because files move between wings.

#![allow(clippy::unwrap_used, reason = "a failure ends the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::tree::{of_kind, root, rust_files};

const TABLE: &str = "tests/repo_checks/english.txt";

/// The rules for English that are counted, each with the words that it replaces. A phrase is one word or several in a row.
const RULES: [(&str, &[&str]); 2] = [
    ("name the actor", &["who", "whoever", "whom", "whose", "somebody", "nobody", "anybody", "everybody"]),
    (
        "use the field's verb",
        &[
            "tell",
            "tells",
            "told",
            "says",
            "go on",
            "goes on",
            "going on",
            "gone on",
            "went on",
            "a look",
            "the look",
            "one look",
            "each look",
            "last look",
            "next look",
            "looks of",
            "stands",
            "beside",
            "besides",
            "by then",
            "all the same",
        ],
    ),
];

/// The places at which a wing (see [`wing_of`]) has words that a rule replaces, for each of [`RULES`]. A place is
/// `FILE:LINE: PHRASE`, and the file that changed last comes first.
type Found = [Vec<String>; 2];
type Rows = BTreeMap<String, [usize; 2]>;

/// Returns the wing of a file: a folder of `src/`, the lab, the other tests, or the documents.
fn wing_of(path: &Path) -> String {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts[..] {
        ["src", wing, _, ..] => format!("src/{wing}"),
        ["src", ..] => "src".to_owned(),
        ["tests", "lab", ..] => "tests/lab".to_owned(),
        ["tests" | "fuzz", ..] => "tests".to_owned(),
        _ => "docs".to_owned(),
    }
}

/// Returns the prose of a source or document, line by line. A line without prose is empty.
fn prose(is_rust: bool, text: &str) -> String {
    let mut is_code = false;
    let mut kept = String::new();
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if is_rust {
            kept.push_str(line.strip_prefix("//").unwrap_or_default().trim_start_matches(['/', '!']));
        } else if !is_code {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept.split("\n\n").map(without_code).collect::<Vec<_>>().join("\n\n")
}

/// Returns a paragraph without its code spans, but with their line breaks.
fn without_code(paragraph: &str) -> String {
    let pieces = paragraph.split('`').enumerate();
    pieces
        .map(|(at, piece)| if at % 2 == 0 { piece.to_owned() } else { "\n".repeat(piece.matches('\n').count()) })
        .collect()
}

/// Returns each of the `wanted` phrases in the prose, with the number of its line.
fn phrases(prose: &str, wanted: &'static [&'static str]) -> Vec<(usize, &'static str)> {
    let is_between = |c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_');
    let lines = prose.lines().enumerate();
    let words: Vec<(usize, String)> = lines
        .flat_map(|(at, line)| line.split(is_between).map(move |word| (at + 1, word.to_ascii_lowercase())))
        .filter(|(_, word)| !word.is_empty())
        .collect();
    let begins = |at: usize, phrase: &str| {
        let mut rest = words[at..].iter().map(|(_, word)| word.as_str());
        phrase.split(' ').all(|word| rest.next() == Some(word))
    };
    let found =
        (0..words.len()).filter_map(|at| Some((words[at].0, *wanted.iter().find(|phrase| begins(at, phrase))?)));
    found.collect()
}

fn found() -> BTreeMap<String, Found> {
    let rust = ["src", "tests", "fuzz"].iter().flat_map(|folder| rust_files(&root().join(folder)));
    let files = rust.chain(of_kind(root(), "md")).filter(|path| !path.iter().any(|part| part == "fixtures"));
    let changed = |path: &PathBuf| path.metadata().and_then(|of| of.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut files: Vec<(SystemTime, PathBuf)> = files.map(|path| (changed(&path), path)).collect();
    files.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    assert!(files.len() > 500, "the sources are not where this test looks for them");
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for (_, path) in files {
        let name = path.strip_prefix(root()).unwrap();
        let prose = prose(path.extension().is_some_and(|kind| kind == "rs"), &fs::read_to_string(&path).unwrap());
        let wing = found.entry(wing_of(name)).or_default();
        for ((_, words), places) in RULES.iter().zip(wing) {
            let hits = phrases(&prose, words).into_iter();
            places.extend(hits.map(|(line, phrase)| format!("{}:{line}: {phrase}", name.display())));
        }
    }
    found
}

/// Reads the table of counts. Each line has a wing (see [`wing_of`]), and a count for each of [`RULES`].
fn rows(table: &str) -> Rows {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [wing, one, other] => (wing.to_owned(), [one.parse().unwrap(), other.parse().unwrap()]),
        _ => panic!("{TABLE}: a wing and two counts, not '{line}'"),
    };
    lines.map(row).collect()
}

/// Returns a message for each wing (see [`wing_of`]) with more counted words than the table allows, and for each wing
/// with fewer. In the second case the count in the table has to be lowered.
fn judge(rows: &Rows, found: &BTreeMap<String, Found>) -> Vec<String> {
    let mut wrong = Vec::new();
    let nothing = Found::default();
    let wings = rows.keys().chain(found.keys().filter(|wing| !rows.contains_key(*wing)));
    for wing in wings {
        let most = rows.get(wing).copied().unwrap_or_default();
        let places = found.get(wing).unwrap_or(&nothing);
        for (at, (rule, _)) in RULES.iter().enumerate() {
            let (most, count) = (most[at], places[at].len());
            if count > most {
                let first: Vec<&str> = places[at].iter().take(10).map(String::as_str).collect();
                wrong.push(format!(
                    "{wing}: '{rule}' has {count} words, above {most}. CONTRIBUTING.md has the rule. The files that changed \
                     last have these:\n  {}",
                    first.join("\n  ")
                ));
            } else if count < most {
                wrong.push(format!("{wing}: '{rule}': lower the row to {count} (TANDEM_BLESS=1 does), from {most}"));
            }
        }
    }
    wrong
}

/// Returns the table with the counts in `found`. Returns the reason why it must not be written if the total of a rule rises.
fn blessed(table: &str, found: &BTreeMap<String, Found>) -> Result<String, String> {
    let old = rows(table);
    let new: Rows = found.iter().map(|(wing, places)| (wing.clone(), [places[0].len(), places[1].len()])).collect();
    for (at, (rule, _)) in RULES.iter().enumerate() {
        let total = |rows: &Rows| rows.values().map(|row| row[at]).sum::<usize>();
        if total(&new) > total(&old) {
            return Err(format!("'{rule}' has {} words in all, above {}", total(&new), total(&old)));
        }
    }
    let mut rows: Vec<String> = table.lines().take_while(|line| line.starts_with('#')).map(str::to_owned).collect();
    let lines = new.iter().filter(|(_, row)| **row != [0, 0]);
    rows.extend(lines.map(|(wing, [one, other])| format!("{wing:<14} {one:>4} {other:>4}")));
    Ok(rows.join("\n") + "\n")
}

#[test]
fn words_that_the_rules_replace_only_get_fewer() {
    let path = root().join(TABLE);
    let table = fs::read_to_string(&path).unwrap();
    let found = found();
    let wrong = judge(&rows(&table), &found).join("\n");
    if std::env::var_os("TANDEM_BLESS").is_some() {
        let table = blessed(&table, &found).unwrap_or_else(|refused| panic!("{TABLE}: {refused}\n{wrong}"));
        return fs::write(&path, table).unwrap();
    }
    assert!(wrong.is_empty(), "{TABLE}:\n{wrong}");
}

#[test]
fn code_is_no_prose() {
    let rust =
        "/// Who\n/// asks `nobody\n/// told` of it\nlet somebody = \"who\";\n\n// All the same, it goes\n// on.\n";
    let [actors, verbs] = RULES.map(|(_, words)| words);
    assert_eq!(phrases(&prose(true, rust), actors), [(1, "who")]);
    assert_eq!(phrases(&prose(true, rust), verbs), [(6, "all the same"), (6, "goes on")]);
    let page = "A vote-by-whom\n\n```sh\nwho\n```\n\nIt stands\nbeside it: nobody's.\n";
    assert_eq!(phrases(&prose(false, page), actors), [(8, "nobody")]);
    assert_eq!(phrases(&prose(false, page), verbs), [(7, "stands"), (8, "beside")]);
}

#[test]
fn a_count_fails_above_its_row_and_below_it() {
    let places = |count: usize| (0..count).map(|line| format!("src/a/b.rs:{line}: who")).collect::<Vec<_>>();
    let found = BTreeMap::from([("src/a".to_owned(), [places(12), places(1)])]);
    let with = |one: usize, other: usize| BTreeMap::from([("src/a".to_owned(), [one, other])]);
    assert_eq!(judge(&with(12, 1), &found), Vec::<String>::new());
    let above = judge(&with(11, 1), &found);
    assert!(above.len() == 1 && above[0].contains("b.rs:9: who") && !above[0].contains("b.rs:10"), "{above:?}");
    assert!(judge(&with(13, 1), &found)[0].contains("lower the row to 12"));
    assert!(judge(&Rows::new(), &found).len() == 2 && judge(&with(12, 1), &BTreeMap::new()).len() == 2);
    assert_eq!(blessed("# head\nsrc/a 12 3\nsrc/b 1 0\n", &found).unwrap(), "# head\nsrc/a            12    1\n");
    assert_eq!(blessed("src/a 11 9\n", &found).unwrap_err(), "'name the actor' has 12 words in all, above 11");
}
