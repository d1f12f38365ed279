//! No circles of imports between files, except between parent and child.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{Module, Sources};

/// Returns whether one of the two modules contains the other.
fn are_family(one: &Module, other: &Module) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns every group of files that all reach each other by imports.
fn circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<String>> {
    let reached = |from: &Module| {
        let mut found = BTreeSet::new();
        let mut open: Vec<&Module> = edges[from].iter().collect();
        while let Some(module) = open.pop() {
            if found.insert(module.clone()) {
                open.extend(&edges[module]);
            }
        }
        found
    };
    let all: BTreeMap<&Module, BTreeSet<Module>> = edges.keys().map(|module| (module, reached(module))).collect();
    let mut groups = BTreeSet::new();
    for (module, reach) in &all {
        let group: Vec<String> =
            reach.iter().filter(|other| all[other].contains(*module)).map(|other| other.join("::")).collect();
        if !group.is_empty() {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

#[test]
fn files_import_each_other_in_no_circle() {
    let sources = Sources::of_the_product();
    let edges = sources.files.keys().map(|module| {
        let taken = sources.taken_by(module).into_iter().filter(|other| !are_family(module, other));
        (module.clone(), taken.collect())
    });
    let found: Vec<String> = circles(&edges.collect()).iter().map(|group| group.join(", ")).collect();
    assert!(found.is_empty(), "these files import each other:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let edge = |from: &str, to: &[&str]| (module(from), to.iter().map(|name| module(name)).collect());
    let edges = BTreeMap::from([edge("a", &["b"]), edge("b", &["c"]), edge("c", &["b", "d"]), edge("d", &[])]);
    assert_eq!(circles(&edges), [["b", "c"]]);
}
