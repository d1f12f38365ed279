//! Every test that `tests/contract.md` names exists, and every line without one gives a reason.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use crate::greps::{Found, LOOKS};
use crate::tree::{root, rust_files};

fn everything() -> String {
    let files = ["src", "tests"].iter().flat_map(|directory| rust_files(&root().join(directory)));
    files.map(|file| fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn every_line_of_the_contract_has_its_test_or_its_reason() {
    let sources = everything();
    let table = include_str!("../contract.md");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| line "))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() > 40, "{} rows", rows.len());
    for row in rows {
        let [line, verdict, proof] = row.as_slice() else { panic!("three columns: {row:?}") };
        let is_test =
            |name: &&str| name.starts_with("lab:") || name.contains('_') && !name.contains(['/', ' ', '.', '=']);
        let named: Vec<&str> = proof.split('`').skip(1).step_by(2).filter(is_test).collect();
        if verdict.starts_with("kept") {
            assert!(!named.is_empty(), "{line}: kept, and no test shows it");
        } else {
            assert!(verdict.starts_with("different") && proof.len() > 20, "{line}: why?");
        }
        for name in named.iter().filter(|name| verdict.starts_with("kept") || name.matches('_').count() > 2) {
            let there = match name.strip_prefix("lab:") {
                Some(scenario) => sources.contains(&format!("\"{scenario}\"")),
                None => sources.contains(&format!("fn {name}()")),
            };
            assert!(there, "{line}: there is no test '{name}'");
        }
    }
}

#[test]
fn what_openshift_looks_for_and_does_not_find_has_its_line() {
    let lines: Vec<&str> = include_str!("../contract.md").lines().collect();
    for look in LOOKS {
        assert!(look.from.contains('/') && look.from.split_whitespace().count() > 1, "where is {} from?", look.command);
        match look.found {
            Found::Differently(line) => {
                let row = format!("| {line} | different | ");
                assert!(lines.iter().any(|line| line.starts_with(&row)), "no line '{row}' says why: {}", look.command);
            }
            Found::Elsewhere(why) => assert!(why.len() > 20, "why not here: {}", look.command),
            Found::Everywhere | Found::OnTheSecond | Found::Nowhere => {}
        }
    }
    // Every text that OpenShift greps in Pacemaker's log is in a line of the contract, kept or not.
    let in_the_log = |look: &&crate::greps::Look| look.command.starts_with("LOG") && look.found != Found::Nowhere;
    for look in LOOKS.iter().filter(in_the_log) {
        let words = look.command.split('\'').nth(1).unwrap();
        let words = words.split(" /").next().unwrap();
        assert!(lines.iter().any(|line| line.contains(words)), "tests/contract.md does not know '{words}'");
    }
}
