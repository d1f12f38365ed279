//! The imports that each wing (a folder or file of `src/`) may have. The table is the plan of the wings, from the
//! ground floor up.

use std::collections::BTreeMap;

use super::sources::Sources;
use crate::tree::root;

/// The folders and files of `src/`, each with the imports that it may have. A row may import only rows above it.
/// `docs/design/README.md` shows this table.
const MAY_IMPORT: &[(&str, &str)] = &[
    ("base", ""),
    ("decide", "base"),
    ("os", "base"),
    ("records", "base decide os"),
    ("adapters", "base decide os records"),
    ("agent", "adapters base decide os records"),
    ("fence", "adapters base os records"),
    ("watchdog", "adapters base os"),
    ("fencing_agent", "adapters base os"),
    ("operate", "adapters agent base decide fence os records"),
    ("sim", "agent base decide fence fencing_agent os"),
    ("admin", "adapters agent base decide fence fencing_agent operate os records watchdog"),
    ("applet", "admin agent fence fencing_agent os watchdog"),
];

fn top(module: &[String]) -> &str {
    module.first().map_or("lib", String::as_str)
}

#[test]
fn wings_import_only_what_they_may() {
    let (sources, mut imports) = (Sources::of_the_product(), BTreeMap::<&str, BTreeMap<String, String>>::new());
    for (module, file) in sources.files.iter().filter(|(module, _)| !["lib", "bin"].contains(&top(module))) {
        let taken = sources.taken_by(module);
        let others = taken.iter().map(|taken| top(taken)).filter(|other| *other != top(module));
        let wing = imports.entry(top(module)).or_default();
        wing.extend(others.map(|other| (other.to_owned(), file.path.display().to_string())));
    }
    let mut wrong = Vec::new();
    for (wing, taken) in &imports {
        let Some((_, row)) = MAY_IMPORT.iter().find(|(name, _)| name == wing) else {
            wrong.push(format!("{wing} has no row; it imports {:?}", taken.keys()));
            continue;
        };
        let allowed: Vec<&str> = row.split_whitespace().collect();
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
    for (index, (wing, row)) in MAY_IMPORT.iter().enumerate() {
        let above: Vec<&str> = MAY_IMPORT[..index].iter().map(|(name, _)| *name).collect();
        assert!(!above.contains(wing), "{wing} has two rows");
        assert!(row.split_whitespace().all(|other| above.contains(&other)), "{wing} imports upward");
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
    let rows: Vec<_> = MAY_IMPORT.iter().map(|(wing, row)| ((*wing).to_owned(), row.replace(' ', ", "))).collect();
    assert_eq!(shown, rows, "docs/design/README.md, its table of wings");
}
