//! Installation and removal of the packages, each kind in a root of its own with its own database. The test makes
//! packages that own the paths of `tandem-dropin`, and one that provides all requirements, because Debian has no RPMs
//! for that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PACKAGES, REVISION, deb, root, rpm, said};

/// The distribution's packages that own a path which `tandem-dropin` takes over: name, version, and path.
const TAKEN: &[(&str, &str, &str)] = &[
    ("resource-agents", "4.18.0", "/usr/lib/ocf/resource.d/heartbeat/podman-etcd"),
    ("fence-agents-redfish", "4.16.0", "/usr/sbin/fence_redfish"),
];
const ORIGINAL: &str = "#!/bin/sh\necho the original\n";

/// Returns a command that acts as root in a root directory of the test's user.
fn as_root(program: &str) -> Command {
    if nix::unistd::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", program]);
    command
}

/// Runs a command. Returns whether it succeeded, and all of its output.
fn outcome(command: &mut Command) -> (bool, String) {
    let output = command.env("LC_ALL", "C").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

pub(crate) fn write(path: &Path, text: &str, program: bool) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(if program { 0o755 } else { 0o644 })).unwrap();
}

/// Returns the path of `place` in the root directory `root`.
pub(crate) fn at(root: &Path, place: &str) -> PathBuf {
    root.join(place.trim_start_matches('/'))
}

/// Asserts that each path that the package `tandem-dropin` takes over leads to Tandem, and that the program there
/// prints its metadata. If `tandem` is false, asserts instead that each path has the original program.
fn assert_in_place(root: &Path, tandem: bool) {
    for (_, _, place) in TAKEN {
        let file = at(root, place);
        if tandem {
            assert_eq!(file.canonicalize().unwrap(), at(root, "/usr/sbin/tandem").canonicalize().unwrap(), "{place}");
        } else {
            assert_eq!(fs::read_to_string(&file).unwrap(), ORIGINAL, "{place}");
        }
    }
    if !tandem {
        return;
    }
    for (place, words, file) in [
        (TAKEN[0].2, &["meta-data"][..], "podman-etcd.xml"),
        (TAKEN[1].2, &["--action", "metadata"], "fence_redfish_rs.xml"),
    ] {
        let printed = said(at(root, place).to_str().unwrap(), words);
        assert_eq!(printed, fs::read_to_string(super::root().join("metadata").join(file)).unwrap(), "{place}");
    }
}

/// The shell for the packages' scripts in a test's root directory. The programs that the scripts call are missing there, so
/// they cannot ask whether Pacemaker needs the package.
const SHELL: &str = "/bin/sh";

fn with_a_shell(root: &Path) {
    let linked = said("ldd", &[SHELL]);
    let libraries = linked.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain([SHELL]) {
        fs::create_dir_all(at(root, file).parent().unwrap()).unwrap();
        fs::copy(file, at(root, file)).unwrap();
    }
}

/// Collects every file below `dir`. Leaves out the shell's files, and the directory `database`, which is the package
/// manager's own.
pub(crate) fn files(dir: &Path, database: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            if !path.ends_with(database) {
                files(&path, database, found);
            }
        } else if !is_of_the_shell(&path) {
            found.push(path);
        }
    }
}

fn is_of_the_shell(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "sh" || name.starts_with("libc.so") || name.starts_with("ld-linux")
}

pub(crate) fn assert_empty(root: &Path, database: &str) {
    let mut left = Vec::new();
    files(root, database, &mut left);
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Builds a Debian package for a test. It contains a program at `place`, or nothing if `place` is empty.
pub(crate) fn made_deb(dir: &Path, name: &str, version: &str, more: &str, place: &str) -> String {
    let tree = dir.join(name);
    let control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <nobody@packages.invalid>\n\
         Description: for a test\n{more}"
    );
    write(&tree.join("DEBIAN/control"), &control, false);
    if !place.is_empty() {
        write(&at(&tree, place), ORIGINAL, true);
    }
    let file = dir.join(format!("{name}.deb")).to_str().unwrap().to_owned();
    said("dpkg-deb", &["--build", "--root-owner-group", tree.to_str().unwrap(), &file]);
    file
}

