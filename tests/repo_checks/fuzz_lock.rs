//! The fuzzers are a separate package with a lock file of its own, which only their build renews. CI does not build
//! them, so this test detects added and removed dependencies.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn text(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// Returns the names of the crates that `Cargo.toml` has in `[dependencies]`.
fn wanted() -> BTreeSet<String> {
    let manifest = text("Cargo.toml");
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())).filter(|name| !name.starts_with('#')).collect()
}

/// Returns the names of the crates that `fuzz/Cargo.lock` has as dependencies of the package tandem.
fn locked() -> BTreeSet<String> {
    let lock = text("fuzz/Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.contains("name = \"tandem\"\n")).unwrap();
    let names = package.lines().filter_map(|line| line.strip_prefix(" \"")?.split([' ', '"']).next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_fuzzers_lock_file_knows_every_dependency() {
    assert!(wanted().len() > 10);
    assert_eq!(locked(), wanted(), "type 'cargo metadata --manifest-path fuzz/Cargo.toml' to renew fuzz/Cargo.lock");
}
