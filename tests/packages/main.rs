//! The results of `make package`: the files, their modes and owners, the requirements, and that installation starts
//! nothing. The expected files come from the lists in `ocf/` and from `tandem-generate`.

#![expect(clippy::disallowed_methods, reason = "the test asks the tools of the packages")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod figures;
mod needs;
mod roots;
mod upgrade;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names of all packages, each after the packages that it needs.
const PACKAGES: [&str; 4] = ["tandem-common", "tandem", "tandem-fencing", "tandem-dropin"];
/// The packages with a script that refuses the removal of what Pacemaker needs. The daemons' package needs no such script.
const KEPT: [&str; 3] = ["tandem-common", "tandem", "tandem-dropin"];
/// The packages that contain systemd units.
const WITH_UNITS: [&str; 2] = ["tandem", "tandem-fencing"];
/// The packages' revision, as in the file names. It increases when files move from one package to another.
const REVISION: &str = "2";
/// The directories of documentation, which each distribution names differently.
const DOC_PLACES: &[&str] = &["/usr/share/doc/", "/usr/share/licenses/", "/usr/share/lintian/"];
/// The mode and owner of an installed file that is not executable.
const FILE: &str = "-rw-r--r-- root";
/// The mode and owner of an installed executable.
const PROGRAM: &str = "-rwxr-xr-x root";
/// The only installed directory that not all users can read, because it will contain keys and passwords.
const CONFIGURATION: &str = "/etc/tandem";
/// The mode and owner of [`CONFIGURATION`].
const CLOSED: &str = "drwx------ root";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Returns the path of the only built package with a file name of this beginning and end.
fn package(begin: &str, end: &str) -> String {
    let dir = root().join("target/packages");
    let entries = fs::read_dir(&dir).unwrap_or_else(|_| panic!("{} is missing: type 'make package'", dir.display()));
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.strip_prefix(begin).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            && name.ends_with(end)
    };
    let found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(fits).collect();
    assert_eq!(found.len(), 1, "{begin}*{end}: {found:?}");
    found[0].to_str().unwrap().to_owned()
}

fn rpm(name: &str) -> String {
    package(&format!("{name}-"), ".rpm")
}

fn deb(name: &str) -> String {
    package(&format!("{name}_"), ".deb")
}

/// The contents of a package: each path, with its mode and owner or, for a link, its target.
type Contents = BTreeMap<String, String>;

fn links(list: &str) -> Contents {
    let text = fs::read_to_string(root().join("ocf").join(list)).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_once('\t').unwrap());
    rows.map(|(link, target)| (link.to_owned(), format!("-> {target}"))).collect()
}

/// The installed files that are copied unchanged from `metadata/`.
const SHIPPED: &[&str] = &[
    "/usr/share/tandem/prometheus/tandem.rules.yml",
    "/usr/share/tandem/prometheus/tandem-fencing.rules.yml",
    "/usr/share/tandem/grafana/tandem.json",
    "/usr/share/tandem/fencing.proto",
    "/usr/share/tandem/kubernetes/fencing-agent.yaml",
];

/// Returns the name of the package that must contain the installed `path`. `tandem-common` has the binary and its pages, and
/// `tandem-fencing` has the daemons' names.
fn holder(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap().trim_start_matches('_');
    if ["watchdog-mux", "fencing-agent", "fencing.proto", "tandem-fencing.rules", "watchdog.md"]
        .iter()
        .any(|begin| name.starts_with(begin))
    {
        return "tandem-fencing";
    }
    let page = path.contains("/man8/tandem") || path.contains("completions") && name.starts_with("tandem");
    if page || path.contains("/zsh/") && name == "tandem" || [CONFIGURATION, "/usr/sbin/tandem"].contains(&path) {
        return "tandem-common";
    }
    "tandem"
}

/// Returns the contents that a package should have, without documentation.
fn expected(package: &str) -> Contents {
    if package == "tandem-dropin" {
        return links("links-dropin");
    }
    let mut all = installed();
    all.retain(|path, _| holder(path) == package);
    assert!(all.len() > 8, "{package}: {all:?}");
    all
}

