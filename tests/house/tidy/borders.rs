//! Which folder of `src/` may import which other ones: the table is the design, from the ground floor up.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::Sources;
use crate::tree::{root, rust_files};

/// Each folder (or file) right below `src/`, and what it may import. A row imports only rows above it, which the test
/// looks at: nothing imports upward, and there is no circle.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    // The pure core: facts in, effects out. No clock, no file, no process.
    ("decide", &[]),
    // The ground floor: the operating system and plain formats.
    ("clock", &["decide"]),
    ("hexadecimal", &[]),
    ("logging", &[]),
    ("ofd_lock", &[]),
    ("output", &[]),
    ("proc", &[]),
    ("regular_file", &[]),
    ("version", &[]),
    ("wiped", &["regular_file"]),
    ("xml", &[]),
    ("options", &["xml"]),
    ("terminate", &["clock"]),
    ("test_port", &["clock"]),
    // Steps that a build for the lab can leave out.
    ("lab_faults", &["clock"]),
    // Files of the agent's own.
    ("state_file", &["decide", "lab_faults", "regular_file"]),
    // How long a question may take, and the programs that are asked.
    ("pace", &["clock", "decide", "state_file"]),
    ("command", &["clock", "pace"]),
    ("failed_starts", &["decide", "state_file"]),
    ("decision_log", &["clock", "decide"]),
    // One outside program or format each.
    ("data_dir", &["clock", "decide", "lab_faults", "terminate", "ofd_lock", "proc", "regular_file"]),
    ("etcd", &["clock", "decide", "options", "regular_file", "wiped"]),
    ("openshift", &["decide", "etcd", "regular_file", "state_file", "wiped"]),
    ("ocf", &["decide", "options", "xml"]),
    ("pacemaker", &["clock", "command", "decide", "ocf", "options", "pace", "regular_file", "xml"]),
    (
        "podman",
        &["clock", "command", "decide", "terminate", "state_file", "ocf", "ofd_lock", "pace", "proc", "regular_file"],
    ),
    // The resource as it is configured on this node.
    (
        "resource",
        &[
            "clock",
            "command",
            "decide",
            "etcd",
            "state_file",
            "ocf",
            "openshift",
            "options",
            "pace",
            "pacemaker",
            "podman",
            "proc",
        ],
    ),
    // The model around the pure core; of the resource it takes the actions' times.
    ("sim", &["clock", "decide", "resource"]),
    // BMCs, and how anything is reached over TLS.
    ("redfish", &["clock"]),
    ("bmc_note", &[]),
    // Certificates of one's own: made, kept and replaced.
    ("pki", &["decide", "etcd", "hexadecimal", "state_file", "ofd_lock", "wiped"]),
    // The cluster as it can be known from one node, and what that means.
    (
        "cluster",
        &[
            "bmc_note",
            "clock",
            "command",
            "data_dir",
            "decide",
            "etcd",
            "options",
            "pace",
            "pacemaker",
            "redfish",
            "regular_file",
            "resource",
            "version",
        ],
    ),
    ("health", &["bmc_note", "cluster", "decide", "options", "pacemaker", "pki", "redfish"]),
    // What happened, and who is told of it.
    (
        "events",
        &[
            "hexadecimal",
            "clock",
            "cluster",
            "command",
            "decide",
            "state_file",
            "ocf",
            "ofd_lock",
            "options",
            "pacemaker",
            "redfish",
            "regular_file",
        ],
    ),
    // The resource agent: facts, effects, rounds.
    (
        "observe",
        &[
            "clock",
            "data_dir",
            "decide",
            "etcd",
            "failed_starts",
            "state_file",
            "openshift",
            "pace",
            "pacemaker",
            "podman",
            "proc",
            "resource",
        ],
    ),
    (
        "act",
        &[
            "clock",
            "command",
            "data_dir",
            "decide",
            "etcd",
            "failed_starts",
            "lab_faults",
            "state_file",
            "openshift",
            "pace",
            "pacemaker",
            "podman",
            "decision_log",
            "resource",
        ],
    ),
    (
        "agent",
        &[
            "act",
            "clock",
            "command",
            "data_dir",
            "decide",
            "etcd",
            "events",
            "logging",
            "state_file",
            "observe",
            "ocf",
            "output",
            "pace",
            "pacemaker",
            "podman",
            "proc",
            "decision_log",
            "regular_file",
            "resource",
        ],
    ),
    // The fence agent.
    (
        "fence",
        &[
            "bmc_note",
            "clock",
            "command",
            "logging",
            "state_file",
            "ofd_lock",
            "options",
            "redfish",
            "regular_file",
            "wiped",
            "xml",
        ],
    ),
    // What monitoring is told.
    ("metrics", &["bmc_note", "cluster", "decide", "health", "pacemaker", "state_file"]),
    // From two machines to two voters.
    (
        "setup",
        &[
            "hexadecimal",
            "bmc_note",
            "clock",
            "cluster",
            "command",
            "decide",
            "etcd",
            "fence",
            "openshift",
            "options",
            "pacemaker",
            "pki",
            "podman",
            "redfish",
            "regular_file",
            "state_file",
            "wiped",
        ],
    ),
    // The operator's commands, and the binary's names.
    (
        "admin",
        &[
            "hexadecimal",
            "agent",
            "bmc_note",
            "clock",
            "cluster",
            "command",
            "data_dir",
            "decide",
            "etcd",
            "events",
            "fence",
            "health",
            "logging",
            "metrics",
            "regular_file",
            "state_file",
            "observe",
            "ocf",
            "ofd_lock",
            "openshift",
            "options",
            "output",
            "pace",
            "pacemaker",
            "pki",
            "podman",
            "decision_log",
            "regular_file",
            "resource",
            "setup",
            "sim",
            "redfish",
            "version",
            "wiped",
        ],
    ),
    ("applet", &["admin", "agent", "fence", "output", "version"]),
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
