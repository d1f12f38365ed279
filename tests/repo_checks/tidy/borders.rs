//! Which wing of `src/` may import which others: the table is the plan of the wings, from the ground floor up.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::Sources;
use crate::tree::root;

/// Each folder (or file) right below `src/`, and what it imports. A row imports only rows above it: nothing imports
/// upward, and there is no circle. `docs/design/README.md` shows the same table to people.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("decide", &["base"]),
    ("os", &["base"]),
    ("records", &["base", "decide", "os"]),
    ("adapters", &["base", "decide", "os", "records"]),
    ("agent", &["adapters", "base", "decide", "os", "records"]),
    ("fence", &["adapters", "base", "os", "records"]),
    ("watchdog", &["adapters", "base", "os"]),
    ("fencing_agent", &["adapters", "base", "os"]),
    ("operate", &["adapters", "agent", "base", "decide", "fence", "os", "records"]),
    ("sim", &["agent", "base", "decide", "fence", "fencing_agent", "os"]),
    (
        "admin",
        &["adapters", "agent", "base", "decide", "fence", "fencing_agent", "operate", "os", "records", "watchdog"],
    ),
    ("applet", &["admin", "agent", "fence", "fencing_agent", "os", "watchdog"]),
];

fn top(module: &[String]) -> &str {
    module.first().map_or("lib", String::as_str)
}

#[test]
fn wings_import_only_what_they_may() {
    let sources = Sources::of_the_product();
    let mut imports: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    for (module, file) in sources.files.iter().filter(|(module, _)| !["lib", "bin"].contains(&top(module))) {
        let own = imports.entry(top(module)).or_default();
        for taken in sources.taken_by(module).iter().filter(|taken| top(taken) != top(module)) {
            own.entry(top(taken).to_owned()).or_insert_with(|| file.path.display().to_string());
        }
    }
    let mut wrong = Vec::new();
    let rows: BTreeMap<&str, &[&str]> = MAY_IMPORT.iter().copied().collect();
    for (wing, taken) in &imports {
        let Some(allowed) = rows.get(wing) else {
            wrong.push(format!("{wing} has no row; it imports {:?}", taken.keys()));
            continue;
        };
        for (other, file) in taken.iter().filter(|(other, _)| !allowed.contains(&other.as_str())) {
            wrong.push(format!("src/{file} imports {other}, which {wing} may not"));
        }
        for unused in allowed.iter().filter(|other| !taken.contains_key(**other)) {
            wrong.push(format!("{wing} does not import {unused} any more: delete it from the row"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_has_no_upward_import() {
    let mut below = BTreeSet::new();
    for (wing, allowed) in MAY_IMPORT {
        for other in *allowed {
            assert!(below.contains(other), "{wing} may import {other}, whose row is not above it");
        }
        assert!(below.insert(*wing), "{wing} has two rows");
    }
}

#[test]
fn the_design_page_shows_the_table() {
    let page = std::fs::read_to_string(root().join("docs/design/README.md")).unwrap();
    let shown: Vec<(String, String)> = page
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `src/")?.split(" | ");
            let wing = cells.next()?.split(['/', '.', '`']).next()?.to_owned();
            Some((wing, cells.nth(1)?.trim_end_matches('|').trim_end().to_owned()))
        })
        .collect();
    let rows = MAY_IMPORT.iter().map(|(wing, taken)| ((*wing).to_owned(), taken.join(", ")));
    assert_eq!(shown, rows.collect::<Vec<_>>(), "docs/design/README.md, its table of wings");
}