/// Returns the files that `make install` installs, without documentation.
fn installed() -> Contents {
    let mut all = links("links");
    all.extend(links("links-fencing"));
    all.insert(CONFIGURATION.to_owned(), CLOSED.to_owned());
    all.insert("/usr/sbin/tandem".to_owned(), PROGRAM.to_owned());
    for unit in [
        "systemd/system/tandem-collect.service",
        "systemd/system/tandem-collect.timer",
        "systemd/system/tandem-certs.service",
        "systemd/system/tandem-certs.timer",
        "systemd/system/tandem-lone-boot.service",
        "systemd/system/watchdog-mux.service",
        "systemd/system/fencing-agent.service",
        "tmpfiles.d/tandem.conf",
    ] {
        all.insert(format!("/usr/lib/{unit}"), FILE.to_owned());
    }
    let share = tempfile::tempdir().unwrap();
    said(env!("CARGO_BIN_EXE_tandem-generate"), &[share.path().to_str().unwrap()]);
    walk(share.path(), share.path(), &mut all);
    all.extend(SHIPPED.iter().map(|path| ((*path).to_owned(), FILE.to_owned())));
    all
}

fn walk(top: &Path, dir: &Path, all: &mut Contents) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(top, &path, all);
        } else {
            let name = path.strip_prefix(top).unwrap().display().to_string();
            all.insert(format!("/usr/share/{name}"), FILE.to_owned());
        }
    }
}

/// Returns the contents of a package without documentation, directories and suffixes of compression. Asserts that all users
/// can read the directories, and only root can write them.
fn comparable(contents: Contents) -> Contents {
    let mut kept = Contents::new();
    for (path, about) in contents {
        if path == CONFIGURATION {
            kept.insert(path, about);
        } else if about.starts_with('d') {
            assert_eq!(about, "drwxr-xr-x root", "{path}");
        } else if about.starts_with('-')
            && !about.starts_with("->")
            && DOC_PLACES.iter().any(|place| path.starts_with(place))
        {
            assert_eq!(about, FILE, "{path}");
        } else {
            kept.insert(
                path.trim_end_matches(".gz").replace("/zsh/vendor-completions/", "/zsh/site-functions/"),
                about,
            );
        }
    }
    kept
}

fn of_rpm(path: &str) -> Contents {
    let format = "[%{FILEMODES:perms} %{FILEUSERNAME}\t%{FILENAMES}\t%{FILELINKTOS}\n]";
    let text = said("rpm", &["--query", "--package", "--queryformat", format, path]);
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let about = if fields[2].is_empty() { fields[0].to_owned() } else { format!("-> {}", fields[2]) };
        (fields[1].to_owned(), about)
    };
    text.lines().map(entry).collect()
}

fn of_deb(path: &str) -> Contents {
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // The owner is a name or a number.
        let owner = if ["root/root", "0/0"].contains(&fields[1]) { "root" } else { fields[1] };
        let name = fields[5].trim_start_matches('.').trim_end_matches('/').to_owned();
        let about = fields.get(7).map_or_else(|| format!("{} {owner}", fields[0]), |target| format!("-> {target}"));
        (name, about)
    };
    said("dpkg-deb", &["--contents", path]).lines().map(entry).collect()
}

/// Returns the differences between two packages' contents, one on each line.
fn difference(expected: &Contents, actual: &Contents) -> String {
    let mut text = String::new();
    for (path, about) in expected {
        if actual.get(path) != Some(about) {
            let _ = writeln!(text, "{path} should be '{about}' and is {:?}", actual.get(path));
        }
    }
    for path in actual.keys().filter(|path| !expected.contains_key(*path)) {
        let _ = writeln!(text, "{path} should not be there");
    }
    text
}

#[test]
fn each_package_holds_what_is_installed_and_nothing_else() {
    for name in PACKAGES {
        let list = expected(name);
        assert_eq!(difference(&list, &comparable(of_rpm(&rpm(name)))), "", "the RPM {name}");
        assert_eq!(difference(&list, &comparable(of_deb(&deb(name)))), "", "the Debian package {name}");
    }
}

