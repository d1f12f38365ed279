//! The table of options in `options.md`, checked against the agent and against the tests that it names.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use crate::bmc::agent::Call;
use crate::race;
use crate::tree::{root, rust_files};
use tandem::fence::options::{by_name, rows as options};

/// Returns the rows of the table in `options.md` with a first heading that begins with `heading`.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let text = include_str!("options.md");
    let table = text.split_once(&format!("\n| {heading} |")).unwrap().1;
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

fn original() -> Vec<Vec<String>> {
    rows("fence_redfish 4.17")
}

#[test]
fn every_name_of_the_original_is_taken() {
    let names = original();
    assert_eq!(names.len(), 37);
    for row in &names {
        let (_, taken) = by_name(&row[0]).unwrap_or_else(|| panic!("{} is not taken", row[0]));
        assert_eq!(taken.name, row[1], "{}", row[0]);
    }
}

#[test]
fn metadata_declares_every_name_with_its_relation() {
    let output = Call::bare("metadata").run();
    let document = roxmltree::Document::parse(&output.stdout).unwrap();
    let parameter = |name: &str| {
        document.descendants().find(|node| node.has_tag_name("parameter") && node.attribute("name") == Some(name))
    };
    for row in original() {
        // These are no parameters of a fence device, because there they would count as successful fencing.
        if ["help", "version"].contains(&row[0].as_str()) {
            assert!(parameter(&row[0]).is_none(), "{}", row[0]);
            continue;
        }
        let declared = parameter(&row[0]).unwrap_or_else(|| panic!("{} is not declared", row[0]));
        if row[0] == row[1] {
            assert_eq!(declared.attribute("deprecated"), None, "{}", row[0]);
        } else {
            assert_eq!(declared.attribute("deprecated"), Some("1"), "{}", row[0]);
            assert_eq!(parameter(&row[1]).unwrap().attribute("obsoletes"), Some(row[0].as_str()));
        }
    }
}

#[test]
fn every_option_has_its_row_and_every_row_its_tests() {
    let (original, own) = (original(), rows("ours"));
    for option in options() {
        let in_original = original.iter().any(|row| row[1] == option.name);
        let in_own = own.iter().any(|row| row[0] == option.name);
        assert!(in_original != in_own, "{} must be in one of the tables", option.name);
    }
    let files = ["src", "tests"].iter().flat_map(|directory| rust_files(&root().join(directory)));
    let code: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for row in original.iter().chain(&own) {
        let tests = row.last().unwrap();
        assert!(!tests.is_empty(), "{row:?}");
        for test in tests.split(", ") {
            assert!(code.contains(&format!("fn {test}()")), "there is no test {test}");
        }
    }
}

/// Asserts that each fault of the options of the fence race fails the agent with a sentence of its own.
#[test]
fn every_fault_of_the_options_has_its_sentence() {
    let bmcs = [race::shown(), race::shown()];
    let call = || race::call(&bmcs, 0, "off").set("verbose", "0");
    call().without("race_preferred").run().fails(&["race_preferred is missing"]);
    call().set("race_with", "192.0.2.1,colour=red").run().fails(&["race_with has 'colour=red'", "fingerprint="]);
    call().set("race_with", "192.0.2.1,fingerprint=xyz").run().fails(&["race_with:"]);
    call().set("race_delay", "2").run().fails(&["race_delay"]);
    call().set("action_timeout", "20").run().fails(&["race_delay=3 needs an action_timeout of 33 s at least"]);
    let pinned =
        call().without("ssl_ca_file").set("ssl_fingerprint", &bmcs[1].fingerprint).set("race_with", "192.0.2.1");
    pinned.run().fails(&["race_with needs fingerprint="]);
}
