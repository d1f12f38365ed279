//! What the packages need: each program that is called, and nothing of a cluster where only the daemons run.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{deb, root, rpm, said};

/// Names of programs in calls such as `run("podman", ...)`.
fn called_programs(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            called_programs(&path, found);
            continue;
        }
        // A test calls functions of these names with names of its own.
        if path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for call in ["run(\"", "run(programs, \"", "run_with_input(\"", "run_for_secret(\"", "run_holding(\""] {
            let names = text.split(call).skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(names.map(str::to_owned));
        }
    }
    found.sort();
    found.dedup();
}

/// Debian's package of a program; its own lists have some programs below `/bin`, whatever `/bin` is by now.
fn owner(program: &str) -> String {
    let paths = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(|dir| format!("{dir}/{program}"));
    let known = paths.iter().find_map(|path| {
        let output = Command::new("dpkg-query").args(["--search", path]).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    });
    let known = known.unwrap_or_else(|| panic!("no package has {program}"));
    // Of a path that one package took from another, such as the shell's, it tells both before the owner itself.
    let line = known.lines().find(|line| !line.starts_with("diversion by "));
    line.and_then(|line| line.split(':').next())
        .unwrap_or_else(|| panic!("no package has {program}: {known}"))
        .to_owned()
}

/// Where Debian keeps each program, and the RPM that has it where the names differ.
#[test]
fn what_is_called_is_required() {
    let mut programs = Vec::new();
    called_programs(&root().join("src"), &mut programs);
    assert!(programs.contains(&"podman".to_owned()) && programs.len() > 5, "{programs:?}");
    let depends = said("dpkg-deb", &["--field", &deb("tandem"), "Depends"]);
    let requires = said("rpm", &["--query", "--package", "--requires", &rpm("tandem"), &rpm("tandem-fencing")]);
    // What a set-up through ssh alone types is recommended: a cluster that is there runs without it.
    let recommends = said("dpkg-deb", &["--field", &deb("tandem"), "Recommends"]);
    let recommended = said("rpm", &["--query", "--package", "--recommends", &rpm("tandem")]);
    assert!(
        recommends.contains("openssh-client") && recommended.contains("openssh-clients"),
        "{recommends}: {recommended}"
    );
    programs.retain(|program| program != "ssh");
    assert!(programs.contains(&"pcs".to_owned()), "every command that is printed is pcs' own: {programs:?}");
    // Asked for only where systemd runs, or where a kernel module is named, and then they are there.
    let are_there = ["systemctl", "journalctl", "modprobe"];
    for program in programs.into_iter().filter(|program| !are_there.contains(&program.as_str())) {
        let owner = owner(&program);
        let owner = owner.as_str();
        // No package has to name the essential ones, which every Debian has.
        let essential = said("dpkg-query", &["--show", "--showformat=${Essential}", owner]) == "yes";
        let named = depends.split(", ").any(|one| one.split(' ').next() == Some(owner));
        assert!(essential || named, "{program}: {owner}: {depends}");
        let rpm = owner.replace("-cli-utils", "-cli");
        assert!(requires.lines().any(|one| one.split(' ').next() == Some(&rpm)), "{program}: {rpm}: {requires}");
    }
}

/// A host of a Kubernetes cluster has no cluster of Pacemaker's.
#[test]
fn the_daemons_need_neither_pacemaker_nor_podman() {
    for name in ["tandem-common", "tandem-fencing"] {
        let mut needed = said("rpm", &["--query", "--package", "--requires", "--recommends", &rpm(name)]);
        for field in ["Pre-Depends", "Depends", "Recommends"] {
            needed += &said("dpkg-deb", &["--field", &deb(name), field]);
        }
        for program in ["pacemaker", "corosync", "pcs", "podman", "etcd", "tandem ", "systemd"] {
            assert!(!needed.contains(program), "{name} needs {program}: {needed}");
        }
    }
}