/// Asserts that a package runs two scripts at most. One refuses a removal, and one has systemd read new units
/// (`tests/program/removal.rs` and `arrival.rs`). Nothing else runs when a package is installed or removed: no unit
/// is enabled, and an upgrade restarts no unit.
#[test]
fn nothing_runs_but_what_keeps_a_package_and_has_systemd_read_its_units() {
    let script = |path: &str| fs::read_to_string(root().join("deb").join(path)).unwrap();
    let scripts = [
        ("postinst", "postinstall", script("scripts-fencing/postinst"), &WITH_UNITS[..]),
        ("prerm", "preuninstall", script("scripts/prerm"), &KEPT[..]),
    ];
    for name in PACKAGES {
        let wanted: Vec<_> = scripts.iter().filter(|(.., packages)| packages.contains(&name)).collect();
        let shown = said("rpm", &["--query", "--package", "--scripts", "--triggers", &rpm(name)]);
        let expected: Vec<String> =
            wanted.iter().map(|(_, kind, script, _)| format!("{kind} scriptlet (using /bin/sh):\n{script}")).collect();
        assert_eq!(shown.trim_end(), expected.join("\n").trim_end(), "the RPM {name}");
        let control = tempfile::tempdir().unwrap();
        said("dpkg-deb", &["--control", &deb(name), control.path().to_str().unwrap()]);
        let mut files: Vec<String> = fs::read_dir(control.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| !["control", "md5sums"].contains(&name.as_str()))
            .collect();
        files.sort();
        assert_eq!(files, wanted.iter().map(|(file, ..)| *file).collect::<Vec<_>>(), "the Debian package {name}");
        for (file, _, script, _) in wanted {
            assert_eq!(fs::read_to_string(control.path().join(file)).unwrap(), *script, "{name}");
        }
    }
}

#[test]
fn the_documentation_is_there() {
    // The links of README lead to files in the same folder, and so do those of the daemons' own package.
    let common = [
        "tandem/README.md",
        "docs/README.md",
        "tandem/docs/operate/recovery.md",
        "tandem/docs/operate/fencing.md",
        "tandem/docs/operate/fencing-agent.md",
        "tandem/docs/operate/watchdog.md",
        "THIRD-PARTY",
    ];
    let fencing = "tandem-fencing/examples/fencing-agent.toml";
    for (contents, fencings, names) in [
        (of_rpm(&rpm("tandem-common")), of_rpm(&rpm("tandem-fencing")), ["CHANGELOG.md", "LICENSE"]),
        (of_deb(&deb("tandem-common")), of_deb(&deb("tandem-fencing")), ["changelog", "copyright"]),
    ] {
        for name in common.iter().chain(&names) {
            assert!(contents.keys().any(|path| path.trim_end_matches(".gz").ends_with(&format!("/{name}"))), "{name}");
        }
        assert!(fencings.keys().any(|path| path.ends_with(fencing)), "{fencing}: {fencings:?}");
    }
}

