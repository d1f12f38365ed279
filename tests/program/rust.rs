//! `make setup` checks for Rust before it installs anything else, and installs Rust if it is missing.

#![expect(clippy::disallowed_methods, reason = "the tests start the scripts as make does")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::executable;

/// The version of Rust in Debian 12, which is too old.
const OLD: &str = "1.63.0";

/// A machine with fake programs that record their calls.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    /// Returns a machine with Debian 12's cargo, without a package of rustup, and with the user id `id`.
    fn new(id: u32) -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(machine.home().join("bin")).unwrap();
        fs::create_dir(machine.path("bin")).unwrap();
        machine.fake("cargo", &format!("echo cargo {OLD} '(fd9c4297c 2022-07-01)'"));
        machine.fake("id", &format!("echo {id}"));
        machine.fake("apt-cache", "echo '  Candidate: (none)'");
        machine.fake("apt-get", "echo \"apt-get $*\" >> \"$CALLS\"");
        machine.fake("curl", "exit 6");
        machine.fake("dpkg-query", "echo \"dpkg-query $*\" >> \"$CALLS\"; exit 1");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn home(&self) -> PathBuf {
        self.path("cargo-home")
    }

    fn fake(&self, name: &str, script: &str) {
        executable::script(&self.path("bin").join(name), script);
    }

    /// Returns a script that installs a cargo of this version in the user's home.
    fn installs(&self, version: &str) -> String {
        let cargo = self.home().join("bin/cargo").display().to_string();
        format!("printf '#!/bin/sh\\necho cargo {version}\\n' > {cargo}; chmod 755 {cargo}")
    }

    fn run(&self, script: &str) -> Output {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(script));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display())).env("CARGO_HOME", self.home());
        command.env("CALLS", self.path("calls")).output().unwrap()
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap_or_default()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_cargo_that_is_new_enough_is_found_wherever_it_is() {
    let machine = Machine::new(0);
    let output = machine.run(".ci/find-cargo");
    let last = format!("{}\n", machine.home().join("bin/cargo").display());
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), last.clone()), "too old");
    executable::script(&machine.home().join("bin/cargo"), "echo cargo 1.100.0");
    let output = machine.run(".ci/find-cargo");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), last), "an older one comes first on the path");
    machine.fake("cargo", "echo cargo 1.88.0");
    let output = machine.run(".ci/find-cargo");
    let first = format!("{}\n", machine.path("bin/cargo").display());
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), first));
    let output = machine.run("tests/lab/rust");
    assert!(output.status.success() && output.stdout.is_empty() && machine.calls().is_empty());
}

#[test]
fn debians_rustup_is_taken_where_there_is_one() {
    let machine = Machine::new(0);
    machine.fake("apt-cache", "echo '  Candidate: 1.27.1-4'");
    machine.fake("rustup", &format!("echo \"rustup $*\" >> \"$CALLS\"; {}", machine.installs("1.95.0")));
    let output = machine.run("tests/lab/rust");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("is missing: installing Debian's rustup"), "{}", text(&output.stdout));
    assert_eq!(machine.calls(), "apt-get -qq install --yes --no-install-recommends rustup\nrustup default stable\n");
}

#[test]
fn rustups_own_installer_is_the_other_way() {
    let machine = Machine::new(0);
    machine.fake("curl", &format!("cat <<'END'\n{}\nEND", machine.installs("1.95.0")));
    let output = machine.run("tests/lab/rust");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("installing it with rustup's own installer"), "{}", text(&output.stdout));
}

#[test]
fn what_fails_ends_with_the_one_line_to_type() {
    let installer = "    curl --proto '=https' --tlsv1.2 --silent --show-error --fail https://sh.rustup.rs | sh -s -- -y --profile minimal\n";
    let package = "    sudo apt-get install --yes rustup && rustup default stable\n";
    for (id, candidate, end) in [(0, "(none)", installer), (1000, "(none)", installer), (1000, "1.27.1-4", package)] {
        let machine = Machine::new(id);
        machine.fake("apt-cache", &format!("echo '  Candidate: {candidate}'"));
        let output = machine.run("tests/lab/rust");
        let why = text(&output.stderr);
        assert!(output.status.code() == Some(1) && why.contains("setup: Rust 1.88 or newer is missing"), "{why}");
        assert!(why.ends_with(end), "{why}");
    }
}

#[test]
fn no_package_is_looked_for_before_there_is_rust() {
    let machine = Machine::new(1000);
    let output = machine.run("tests/lab/setup");
    assert_eq!((output.status.code(), machine.calls()), (Some(1), String::new()), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("these packages are missing"));
}
