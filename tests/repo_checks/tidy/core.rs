//! The core is pure: a decision is the same wherever and whenever its evidence is replayed.

use crate::tree::{root, rust_files};

/// The modules of the standard library that reach the operating system, which a pure core must not use.
const NEVER: &[&str] = &["env", "fs", "io", "net", "os", "path", "process", "sync", "thread", "time"];

/// Returns the lines of `text` outside of tests that name a module of [`NEVER`], with that module.
fn impure(text: &str) -> Vec<(usize, &'static str)> {
    let product = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = product.lines().enumerate().map(|(at, line)| (at + 1, line.split("//").next().unwrap_or_default()));
    code.filter_map(|(at, line)| {
        NEVER.iter().find(|module| line.contains(&format!("std::{module}"))).map(|module| (at, *module))
    })
    .collect()
}

/// Asserts that the core of `watchdog-mux` uses no clock, file or process. It gets time only as a duration, so that a step of
/// a clock cannot affect it.
#[test]
fn the_multiplexers_core_has_none_either() {
    let text = std::fs::read_to_string(root().join("src/watchdog/core.rs")).unwrap();
    let found = impure(&text.replacen("use std::time::Duration;\n", "\n", 1));
    assert!(found.is_empty() && !text.contains("crate::") && !text.contains("super::"), "{found:?}");
}

/// Asserts that the core of `fencing-agent` uses no clock, file or process. The same core runs in the daemon and in the
/// simulation, which has no clock and no socket.
#[test]
fn the_fencing_agents_core_has_none_either() {
    let files = rust_files(&root().join("src/fencing_agent/core"));
    let product = files.iter().filter(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs"));
    let mut count = 0;
    for path in product {
        count += 1;
        let text = std::fs::read_to_string(path).unwrap();
        // A duration and a shared name do not ask the operating system.
        let text = text.replacen("use std::time::Duration;\n", "\n", 1).replacen("use std::sync::Arc;\n", "\n", 1);
        let found = impure(&text);
        assert!(found.is_empty() && !text.contains("crate::"), "{}: {found:?}", path.display());
    }
    assert!(count > 10, "the core is not where this test looks for it");
}

#[test]
fn the_core_has_no_clock_no_file_and_no_process() {
    let core = root().join("src/decide");
    let files = rust_files(&core);
    assert!(files.len() > 30, "the core is not where this test looks for it");
    let mut wrong = Vec::new();
    for path in files.iter().filter(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs")) {
        let text = std::fs::read_to_string(path).unwrap();
        wrong.extend(impure(&text).iter().map(|(line, module)| format!("{}:{line}: std::{module}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
