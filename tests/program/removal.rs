//! The script that runs before a package is removed: it refuses while Pacemaker needs the package's files, and permits
//! an upgrade. It runs with fakes of Pacemaker's tools, and with the real dpkg in a root of its own.

#![expect(clippy::disallowed_methods, reason = "the test runs the script as a package manager would")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::executable;

/// The exit code of Pacemaker's tools if the CIB does not contain the requested object.
const NOT_THERE: i32 = 105;
/// The exit code of Pacemaker's tools if Pacemaker does not run.
const NO_PACEMAKER: i32 = 102;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deb/scripts/prerm")
}

/// Installs a fake `cibadmin`, which records its arguments and exits with `cib`, and a fake `pidof`. Returns a search path
/// with both.
fn tools(dir: &Path, cib: i32, pacemaker_runs: bool) -> String {
    let asked = dir.join("asked").display().to_string();
    for (name, text) in [
        ("cibadmin", format!("echo \"$*\" > {asked}; exit {cib}")),
        ("pidof", format!("exit {}", i32::from(!pacemaker_runs))),
    ] {
        executable::script(&dir.join(name), &text);
    }
    format!("{}:{}", dir.display(), std::env::var("PATH").unwrap_or_default())
}

fn run(arguments: &[&str], cib: i32, pacemaker_runs: bool) -> (Output, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("run")).unwrap();
    let mut command = Command::new(script());
    command.args(arguments).env("PATH", tools(dir.path(), cib, pacemaker_runs)).env("DPKG_ROOT", dir.path());
    (command.output().unwrap(), dir)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_package_that_pacemaker_needs_is_not_removed() {
    // These are the arguments of dpkg and of rpm.
    for removal in ["remove", "0"] {
        let (output, dir) = run(&[removal], 0, true);
        assert_eq!(output.status.code(), Some(1), "{removal}");
        for words in ["'pcs cluster stop'", "'pcs resource delete'", "'pcs stonith delete'", "/run/tandem.remove'"] {
            assert!(said(&output).contains(words), "{words}: {}", said(&output));
        }
        let asked = fs::read_to_string(dir.path().join("asked")).unwrap();
        assert!(asked.contains("@provider=\"tandem\"") && asked.contains("@type=\"fence_redfish_rs\""), "{asked}");
        assert_eq!(run(&[removal], NOT_THERE, true).0.status.code(), Some(0), "Pacemaker needs nothing of it");
        assert_eq!(run(&[removal], NO_PACEMAKER, false).0.status.code(), Some(0), "Pacemaker does not run");
        let (output, _) = run(&[removal], NO_PACEMAKER, true);
        assert_eq!(output.status.code(), Some(1), "it runs, and does not answer");
        assert!(said(&output).contains("does not say whether it needs this package"), "{}", said(&output));
    }
}

#[test]
fn an_upgrade_goes_on_as_does_whoever_takes_a_place_over() {
    for arguments in [
        &["upgrade", "0.2.0-1"][..],
        &["failed-upgrade", "0.1.0-1"],
        &["deconfigure", "in-favour", "other", "1"],
        &["remove", "in-favour", "fence-agents", "4.12"],
        &["1"],
    ] {
        let (output, dir) = run(arguments, 0, true);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
        assert!(!dir.path().join("asked").exists());
    }
}

#[test]
fn who_insists_may_remove_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("run")).unwrap();
    fs::write(dir.path().join("run/tandem.remove"), "").unwrap();
    let mut command = Command::new(script());
    command.arg("remove").env("PATH", tools(dir.path(), 0, true)).env("DPKG_ROOT", dir.path());
    assert!(command.status().unwrap().success());
}

/// Builds a Debian package `tandem` of this version that contains only the script `prerm`.
fn package(dir: &Path, version: &str) -> PathBuf {
    let tree = dir.join(format!("tree-{version}"));
    let control = tree.join("DEBIAN");
    fs::create_dir_all(&control).unwrap();
    let text = format!(
        "Package: tandem\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <nobody@example.invalid>\nDescription: a test\n"
    );
    fs::write(control.join("control"), text).unwrap();
    fs::copy(script(), control.join("prerm")).unwrap();
    fs::set_permissions(control.join("prerm"), fs::Permissions::from_mode(0o755)).unwrap();
    let file = dir.join(format!("{version}.deb"));
    let built = Command::new("dpkg-deb").arg("--build").arg(&tree).arg(&file).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    file
}

#[test]
fn dpkg_keeps_the_package_and_upgrades_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    for place in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "run"] {
        fs::create_dir_all(root.join(place)).unwrap();
    }
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let path = tools(dir.path(), 0, true);
    let dpkg = |arguments: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", root.display())).args(["--force-script-chrootless", "--force-not-root"]);
        command.args(arguments).env("PATH", &path).env("LC_ALL", "C").output().unwrap()
    };
    let (old, new) = (package(dir.path(), "1"), package(dir.path(), "2"));
    for file in [&old, &new] {
        let done = dpkg(&["--install", file.to_str().unwrap()]);
        assert!(done.status.success(), "{}", said(&done));
    }
    let refused = dpkg(&["--remove", "tandem"]);
    assert!(!refused.status.success() && said(&refused).contains("'pcs cluster stop'"), "{}", said(&refused));
    let state = || String::from_utf8_lossy(&dpkg(&["--status", "tandem"]).stdout).into_owned();
    assert!(state().contains("Version: 2") && state().contains("ok installed"), "{}", state());
    fs::write(root.join("run/tandem.remove"), "").unwrap();
    let removed = dpkg(&["--remove", "tandem"]);
    assert!(removed.status.success(), "{}", said(&removed));
}
