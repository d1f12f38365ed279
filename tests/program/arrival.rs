//! The script that runs after systemd units are installed or changed: it makes systemd read them, and starts none. It
//! runs with fakes of systemd's tools.

#![expect(clippy::disallowed_methods, reason = "the test runs the script as a package manager would")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::executable::script;

/// Runs the packages' script `postinst` in a root directory of its own, with fake tools that exit with `code`. Returns the
/// calls of the tools.
fn called(systemd_runs: bool, has_directories: bool, code: i32) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    let (log, tmpfiles) = (root.path().join("called"), root.path().join("usr/lib/tmpfiles.d"));
    for name in ["systemctl", "systemd-tmpfiles"] {
        let tool = root.path().join(name);
        script(&tool, &format!("echo \"{name} $*\" >> {}\nexit {code}", log.display()));
    }
    if systemd_runs {
        fs::create_dir_all(root.path().join("run/systemd/system")).unwrap();
    }
    if has_directories {
        fs::create_dir_all(&tmpfiles).unwrap();
        fs::write(tmpfiles.join("tandem.conf"), "").unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deb/scripts-fencing/postinst");
    let path = format!("{}:{}", root.path().display(), std::env::var("PATH").unwrap_or_default());
    // These are dpkg's arguments; rpm passes the number of installed packages.
    let done = Command::new(script).args(["configure", ""]).env("PATH", path).env("DPKG_ROOT", root.path()).status();
    assert!(done.unwrap().success());
    fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn units_are_read_anew_and_none_is_started() {
    let (reload, create) = ("systemctl daemon-reload", "systemd-tmpfiles --create tandem.conf");
    assert_eq!(called(true, true, 0), [reload, create]);
    assert_eq!(called(true, false, 0), [reload], "tandem-fencing alone");
    assert_eq!(called(true, true, 1), [reload, create], "a tool that fails stops no installation");
    assert_eq!(called(false, true, 0), [""; 0], "systemd does not run");
}

/// Asserts that both packages with units have the same scripts.
#[test]
fn each_package_with_units_has_the_script() {
    let deb = Path::new(env!("CARGO_MANIFEST_DIR")).join("deb");
    let text = |path: &str| fs::read_to_string(deb.join(path)).unwrap();
    assert_eq!(text("scripts-pacemaker/postinst"), text("scripts-fencing/postinst"));
    assert_eq!(text("scripts-pacemaker/prerm"), text("scripts/prerm"));
}