/// Returns a new root directory for dpkg that contains only a shell.
pub(crate) fn empty_of_dpkg(scratch: &Path) -> PathBuf {
    let root = scratch.join("root");
    for file in ["info/format", "updates/.keep", "triggers/File", "status", "available"] {
        write(&root.join("var/lib/dpkg").join(file), if file == "info/format" { "1\n" } else { "" }, false);
    }
    fs::remove_file(root.join("var/lib/dpkg/updates/.keep")).unwrap();
    with_a_shell(&root);
    root
}

pub(crate) fn dpkg(root: &Path, words: &[&str]) -> (bool, String) {
    outcome(as_root("dpkg").arg(format!("--root={}", root.display())).arg("--log=/dev/null").args(words))
}

/// Returns the dependencies of these Debian packages, in the form in which another package can provide them.
pub(crate) fn provided(debs: &[&str]) -> String {
    let depends: Vec<String> = debs.iter().map(|deb| said("dpkg-deb", &["--field", deb, "Depends"])).collect();
    depends.iter().map(|line| line.trim().replace(">=", "=")).collect::<Vec<_>>().join(", ") + "\n"
}

#[test]
fn the_debian_packages_come_and_go() {
    let scratch = tempfile::tempdir().unwrap();
    let root = empty_of_dpkg(scratch.path());
    let dpkg = |words: &[&str]| dpkg(&root, words);
    let must = |words: &[&str]| {
        let (done, text) = dpkg(words);
        assert!(done, "dpkg {words:?}: {text}");
    };
    let [common, tandem, _, dropin] = PACKAGES.map(deb);
    let provides = provided(&[&common, &tandem]);
    let machine = made_deb(scratch.path(), "machine", "1", &format!("Provides: {provides}"), "");
    let made = |(name, version, place): &(&str, &str, &str)| {
        let epoch = if *name == "resource-agents" { "1:" } else { "" };
        made_deb(scratch.path(), name, &format!("{epoch}{version}-1"), "", place)
    };
    let originals: Vec<String> = TAKEN.iter().map(made).collect();

    must(&["--install", &machine, &originals[0], &originals[1]]);
    must(&["--install", &common]);
    must(&["--install", &tandem]);
    assert_in_place(&root, false);
    // It replaces the packages that own its paths.
    must(&["--install", &dropin]);
    assert_in_place(&root, true);
    for original in &originals {
        let (done, text) = dpkg(&["--install", original]);
        assert!(!done && text.contains("tandem-dropin conflicts with"), "{text}");
    }
    assert_in_place(&root, true);
    must(&["--remove", "tandem-dropin"]);
    must(&["--install", &originals[0], &originals[1]]);
    assert_in_place(&root, false);
    must(&["--purge", "tandem-dropin", "tandem", "tandem-common"]);
    assert_in_place(&root, false);
    must(&["--purge", TAKEN[0].0, TAKEN[1].0, "machine"]);
    assert_empty(&root, "var/lib/dpkg");
}

/// Returns the RPM specification of the other packages in a test: one that provides `requires`, and those that own the
/// paths in [`TAKEN`].
fn specification(requires: &str) -> String {
    let provides = requires.lines().filter(|line| !line.starts_with("rpmlib(")).map(|line| line.replace(">=", "="));
    let provides = provides.map(|line| format!("Provides: {line}\n")).collect::<Vec<String>>().concat();
    let package = |(name, version, place): &(&str, &str, &str)| {
        format!(
            "%package -n {name}\nVersion: {version}\nSummary: for a test\n%description -n {name}\nFor a test.\n\
             %files -n {name}\n{place}\n"
        )
    };
    let install = |(_, _, place): &(&str, &str, &str)| {
        format!("install -D --mode=755 %{{_sourcedir}}/original %{{buildroot}}{place}\n")
    };
    format!(
        "Name: machine\nVersion: 1\nRelease: 1\nSummary: for a test\nLicense: Apache-2.0\nBuildArch: noarch\n{provides}\
         Provides: /bin/sh\n\
         %description\nFor a test.\n%files\n{}%install\n{}",
        TAKEN.iter().map(package).collect::<String>(),
        TAKEN.iter().map(install).collect::<String>()
    )
}

