//! The packages' dependencies: each program that is called, and nothing of a cluster for hosts that only run the
//! daemons.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{deb, root, rpm, said};

/// Collects the names of the programs that the sources call, as in `run("podman", ...)`.
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

/// Returns the Debian package that contains a program. Debian's lists have some programs below `/bin`, even if `/bin` is a
/// link.
fn owner(program: &str) -> String {
    let paths = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(|dir| format!("{dir}/{program}"));
    let known = paths.iter().find_map(|path| {
        let output = Command::new("dpkg-query").args(["--search", path]).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    });
    let known = known.unwrap_or_else(|| panic!("no package has {program}"));
    // If a package has diverted a path, as with the shell's, the diversions are listed before the owner.
    let line = known.lines().find(|line| !line.starts_with("diversion by "));
    line.and_then(|line| line.split(':').next())
        .unwrap_or_else(|| panic!("no package has {program}: {known}"))
        .to_owned()
}

/// Asserts that the packages require every program that the sources call. The test looks up the Debian package of each, and
/// the RPM of the same or another name.
#[test]
fn what_is_called_is_required() {
    let mut programs = Vec::new();
    called_programs(&root().join("src"), &mut programs);
    assert!(programs.contains(&"podman".to_owned()) && programs.len() > 5, "{programs:?}");
    let depends = said("dpkg-deb", &["--field", &deb("tandem"), "Depends"]);
    let requires = said("rpm", &["--query", "--package", "--requires", &rpm("tandem"), &rpm("tandem-fencing")]);
    // A program that only a set-up through ssh uses is recommended, because an existing cluster runs without it.
    let recommends = said("dpkg-deb", &["--field", &deb("tandem"), "Recommends"]);
    let recommended = said("rpm", &["--query", "--package", "--recommends", &rpm("tandem")]);
    assert!(
        recommends.contains("openssh-client") && recommended.contains("openssh-clients"),
        "{recommends}: {recommended}"
    );
    programs.retain(|program| program != "ssh");
    assert!(programs.contains(&"pcs".to_owned()), "every command that is printed is pcs' own: {programs:?}");
    // These programs are used only with systemd, or for a named kernel module, and exist there.
    let are_there = ["systemctl", "systemd-run", "journalctl", "modprobe"];
    for program in programs.into_iter().filter(|program| !are_there.contains(&program.as_str())) {
        let owner = owner(&program);
        let owner = owner.as_str();
        // No package has to require the essential packages, which every Debian has.
        let essential = said("dpkg-query", &["--show", "--showformat=${Essential}", owner]) == "yes";
        let named = depends.split(", ").any(|one| one.split(' ').next() == Some(owner));
        assert!(essential || named, "{program}: {owner}: {depends}");
        let rpm = owner.replace("-cli-utils", "-cli");
        assert!(requires.lines().any(|one| one.split(' ').next() == Some(&rpm)), "{program}: {rpm}: {requires}");
    }
}

/// Asserts that the daemons' packages require no Pacemaker and no podman, because a host of a Kubernetes cluster has none.
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