/// Returns the binary that the Debian package contains, and that of the RPM.
fn shipped_programs() -> [(&'static str, Vec<u8>); 2] {
    let unpacked = tempfile::tempdir().unwrap();
    let place = unpacked.path().to_str().unwrap();
    said("dpkg-deb", &["--extract", &deb("tandem-common"), place]);
    let of_deb = fs::read(unpacked.path().join("usr/sbin/tandem")).unwrap();
    let unpack = format!(
        "rpm2cpio '{}' | cpio --quiet --extract --to-stdout ./usr/sbin/tandem > '{place}/of-rpm'",
        rpm("tandem-common")
    );
    said("sh", &["-c", &unpack]);
    [("deb", of_deb), ("rpm", fs::read(unpacked.path().join("of-rpm")).unwrap())]
}

/// Asserts that the packages do not contain the lab's faulty build of the program. It has switches that make it lose writes, with which
/// the lab tests its own checks.
#[test]
fn what_is_shipped_has_none_of_the_labs_faults() {
    for (package, program) in shipped_programs() {
        let has = |words: &str| program.windows(words.len()).any(|window| window == words.as_bytes());
        assert!(has("commit index advanced from"), "{package}: this is not the agent");
        for fault in [
            "test-skip-advance-commit",
            "test-skip-note-sync",
            "test-skip-wal-sync",
            "test-wait-after-note",
            "test-skip-rename-sync",
            "test-wait-after-rename",
            "lab-faults",
        ] {
            assert!(!has(fault), "{package}: the program knows of '{fault}'");
        }
    }
}

/// Asserts that the packages contain the files of `metadata/` unchanged, because other tests check those.
#[test]
fn what_lies_in_the_tree_is_shipped_as_it_is() {
    let unpacked = tempfile::tempdir().unwrap();
    for name in ["tandem", "tandem-fencing"] {
        said("dpkg-deb", &["--extract", &deb(name), unpacked.path().to_str().unwrap()]);
    }
    for path in SHIPPED {
        let shipped = fs::read(unpacked.path().join(path.trim_start_matches('/'))).unwrap();
        let rest = path.trim_start_matches("/usr/share/tandem/");
        assert!(shipped == fs::read(root().join("metadata").join(rest)).unwrap(), "{path}");
    }
}

/// Asserts that the packages contain neither the model nor the generator, nor their code. Both are programs for a checkout.
#[test]
fn what_is_shipped_has_neither_the_model_nor_the_generator() {
    for (package, program) in shipped_programs() {
        let has = |words: &str| program.windows(words.len()).any(|window| window == words.as_bytes());
        assert!(has("commit index advanced from"), "{package}: this is not the agent");
        for words in ["violation.scn", "no way leads back to two voters", "bash-completion/completions", "fish/vendor"]
        {
            assert!(!has(words), "{package}: the program knows of '{words}'");
        }
    }
    for name in PACKAGES {
        let contents = [of_rpm(&rpm(name)), of_deb(&deb(name))];
        for path in contents.iter().flat_map(Contents::keys) {
            assert!(!["tandem-sim", "tandem-generate"].iter().any(|name| path.contains(name)), "{path}");
        }
    }
}

/// Asserts that the packages' binary is stripped. The build leaves the functions' names in it for the figures, and `make
/// install` strips it.
#[test]
fn what_is_shipped_is_stripped() {
    for (package, program) in shipped_programs() {
        assert!(!program.windows(8).any(|window| window == b".symtab\0"), "{package}: the program has its symbols");
    }
}

/// Asserts that the packages name the linked libraries, because their licences require a list of authors and terms.
#[test]
fn the_libraries_that_are_linked_in_are_named() {
    let unpacked = tempfile::tempdir().unwrap();
    said("dpkg-deb", &["--extract", &deb("tandem-common"), unpacked.path().to_str().unwrap()]);
    let text = fs::read_to_string(unpacked.path().join("usr/share/doc/tandem/THIRD-PARTY")).unwrap();
    for words in [
        "\nrustls ",
        "\netcd-client ",
        "\nclap_complete ",
        "Permission is hereby granted",
        "Redistribution and use in source",
    ] {
        assert!(text.contains(words), "{words}");
    }
    // Libraries that only build or test are not in the binary.
    for words in ["\nproptest ", "\nprost-build ", "\nclap_mangen "] {
        assert!(!text.contains(words), "{words}");
    }
}

#[test]
fn the_dropin_conflicts_with_what_it_replaces() {
    let rpm = said("rpm", &["--query", "--package", "--conflicts", &rpm("tandem-dropin")]);
    let deb = said("dpkg-deb", &["--field", &deb("tandem-dropin"), "Conflicts"]);
    for conflicts in [rpm, deb] {
        assert!(conflicts.contains("fence-agents-redfish") && conflicts.contains("resource-agents"), "{conflicts}");
    }
}

#[test]
fn all_packages_have_the_version_that_the_binary_tells() {
    let version = env!("CARGO_PKG_VERSION");
    for name in PACKAGES {
        let of_rpm = said("rpm", &["--query", "--package", "--queryformat", "%{VERSION}-%{RELEASE}", &rpm(name)]);
        assert_eq!(of_rpm, format!("{version}-{REVISION}"), "the RPM {name}");
        let of_deb = said("dpkg-deb", &["--field", &deb(name), "Version"]);
        assert_eq!(of_deb.trim(), format!("{version}-{REVISION}"), "the Debian package {name}");
    }
    for (name, needed, field) in [
        ("tandem", "tandem-common", "Pre-Depends"),
        ("tandem-fencing", "tandem-common", "Depends"),
        ("tandem-dropin", "tandem", "Depends"),
    ] {
        let depends = said("dpkg-deb", &["--field", &deb(name), field]);
        assert!(depends.contains(&format!("{needed} (= {version}-{REVISION})")), "{name}: {depends}");
        let requires = said("rpm", &["--query", "--package", "--requires", &rpm(name)]);
        assert!(requires.contains(&format!("{needed} = {version}-{REVISION}\n")), "{name}: {requires}");
    }
}

#[test]
fn rpmlint_has_nothing_to_say_that_is_not_explained() {
    let spec = root().join("rpm/tandem.spec");
    let config = root().join("rpm/rpmlint.toml");
    let made = PACKAGES.map(rpm);
    let mut words = vec!["--config", config.to_str().unwrap(), spec.to_str().unwrap()];
    words.extend(made.iter().map(String::as_str));
    let text = said("rpmlint", &words);
    assert!(text.contains("0 errors, 0 warnings"), "{text}");
}
