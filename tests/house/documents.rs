//! The documents lead where they say: links and headings, files and folders, make's targets, tests and the lab's commands.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours to read.
const NOT_OURS: &[&str] = &["target", ".git", "fixtures"];
/// What paths in the text begin with; a word that begins otherwise is no path of this tree.
const TOP: &[&str] = &["src/", "tests/", "ocf/", "rpm/", "deb/", "metadata/", "shellspec/", "fuzz/", "docs/"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every document, and its text.
fn documents() -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !NOT_OURS.contains(&name.as_str()) {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(root(), &mut found);
    assert!(found.len() >= 10, "{} documents", found.len());
    found
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// What stands between backticks in the prose, and every line of the blocks of code.
fn code(text: &str) -> Vec<String> {
    let prose = prose(text);
    let inline = prose.split('`').skip(1).step_by(2).map(|words| words.replace('\n', " "));
    let mut inside = false;
    let mut lines: Vec<String> = inline.collect();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if inside || line.starts_with("    ") {
            lines.push(line.trim().to_owned());
        }
    }
    lines
}

/// The name that a heading gets, as forges make it: small letters, blanks to hyphens, no other signs.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn anchors(text: &str) -> Vec<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// The targets of `[words](target)`.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut count = 0;
    for (path, text) in documents() {
        for link in links(&text).iter().filter(|link| !link.starts_with("https://")) {
            count += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let known = || anchors(&fs::read_to_string(&target).unwrap()).contains(&heading.to_owned());
            if !target.exists() || !heading.is_empty() && !known() {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(count > 10, "{count} links");
}

#[test]
fn every_path_in_the_text_is_there() {
    let mut missing = Vec::new();
    for (path, text) in documents() {
        for words in code(&text) {
            for word in words.split_whitespace() {
                let word = word.trim_start_matches("../").trim_end_matches([':', ',', ';']);
                let ours = TOP.iter().any(|top| word.starts_with(top));
                // A pattern, a place to fill in, or a place in a package.
                let literal = !word.contains(['*', '<', '(', '=']) && !word.chars().any(|c| c.is_ascii_uppercase());
                if ours && literal && !root().join(word).exists() {
                    missing.push(format!("{}: {word}", path.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The word that follows `command ` in each line of code that begins with it.
fn words_after<'a>(lines: &'a [String], command: &str) -> Vec<&'a str> {
    let rests = lines.iter().filter_map(|line| line.strip_prefix(command));
    let words = rests.filter_map(|rest| rest.split_whitespace().next());
    words.map(|word| word.trim_end_matches([')', ',', ';'])).collect()
}

#[test]
fn every_command_in_the_text_is_one() {
    let makefile = read("Makefile") + &read("rpm/package.mk");
    let lab = read("tests/lab/cli.rs") + &read("tests/lab/main.rs");
    let manifest = read("Cargo.toml");
    let mut unknown = Vec::new();
    for (path, text) in documents() {
        let lines = code(&text);
        let here = path.display();
        for target in words_after(&lines, "make ") {
            // A variable's value may stand before the target.
            if !target.contains('=') && !makefile.contains(&format!("\n{target}:")) {
                unknown.push(format!("{here}: make {target}"));
            }
        }
        for verb in words_after(&lines, "cargo lab ").into_iter().filter(|verb| !verb.starts_with(['-', '.'])) {
            if !lab.contains(&format!("\"{verb}\"")) {
                unknown.push(format!("{here}: cargo lab {verb}"));
            }
        }
        for test in words_after(&lines, "cargo test --test ") {
            let file = root().join("tests").join(test);
            let listed = manifest.contains(&format!("name = \"{test}\""));
            if !listed && !file.with_extension("rs").exists() && !file.join("main.rs").exists() {
                unknown.push(format!("{here}: --test {test}"));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}
