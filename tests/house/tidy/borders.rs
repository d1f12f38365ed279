//! Which folder of `src/` may import which other ones: the table is the design, from the ground floor up.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::Sources;
use crate::tree::{root, rust_files};

/// Each folder (or file) right below `src/`, and what it may import. A row imports only rows above it, which the test
/// looks at: nothing imports upward, and there is no circle.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("decide", &[]),
    ("xml", &[]),
    ("options", &["xml"]),
    ("os", &["decide"]),
    ("data_dir", &["decide", "os"]),
    ("etcd", &["decide", "options", "os"]),
    ("ocf", &["decide", "options", "xml"]),
    ("records", &["decide", "os"]),
    ("redfish", &["os"]),
    ("openshift", &["decide", "etcd", "os", "records"]),
    ("pace", &["decide", "os", "records"]),
    ("pki", &["decide", "etcd", "os", "records"]),
    ("command", &["os", "pace"]),
    ("fence", &["command", "options", "os", "records", "redfish", "xml"]),
    ("pacemaker", &["command", "decide", "ocf", "options", "os", "pace", "xml"]),
    ("podman", &["command", "decide", "ocf", "os", "pace", "records"]),
    (
        "resource",
        &["command", "decide", "etcd", "ocf", "openshift", "options", "os", "pace", "pacemaker", "podman", "records"],
    ),
    (
        "act",
        &[
            "command",
            "data_dir",
            "decide",
            "etcd",
            "openshift",
            "os",
            "pace",
            "pacemaker",
            "podman",
            "records",
            "resource",
        ],
    ),
    (
        "cluster",
        &[
            "command",
            "data_dir",
            "decide",
            "etcd",
            "options",
            "os",
            "pace",
            "pacemaker",
            "records",
            "redfish",
            "resource",
        ],
    ),
    (
        "observe",
        &["data_dir", "decide", "etcd", "openshift", "os", "pace", "pacemaker", "podman", "records", "resource"],
    ),
    ("sim", &["decide", "os", "resource"]),
    (
        "agent",
        &[
            "act",
            "command",
            "data_dir",
            "decide",
            "etcd",
            "observe",
            "ocf",
            "os",
            "pace",
            "pacemaker",
            "podman",
            "records",
            "resource",
        ],
    ),
    ("health", &["cluster", "decide", "options", "pacemaker", "pki", "records", "redfish"]),
    ("operate", &["cluster", "command", "decide", "ocf", "options", "os", "pacemaker", "records", "redfish"]),
    (
        "setup",
        &[
            "cluster",
            "command",
            "decide",
            "etcd",
            "fence",
            "openshift",
            "options",
            "os",
            "pacemaker",
            "pki",
            "podman",
            "records",
            "redfish",
        ],
    ),
    ("metrics", &["cluster", "decide", "health", "pacemaker", "records"]),
    (
        "admin",
        &[
            "agent",
            "cluster",
            "command",
            "data_dir",
            "decide",
            "etcd",
            "fence",
            "health",
            "metrics",
            "observe",
            "ocf",
            "openshift",
            "operate",
            "options",
            "os",
            "pace",
            "pacemaker",
            "pki",
            "podman",
            "records",
            "redfish",
            "resource",
            "setup",
            "sim",
        ],
    ),
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
