//! The core is pure: a decision is the same wherever and whenever its evidence is replayed.

use crate::tree::{root, rust_files};

/// Modules of the standard library that reach the operating system.
const NEVER: &[&str] = &["env", "fs", "io", "net", "os", "path", "process", "sync", "thread", "time"];

#[test]
fn the_core_has_no_clock_no_file_and_no_process() {
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
