//! Which folder of `src/` may import which other ones: the table is the design, from the ground floor up.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::Sources;
use crate::tree::{root, rust_files};

/// Each folder (or file) right below `src/`, and what it may import. A row imports only rows above it, which the test
/// looks at: nothing imports upward, and there is no circle.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("decide", &[]),
    ("os", &["decide"]),
    ("records", &["decide", "os"]),
    ("adapters", &["decide", "os", "records"]),
    ("agent", &["adapters", "decide", "os", "records"]),
    ("fence", &["adapters", "os", "records"]),
    ("operate", &["adapters", "agent", "decide", "fence", "os", "records"]),
    ("sim", &["agent", "decide", "os"]),
    ("admin", &["adapters", "agent", "decide", "fence", "operate", "os", "records", "sim"]),
    ("applet", &["admin", "agent", "fence", "os"]),
    ("lib", &[]),
];

fn top(module: &[String]) -> &str {
    module.first().map_or("lib", String::as_str)
}

#[test]
fn folders_import_only_what_they_may() {
    let sources = Sources::of_the_product();
    let mut imports: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    for (module, file) in &sources.files {
        let own = imports.entry(top(module)).or_default();
        for taken in sources.taken_by(module) {
            if top(&taken) != top(module) {
                own.entry(top(&taken).to_owned()).or_insert_with(|| file.path.display().to_string());
            }
        }
    }
    let mut wrong = Vec::new();
    let rows: BTreeMap<&str, &[&str]> = MAY_IMPORT.iter().copied().collect();
    for (folder, taken) in &imports {
        let Some(allowed) = rows.get(folder) else {
            let taken: Vec<&String> = taken.keys().collect();
            wrong.push(format!("{folder} is not in the table; it imports {taken:?}"));
            continue;
        };
        for (other, file) in taken {
            if !allowed.contains(&other.as_str()) {
                wrong.push(format!("src/{file} imports {other}, which {folder} may not"));
            }
        }
        for unused in allowed.iter().filter(|other| !taken.contains_key(**other)) {
            wrong.push(format!("{folder} does not import {unused} any more: strike it out of the table"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_has_no_upward_import() {
    let mut below = BTreeSet::new();
    for (folder, allowed) in MAY_IMPORT {
        for other in *allowed {
            assert!(below.contains(other), "{folder} may import {other}, whose row is not above it");
        }
        assert!(below.insert(*folder), "{folder} has two rows");
    }
}

/// Of the standard library the core takes what needs no operating system, so that a decision is the same wherever and
/// whenever its evidence is replayed.
#[test]
fn the_core_has_no_clock_no_file_and_no_process() {
    const NEVER: &[&str] = &["env", "fs", "io", "net", "os", "path", "process", "sync", "thread", "time"];
    let core = root().join("src/decide");
    let files = rust_files(&core);
    assert!(files.len() > 30, "the core is not where this test looks for it");
    let mut wrong = Vec::new();
    for path in files.iter().filter(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs")) {
        let text = std::fs::read_to_string(path).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in product.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let taken = NEVER.iter().find(|module| code.contains(&format!("std::{module}")));
            if let Some(module) = taken {
                wrong.push(format!("{}:{}: std::{module}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
