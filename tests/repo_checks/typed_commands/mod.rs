//! Every command that is printed for an operator works as typed. `tandem` accepts its arguments, every other program is
//! in a package that ours require or recommend, and the table names the lab's scenario that types it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod programs;
mod sources;
mod table;

use std::collections::BTreeSet;
use std::fs;

use crate::tree::{root, rust_files};

/// Splits a line into the commands that a shell would run, and each command into words. It supports only the quotes that
/// printed commands have.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.split(" #").next().unwrap_or_default();
    let mut all = vec![Vec::new()];
    let mut word = String::new();
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' | '"' => is_quoted = !is_quoted,
            _ if is_quoted => word.push(letter),
            ' ' | ';' | '&' | '|' => {
                all.last_mut().unwrap().extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                if letter != ' ' && !all.last().unwrap().is_empty() {
                    all.push(Vec::new());
                }
            }
            _ => word.push(letter),
        }
    }
    all.last_mut().unwrap().extend(Some(word).filter(|word| !word.is_empty()));
    all.retain(|words| !words.is_empty());
    all
}

/// Returns a word of a command with valid values in place of the template's holes and the guide's placeholders.
fn filled(word: &str) -> String {
    let word = word.replace("{}", "node2");
    if ["NUMBER", "COUNT", "SECONDS", "TERM", "INDEX"].contains(&word.as_str()) { "3".to_owned() } else { word }
}

/// Returns what is wrong with a command line, or `None` if it works as typed.
fn fault(line: &str) -> Option<String> {
    commands(line).iter().find_map(|words| {
        let words: Vec<String> = words.iter().map(|word| filled(word)).collect();
        let mut words: &[String] = &words;
        // These programs run the words after them, here or on another node.
        loop {
            match words {
                [first, rest @ ..] if first == "sudo" => words = rest,
                [first, flag, _, rest @ ..] if first == "ssh" && flag == "-t" => words = rest,
                [first, _, rest @ ..] if first == "ssh" => words = rest,
                _ => break,
            }
        }
        let (program, rest) = words.split_first()?;
        if program == "tandem" {
            let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
            return tandem::admin::misused(&rest).map(|why| format!("'{line}': {}", why.lines().next().unwrap_or("")));
        }
        let known = programs::package_of(program).is_some();
        (!known).then(|| format!("'{line}': no package is known that has the program {program}"))
    })
}

#[test]
fn every_printed_command_is_one_that_can_be_typed() {
    let found = sources::templates();
    assert!(found.len() > 40, "only {} commands were found in src/operate/health", found.len());
    let faults: Vec<String> = found.iter().filter_map(|template| fault(template)).collect();
    assert!(faults.is_empty(), "these commands of 'tandem status' do not work as typed:\n{}", faults.join("\n"));
}

#[test]
fn every_command_of_the_guide_is_one_that_can_be_typed() {
    let found = sources::remedies();
    assert!(found.len() > 400, "only {} commands were found in the guide", found.len());
    let faults: BTreeSet<String> = found.iter().filter_map(|line| fault(line)).collect();
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "these commands of the guide do not work as typed:\n{}", faults.join("\n"));
}

/// Asserts that the commands in the guide's sentences exist. A sentence may name a command without all of its arguments, but
/// those that it has must be valid.
#[test]
fn every_command_that_a_sentence_quotes_is_one_that_there_is() {
    let found = sources::quoted();
    assert!(found.len() > 30, "only {} commands were found in the sentences of the guide", found.len());
    let is_incomplete = |fault: &String| !fault.contains("': error: ") || fault.contains("required arguments");
    let faults: Vec<String> =
        found.iter().filter_map(|line| fault(line)).filter(|fault| !is_incomplete(fault)).collect();
    assert!(faults.is_empty(), "these commands in sentences of the guide do not exist:\n{}", faults.join("\n"));
}

/// Asserts that the table has a row for each printed command, and no other rows. A printed command without a row would be tested by no
/// scenario.
#[test]
fn the_table_has_every_printed_command_and_what_types_it() {
    let found: BTreeSet<String> = sources::templates().into_iter().collect();
    let rows: BTreeSet<String> = table::ROWS.iter().map(|(template, _)| (*template).to_owned()).collect();
    let without: Vec<&String> = found.difference(&rows).collect();
    assert!(without.is_empty(), "tests/repo_checks/typed_commands/table.rs has no row for {without:#?}");
    let stale: Vec<&String> = rows.difference(&found).collect();
    assert!(stale.is_empty(), "nothing prints these commands of the table any more: {stale:#?}");
    let lab: String = rust_files(&root().join("tests/lab/scenarios"))
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .filter(|text| text.contains("SCENARIOS"))
        .collect();
    let typed_there = |scenario: &str, template: &str| {
        let begins = template.split("{}").next().unwrap_or_default();
        let file = root().join(format!("tests/lab/scenarios/knowing/{scenario}.rs"));
        fs::read_to_string(file).unwrap().contains(&format!("(\"{begins}"))
    };
    for (template, typed) in table::ROWS {
        let (table::Typed::By(scenario) | table::Typed::Healthy(scenario)) = typed else { continue };
        assert!(lab.contains(&format!("\"{scenario}\"")), "{template}: there is no scenario {scenario}");
        if matches!(typed, table::Typed::Healthy(_)) {
            assert!(typed_there(scenario, template), "{template}: {scenario} does not type it");
        }
    }
}

/// Asserts that our Debian package and RPM require or recommend the package of each program that a printed command uses.
#[test]
fn every_program_comes_with_a_package_that_ours_name() {
    let deb = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let rpm = fs::read_to_string(root().join("rpm/tandem.spec")).unwrap();
    for program in programs::ALL {
        let (programs::Package::Named { deb: in_deb, rpm: in_rpm }, names) = (program.package, program.names) else {
            continue;
        };
        let line = |text: &str, begins: &[&str], package: &str| {
            let lines = text.lines().filter(|line| begins.iter().any(|begin| line.starts_with(begin)));
            lines.into_iter().any(|line| line.split([' ', ',', '"']).any(|word| word == package))
        };
        assert!(
            line(&deb, &["depends = ", "recommends = "], in_deb),
            "{names:?}: the Debian package does not name {in_deb}"
        );
        assert!(line(&rpm, &["Requires:", "Recommends:"], in_rpm), "{names:?}: the RPM does not name {in_rpm}");
    }
}

#[test]
fn a_slip_is_found() {
    assert_eq!(fault("tandem space --reclaim && tandem status"), None);
    assert_eq!(fault("ssh -t node2 tandem fencing update node2"), None);
    for wrong in ["tandem spaces", "tandem space --reclam", "sudo tandem explain --loud", "tandem status; etcdcontrol"]
    {
        assert!(fault(wrong).is_some(), "{wrong}");
    }
    assert_eq!(commands("a 'b c' && d; e"), [vec!["a", "b c"], vec!["d"], vec!["e"]]);
}
