//! `tests/model/scenarios/README.md` maps every situation of the catalogue to its tests. These checks find a missing number,
//! and a name that does not exist.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::tree::{root, rust_files};

/// The number of situations in the catalogue of `tests/model/scenarios/README.md`.
const SITUATIONS: usize = 128;
/// The beginnings of a catalogue's row that names no test.
const WITHOUT_A_TEST: [&str; 2] = ["cannot occur: ", "open: "];

struct Row {
    number: usize,
    /// The text of the row's last column, which names the tests of the situation.
    cover: String,
}

impl Row {
    /// Returns the names of tests in the row, which are in backticks.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.cover.split('`').skip(1).step_by(2)
    }
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("tests/model/scenarios/README.md")).unwrap();
    let cells = text.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let row = |cells: Vec<&str>| match cells[..] {
        ["", number, situation, cover, ""] if !situation.is_empty() => {
            Some(Row { number: number.parse().ok()?, cover: cover.to_owned() })
        }
        _ => None,
    };
    cells.filter_map(row).collect()
}

/// Returns the names of all test functions below `dir`. Such a function follows a `#[test]`, with attributes in between.
fn test_functions(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in rust_files(dir) {
        let text = fs::read_to_string(&path).unwrap();
        for rest in text.split("#[test]\n").skip(1) {
            let function = rest.lines().map(str::trim).find(|line| !line.starts_with("#[")).unwrap_or_default();
            let name = function.strip_prefix("fn ").and_then(|rest| rest.split_once('('));
            found.extend(name.map(|(name, _)| name.to_owned()));
        }
    }
    found
}

fn exists(name: &str, functions: &BTreeSet<String>, lab: &str) -> bool {
    match name.split_once('/') {
        Some(("lab", scenario)) => lab.contains(&format!("\"{scenario}\"")),
        Some(("model", scenario)) => root().join(format!("tests/model/scenarios/{scenario}.scn")).is_file(),
        Some(("golden", story)) => root().join(format!("tests/data/golden/decisions/{story}.txt")).is_file(),
        Some(_) => false,
        None => functions.contains(name),
    }
}

#[test]
fn every_situation_of_the_catalogue_has_its_row() {
    let numbers: Vec<usize> = rows().iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=SITUATIONS).collect::<Vec<_>>());
}

/// Returns the name of each scenario of the model, with the numbers of the situations that the scenario's comment names.
fn scenarios_of_the_model() -> Vec<(String, Vec<usize>)> {
    let files = fs::read_dir(root().join("tests/model/scenarios")).unwrap().map(|file| file.unwrap().path());
    let scenarios = files.filter(|path| path.extension().is_some_and(|extension| extension == "scn"));
    scenarios
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let covers = text.lines().find(|line| line.starts_with("# Covers: ")).unwrap_or_default();
            let numbers = covers.split("scenario ").skip(1).filter_map(|rest| {
                let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
                digits.parse().ok()
            });
            (path.file_stem().unwrap().to_string_lossy().into_owned(), numbers.collect())
        })
        .collect()
}

#[test]
fn what_a_scenario_of_the_model_is_about_is_said_in_its_rows() {
    let rows = rows();
    let mut wrong = Vec::new();
    for (name, numbers) in scenarios_of_the_model() {
        let named = format!("model/{name}");
        let missing = numbers.iter().filter(|number| !rows[**number - 1].names().any(|other| other == named));
        wrong.extend(missing.map(|number| format!("{number}: '{named}' is not named")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn everything_that_a_row_names_exists() {
    let functions = ["src", "tests"].iter().flat_map(|dir| test_functions(&root().join(dir))).collect();
    let lab: String = rust_files(&root().join("tests/lab/scenarios"))
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .filter(|text| text.contains("SCENARIOS"))
        .collect();
    let mut wrong = Vec::new();
    for row in rows() {
        let missing = row.names().filter(|name| !exists(name, &functions, &lab));
        wrong.extend(missing.map(|name| format!("{}: there is no '{name}'", row.number)));
        if row.names().count() == 0 && !WITHOUT_A_TEST.iter().any(|words| row.cover.starts_with(words)) {
            wrong.push(format!("{}: neither a test nor a reason", row.number));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