pub(crate) fn made_rpms(dir: &Path, requires: &str) -> [String; 3] {
    write(&dir.join("original"), ORIGINAL, true);
    write(&dir.join("machine.spec"), &specification(requires), false);
    let define = |name: &str| format!("{name} {}", dir.display());
    let (top, source, made) = (define("_topdir"), define("_sourcedir"), define("_rpmdir"));
    let names = "_rpmfilename %%{NAME}.rpm";
    let file = dir.join("machine.spec");
    let words = ["-bb", "--quiet", "--define", &top, "--define", &source, "--define", &made, "--define", names];
    said("rpmbuild", &[&words[..], &[file.to_str().unwrap()]].concat());
    ["machine", TAKEN[0].0, TAKEN[1].0].map(|name| dir.join(format!("{name}.rpm")).to_str().unwrap().to_owned())
}

/// Returns a new root directory for rpm that contains only a shell.
pub(crate) fn empty_of_rpm(scratch: &Path) -> PathBuf {
    let root = scratch.join("root");
    fs::create_dir(&root).unwrap();
    with_a_shell(&root);
    root
}

pub(crate) fn in_rpm(root: &Path, words: &[&str]) -> (bool, String) {
    outcome(as_root("rpm").args(["--dbpath", "/var/lib/rpm", "--root"]).arg(root).args(words))
}

/// Returns the requirements of these RPMs, except for those that name another package of Tandem.
pub(crate) fn required(rpms: &[&str]) -> String {
    let all = said("rpm", &[&["--query", "--package", "--requires"], rpms].concat());
    all.split_inclusive('\n').filter(|line| !line.starts_with("tandem")).collect()
}

#[test]
fn the_rpms_come_and_go() {
    let scratch = tempfile::tempdir().unwrap();
    let root = empty_of_rpm(scratch.path());
    let rpms = |words: &[&str]| in_rpm(&root, words);
    let must = |words: &[&str]| {
        let (done, text) = rpms(words);
        assert!(done, "rpm {words:?}: {text}");
    };
    let [common, tandem, _, dropin] = PACKAGES.map(rpm);
    let [machine, first, second] = made_rpms(scratch.path(), &required(&[&common, &tandem]));

    must(&["--install", &machine, &first, &second]);
    must(&["--install", &common, &tandem]);
    let (done, text) = rpms(&["--install", &dropin]);
    assert!(!done, "{text}");
    for (name, _, _) in TAKEN {
        assert!(text.contains(name) && text.contains("conflicts with"), "{name}: {text}");
    }
    assert_in_place(&root, false);
    must(&["--erase", TAKEN[0].0, TAKEN[1].0]);
    must(&["--install", &dropin]);
    assert_in_place(&root, true);
    for original in [&first, &second] {
        let (done, text) = rpms(&["--install", original]);
        assert!(!done && text.contains("conflicts with"), "{text}");
    }
    must(&["--erase", "tandem-dropin"]);
    must(&["--install", &first, &second]);
    assert_in_place(&root, false);
    must(&["--erase", "tandem", "tandem-common"]);
    assert_in_place(&root, false);
    must(&["--erase", TAKEN[0].0, TAKEN[1].0, "machine"]);
    assert_empty(&root, "var/lib/rpm");
}

/// Asserts that the newest entry of Debian's changelog has this version.
#[test]
fn debians_list_of_changes_has_this_version() {
    let text = fs::read_to_string(root().join("deb/changelog")).unwrap();
    assert!(text.starts_with(&format!("tandem ({}-{REVISION}) ", env!("CARGO_PKG_VERSION"))), "{text}");
}

#[test]
fn lintian_has_nothing_to_say_that_is_not_explained() {
    for name in PACKAGES {
        let (done, text) = outcome(Command::new("lintian").args(["--display-info", &deb(name)]));
        let remarks: Vec<&str> = text.lines().filter(|line| line.chars().nth(1) == Some(':')).collect();
        let remarks: Vec<&str> = remarks.into_iter().filter(|line| !line.starts_with("N:")).collect();
        assert!(done && remarks.is_empty(), "{name}: {text}");
    }
}
