//! Files on one topic: none above 450 lines. Functions above 70 lines are found by clippy (`clippy.toml`); those that it
//! is told to let pass are listed here.

use crate::tree::{root, rust_files};

const LONGEST_FILE: usize = 450;

/// Files that are longer, with the lines that they may have and why. The list only ever gets shorter.
const LONGER_FILES: &[(&str, usize, &str)] = &[];

/// Files with functions that clippy lets pass, how many, and why.
const LONGER_FUNCTIONS: &[(&str, usize, &str)] = &[
    ("src/decide/reason/refusal.rs", 1, "tables of sentences, a line for each refusal"),
    ("src/decide/reason/words.rs", 1, "a table of sentences, a line for each rule"),
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
    let mut wrong = Vec::new();
    let files = files();
    for (name, text) in &files {
        let lines = text.lines().count();
        let listed = LONGER_FILES.iter().find(|(file, ..)| file == name).map(|(_, most, _)| *most);
        match listed {
            None if lines > LONGEST_FILE => {
                wrong.push(format!("{name} has {lines} lines, above {LONGEST_FILE}: split it along its topics"));
            }
            Some(most) if lines > most => {
                wrong.push(format!("{name} has grown to {lines} lines, above its {most}: split it along its topics"));
            }
            Some(_) if lines <= LONGEST_FILE => {
                wrong.push(format!("{name} has {lines} lines: strike it out of the list"));
            }
            Some(_) | None => {}
        }
    }
    for (file, ..) in LONGER_FILES {
        if !files.iter().any(|(name, _)| name == file) {
            wrong.push(format!("{file} is gone: strike it out of the list"));
        }
    }
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
