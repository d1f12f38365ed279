//! Upgrades from the single package of Tandem up to 0.1.0-1, and the daemons' package without Pacemaker. The test makes
//! the old package from the files of the new ones.

use std::fs;
use std::path::{Path, PathBuf};

use super::roots::{
    assert_empty, at, dpkg, empty_of_dpkg, empty_of_rpm, files, in_rpm, made_deb, made_rpms, provided, required, write,
};
use super::{deb, root, rpm, said};

/// A file of each kind that an operator would miss if an upgrade removed it.
const MISSED: [&str; 5] = [
    "/usr/sbin/tandem",
    "/usr/sbin/fence_redfish_rs",
    "/usr/sbin/fencing-agent",
    "/usr/lib/systemd/system/watchdog-mux.service",
    "/usr/share/doc/tandem/docs/operate/recovery.md",
];
const SPLIT: [&str; 3] = ["tandem-common", "tandem", "tandem-fencing"];

/// Extracts the packages `tandem-common`, `tandem` and `tandem-fencing` into one directory.
fn tree(dir: &Path) -> PathBuf {
    let tree = dir.join("tree");
    for name in SPLIT {
        said("dpkg-deb", &["--extract", &deb(name), tree.to_str().unwrap()]);
    }
    tree
}

fn assert_all_there(root: &Path) {
    for place in MISSED {
        assert!(fs::symlink_metadata(at(root, place)).is_ok(), "{place} is gone");
    }
    let program = at(root, "/usr/sbin/fencing-agent").canonicalize().unwrap();
    assert_eq!(program, at(root, "/usr/sbin/tandem").canonicalize().unwrap());
}

/// Builds the Debian package as it was before the split into several, with the script that refuses its removal.
fn single_deb(dir: &Path) -> String {
    let tree = tree(dir);
    let depends = provided(&[&deb("tandem-common"), &deb("tandem")]);
    let control = format!(
        "Package: tandem\nVersion: 0.1.0-1\nArchitecture: amd64\nMaintainer: nobody <nobody@packages.invalid>\n\
         Description: for a test\nDepends: {depends}"
    );
    write(&tree.join("DEBIAN/control"), &control, false);
    let script = fs::read_to_string(root().join("deb/scripts/prerm")).unwrap();
    write(&tree.join("DEBIAN/prerm"), &script, true);
    let file = dir.join("single.deb").to_str().unwrap().to_owned();
    said("dpkg-deb", &["--build", "--root-owner-group", tree.to_str().unwrap(), &file]);
    file
}

#[test]
fn dpkg_upgrades_the_single_package_and_the_program_is_never_gone() {
    let scratch = tempfile::tempdir().unwrap();
    let root = empty_of_dpkg(scratch.path());
    let must = |words: &[&str]| {
        let (done, text) = dpkg(&root, words);
        assert!(done, "dpkg {words:?}: {text}");
    };
    let [common, tandem, fencing] = SPLIT.map(deb);
    let provides = provided(&[&common, &tandem]);
    must(&["--install", &made_deb(scratch.path(), "machine", "1", &format!("Provides: {provides}"), "")]);
    must(&["--install", &single_deb(scratch.path())]);
    assert_all_there(&root);
    // The upgrade removes the binary from its old package, so the new package must be installed before.
    let (done, text) = dpkg(&root, &["--install", &tandem]);
    assert!(!done && text.contains("pre-dependency problem"), "{text}");
    assert_all_there(&root);
    // The daemons' names also move before the newer `tandem` would remove them.
    for deb in [&common, &fencing, &tandem] {
        must(&["--install", deb]);
        assert_all_there(&root);
    }
    for name in SPLIT {
        let (done, text) = dpkg(&root, &["--status", name]);
        assert!(done && text.contains("Status: install ok installed") && text.contains("0.1.0-2"), "{name}: {text}");
    }
    must(&["--purge", "tandem-fencing", "tandem", "tandem-common", "machine"]);
    assert_empty(&root, "var/lib/dpkg");
}

#[test]
fn dpkg_installs_the_daemons_where_there_is_no_pacemaker() {
    let scratch = tempfile::tempdir().unwrap();
    let root = empty_of_dpkg(scratch.path());
    let (common, fencing) = (deb("tandem-common"), deb("tandem-fencing"));
    let provides = format!("Provides: {}", provided(&[&common]));
    let machine = made_deb(scratch.path(), "machine", "1", &provides, "");
    let (done, text) = dpkg(&root, &["--install", &machine, &common, &fencing]);
    assert!(done, "{text}");
    let output = said(at(&root, "/usr/sbin/fencing-agent").to_str().unwrap(), &["--version"]);
    assert!(output.contains(env!("CARGO_PKG_VERSION")), "{output}");
    // The links of its documentation lead to guides that exist.
    for guide in ["fencing-agent.md", "watchdog.md"] {
        assert!(at(&root, "/usr/share/doc/tandem-fencing").join(guide).canonicalize().is_ok(), "{guide}");
    }
}

/// Builds the RPM as it was before the split into several, with all files of the packages of today.
fn single_rpm(dir: &Path) -> String {
    let tree = tree(dir);
    let mut found = Vec::new();
    files(&tree, "no database", &mut found);
    let list = found
        .iter()
        .fold(String::new(), |list, path| list + "/" + &path.strip_prefix(&tree).unwrap().display().to_string() + "\n");
    let script = fs::read_to_string(root().join("deb/scripts/prerm")).unwrap();
    let text = format!(
        "%global debug_package %{{nil}}\n%global __os_install_post %{{nil}}\n%global _build_id_links none\n\
         Name: tandem\nVersion: 0.1.0\nRelease: 1\nSummary: for a test\nLicense: Apache-2.0\nAutoReqProv: no\n\
         %description\nFor a test.\n%install\nmkdir -p %{{buildroot}}\ncp -a {}/. %{{buildroot}}\n\
         %preun\n{}\n%files\n{list}",
        tree.display(),
        script.replace('%', "%%"),
    );
    write(&dir.join("single.spec"), &text, false);
    let define = |name: &str| format!("{name} {}", dir.display());
    let (top, made) = (define("_topdir"), define("_rpmdir"));
    let words =
        ["-bb", "--quiet", "--nodeps", "--define", &top, "--define", &made, "--define", "_rpmfilename single.rpm"];
    said("rpmbuild", &[&words[..], &[dir.join("single.spec").to_str().unwrap()]].concat());
    dir.join("single.rpm").to_str().unwrap().to_owned()
}

#[test]
fn rpm_upgrades_the_single_package() {
    let scratch = tempfile::tempdir().unwrap();
    let root = empty_of_rpm(scratch.path());
    let must = |words: &[&str]| {
        let (done, text) = in_rpm(&root, words);
        assert!(done, "rpm {words:?}: {text}");
    };
    let [common, tandem, fencing] = SPLIT.map(rpm);
    let [machine, ..] = made_rpms(scratch.path(), &required(&[&common, &tandem, &fencing]));
    must(&["--install", &machine]);
    must(&["--install", &single_rpm(scratch.path())]);
    assert_all_there(&root);
    let (done, text) = in_rpm(&root, &["--install", &common, &fencing]);
    assert!(!done && text.contains("tandem < 0.1.0-2 conflicts with"), "{text}");
    must(&["--upgrade", &common, &tandem, &fencing]);
    assert_all_there(&root);
    must(&["--erase", "tandem-fencing"]);
    assert!(fs::symlink_metadata(at(&root, "/usr/sbin/fencing-agent")).is_err());
    must(&["--erase", "tandem", "tandem-common", "machine"]);
    assert_empty(&root, "var/lib/rpm");
}
