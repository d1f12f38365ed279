//! The references in documents are valid: links and headings, files and folders (also in comments), make's targets,
//! tests and the lab's commands.

#![expect(clippy::disallowed_methods, reason = "a test runs the script that installs the documents")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tree::{below, of_kind, root};

/// The beginnings of paths in documents and comments. A word with another beginning is no path of this tree.
const TOP: &[&str] =
    &["src/", "tests/", "ocf/", "rpm/", "deb/", "metadata/", "shellspec/", "fuzz/", "docs/", ".ci/", ".cargo/"];
/// The suffixes of sources and documents. A name with another suffix may be a file of some machine.
const KINDS: &[&str] = &["rs", "md", "toml", "scn", "trace", "sh", "mk", "spec"];
/// The file names that contain capitals. Other words with capitals are placeholders.
const CAPITALS: &[&str] =
    &["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "Cargo.toml", "Cargo.lock", "SOURCE.txt"];

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the path and the text of every document.
fn documents() -> Vec<(PathBuf, String)> {
    let is_ours = |path: &PathBuf| !path.iter().any(|part| part == "fixtures");
    let paths = of_kind(root(), "md").into_iter().filter(is_ours);
    let found: Vec<_> = paths.map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect();
    assert!(found.len() >= 10, "{} documents", found.len());
    found
}

/// Returns a document's text without its blocks of code.
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

/// Returns the code in a document: its code spans, and every line of its blocks of code.
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

/// Returns the anchor that GitHub makes for a heading: lower case, hyphens for blanks, and no other signs.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn anchors(text: &str) -> Vec<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// Returns the targets of a document's links, as in `[words](target)`.
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

/// Asserts that the links of an installed document lead to files that are installed, too. The packages install the output of
/// `rpm/documents`.
#[test]
fn every_link_of_an_installed_document_leads_to_an_installed_one() {
    let place = tempfile::tempdir().unwrap();
    let installed = Command::new(root().join("rpm/documents")).arg(place.path()).status().unwrap();
    assert!(installed.success());
    let documents = of_kind(place.path(), "md");
    assert!(documents.contains(&place.path().join("docs/README.md")), "{documents:?}");
    let mut count = 0;
    for path in &documents {
        let text = fs::read_to_string(path).unwrap();
        for link in links(&text).iter().filter(|link| !link.starts_with("https://")) {
            let file = link.split('#').next().unwrap();
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", path.display());
            count += 1;
        }
    }
    assert!(count > 50, "{count} links");
}

/// Returns the comments of every file that is no document, with its path. A comment is a line that begins as one.
fn comments() -> Vec<(PathBuf, String)> {
    let is_comment = |line: &&str| line.starts_with("//") || line.starts_with('#') && !line.starts_with("#[");
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        Some((path, text.lines().map(str::trim_start).filter(is_comment).collect::<Vec<_>>().join("\n")))
    };
    let is_source = |path: &PathBuf| path.is_file() && path.extension().is_none_or(|kind| kind != "md");
    let sources = below(root()).into_iter().filter(is_source);
    sources.filter(|path| !path.iter().any(|part| part == "fixtures")).filter_map(text).collect()
}

/// Returns whether the word begins with a folder of this tree, and so is a path.
fn begins_here(word: &str) -> bool {
    TOP.iter().any(|top| word.starts_with(top))
}

/// Returns the words of a text that are paths of this tree: those that begin with a folder of [`TOP`]. With `names`, a mere
/// file name of a source or document counts, too. Words with capitals that no file has are placeholders.
fn paths(text: &str, names: bool) -> impl Iterator<Item = &str> {
    let between = |c: char| c.is_whitespace() || "`()[]\"'|,;:".contains(c);
    let words = text.split(between).map(|word| word.trim_end_matches(['.', '/']));
    let words = words.map(|word| word.trim_start_matches("./").trim_start_matches("../"));
    let is_blank = |part: &str| part.chars().any(|c| c.is_ascii_uppercase()) && !CAPITALS.contains(&part);
    words.filter(move |word| {
        let plain = !word.starts_with('/') && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        let kind = Path::new(word).extension().and_then(|kind| kind.to_str());
        let named = names && kind.is_some_and(|kind| KINDS.contains(&kind));
        plain && (begins_here(word) || named) && !word.split('/').any(is_blank)
    })
}

#[test]
fn every_path_in_the_text_is_there() {
    let files = below(root());
    // A name without its first folder is the end of some path, and the text gives the folder.
    let is_there = |word: &str, text: &Path| {
        root().join(word).exists()
            || text.parent().unwrap().join(word).exists()
            || !begins_here(word) && files.iter().any(|path| path.ends_with(word))
    };
    let mut missing = Vec::new();
    for (texts, names, at_least) in [(documents(), true, 100), (comments(), false, 20)] {
        let mut count = 0;
        for (path, text) in texts {
            for word in paths(&text, names) {
                count += 1;
                if !is_there(word, &path) {
                    missing.push(format!("{}: {word}", path.display()));
                }
            }
        }
        assert!(count > at_least, "{count} paths");
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Returns the word after `command` in each line of code that begins with `command`.
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
            // A variable's value may precede the target.
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

/// Asserts that each folder of `tests/` is a test program, or is described in the table of folders.
#[test]
fn every_folder_of_the_tests_is_a_program_or_has_a_row() {
    let rows = read("tests/README.md");
    let folders = fs::read_dir(root().join("tests")).unwrap().map(|entry| entry.unwrap().path());
    let others = folders.filter(|path| path.is_dir() && !path.join("main.rs").is_file());
    let names: Vec<String> = others.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    let without: Vec<&String> = names.iter().filter(|name| !rows.contains(&format!("| `{name}/` |"))).collect();
    assert!(without.is_empty(), "tests/README.md has no row for {without:?}");
    assert!(names.iter().any(|name| name == "support"), "{names:?}");
}
