//! Files with one topic: none above 450 lines. Clippy finds functions above 70 lines (`clippy.toml`); the permitted
//! ones are listed here.

use crate::tree::{root, rust_files};

const LONGEST_FILE: usize = 450;

/// The files with functions that an attribute exempts from clippy's limit of length, the number of these functions, and the
/// reason.
const LONGER_FUNCTIONS: &[(&str, usize, &str)] = &[
    ("src/decide/reason/refusal.rs", 1, "tables of sentences, a line for each refusal"),
    ("src/decide/reason/words.rs", 1, "a table of sentences, a line for each rule"),
    ("src/sim/model/view.rs", 1, "each field of a state is named, whether or not an agent sees it"),
    ("src/sim/model/world.rs", 1, "each field of a state is named, whether or not it is hashed"),
];

fn files() -> Vec<(String, String)> {
    let paths = ["src", "tests"].iter().flat_map(|dir| rust_files(&root().join(dir)));
    let named = |path: std::path::PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        (name, std::fs::read_to_string(&path).unwrap())
    };
    paths.map(named).collect()
}

#[test]
fn no_file_outgrows_its_topic() {
    let longer = files().into_iter().map(|(name, text)| (name, text.lines().count()));
    let wrong: Vec<String> = longer
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(name, lines)| format!("{name} has {lines} lines, above {LONGEST_FILE}: split it along its topics"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_function_is_let_pass_that_is_not_listed() {
    let lint = concat!("clippy::too_many", "_lines");
    let found: Vec<(String, usize)> = files()
        .into_iter()
        .map(|(name, text)| (name, text.matches(lint).count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let listed: Vec<(String, usize)> =
        LONGER_FUNCTIONS.iter().map(|(file, count, _)| ((*file).to_owned(), *count)).collect();
    assert_eq!(found, listed, "functions above 70 lines: split them along their steps");
}
