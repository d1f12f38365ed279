//! What `make package` has made: the files, their modes and owners, what is required, and that nothing runs when a
//! package is installed. The expected files come from the lists in `ocf/` and from `tandem-generate`.

#![expect(clippy::disallowed_methods, reason = "the test asks the tools of the packages")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod figures;
mod roots;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the packages add to what is installed: their own documentation, named by each distribution.
const DOC_PLACES: &[&str] = &["/usr/share/doc/", "/usr/share/licenses/", "/usr/share/lintian/"];
/// Mode and owner of everything but links, by whether it is to be run.
const FILE: &str = "-rw-r--r-- root";
const PROGRAM: &str = "-rwxr-xr-x root";
/// Keys and passwords are to come into it: the one directory that is not open to all.
const CONFIGURATION: &str = "/etc/tandem";
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

/// The one package whose file name begins and ends so.
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

/// Path to "mode owner", or to "-> target" for a link.
type Contents = BTreeMap<String, String>;

fn links(list: &str) -> Contents {
    let text = fs::read_to_string(root().join("ocf").join(list)).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_once('\t').unwrap());
    rows.map(|(link, target)| (link.to_owned(), format!("-> {target}"))).collect()
}

/// What is installed as it lies in the tree.
const SHIPPED: &[&str] = &[
    "/usr/share/tandem/prometheus/tandem.rules.yml",
    "/usr/share/tandem/prometheus/tandem-fencing.rules.yml",
    "/usr/share/tandem/grafana/tandem.json",
    "/usr/share/tandem/fencing.proto",
    "/usr/share/tandem/kubernetes/fencing-agent.yaml",
];

/// What the package `tandem` has to hold, besides its documentation.
fn expected() -> Contents {
    let mut all = links("links");
    all.insert(CONFIGURATION.to_owned(), CLOSED.to_owned());
    all.insert("/usr/sbin/tandem".to_owned(), PROGRAM.to_owned());
    for unit in [
        "systemd/system/tandem-collect.service",
        "systemd/system/tandem-collect.timer",
        "systemd/system/tandem-certs.service",
        "systemd/system/tandem-certs.timer",
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
    assert!(all.len() > 15, "{all:?}");
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

/// Without compression's endings, documentation and directories, which must be open to all and writable by root alone.
fn comparable(contents: Contents) -> Contents {
    let mut kept = Contents::new();
    for (path, about) in contents {
        if path == CONFIGURATION {
            kept.insert(path, about);
        } else if about.starts_with('d') {
            assert_eq!(about, "drwxr-xr-x root", "{path}");
        } else if DOC_PLACES.iter().any(|place| path.starts_with(place)) {
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
        // By name or by number.
        let owner = if ["root/root", "0/0"].contains(&fields[1]) { "root" } else { fields[1] };
        let name = fields[5].trim_start_matches('.').trim_end_matches('/').to_owned();
        let about = fields.get(7).map_or_else(|| format!("{} {owner}", fields[0]), |target| format!("-> {target}"));
        (name, about)
    };
    said("dpkg-deb", &["--contents", path]).lines().map(entry).collect()
}

/// What differs, one line each.
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
    for (list, begin) in [(expected(), "tandem"), (links("links-dropin"), "tandem-dropin")] {
        let rpm = comparable(of_rpm(&package(&format!("{begin}-"), ".rpm")));
        assert_eq!(difference(&list, &rpm), "", "the RPM {begin}");
        let deb = comparable(of_deb(&package(&format!("{begin}_"), ".deb")));
        assert_eq!(difference(&list, &deb), "", "the Debian package {begin}");
    }
}

/// One script, before a removal, which `tests/program/removal.rs` runs; nothing else runs, when a package comes or goes.
#[test]
fn nothing_runs_but_what_keeps_a_package_that_pacemaker_needs() {
    let script = fs::read_to_string(root().join("deb/scripts/prerm")).unwrap();
    for begin in ["tandem", "tandem-dropin"] {
        let rpm = package(&format!("{begin}-"), ".rpm");
        let shown = said("rpm", &["--query", "--package", "--scripts", "--triggers", &rpm]);
        let (head, body) = shown.split_once('\n').unwrap();
        assert_eq!(head, "preuninstall scriptlet (using /bin/sh):", "{rpm}");
        assert_eq!(body.trim_end(), script.trim_end(), "{rpm}");
        let deb = package(&format!("{begin}_"), ".deb");
        let control = tempfile::tempdir().unwrap();
        said("dpkg-deb", &["--control", &deb, control.path().to_str().unwrap()]);
        let files: Vec<String> = fs::read_dir(control.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| !["control", "md5sums"].contains(&name.as_str()))
            .collect();
        assert_eq!(files, ["prerm"], "{deb}");
        assert_eq!(fs::read_to_string(control.path().join("prerm")).unwrap(), script, "{deb}");
    }
}

#[test]
fn the_documentation_is_there() {
    // Where the links of README lead, beside it.
    const RECOVERY: &str = "tandem/docs/operate/recovery.md";
    const FENCING: &str = "tandem/docs/operate/fencing.md";
    for (contents, names) in [
        (
            of_rpm(&package("tandem-", ".rpm")),
            ["tandem/README.md", "docs/README.md", RECOVERY, FENCING, "CHANGELOG.md", "LICENSE", "THIRD-PARTY"],
        ),
        (
            of_deb(&package("tandem_", ".deb")),
            ["tandem/README.md", "docs/README.md", RECOVERY, FENCING, "changelog", "copyright", "THIRD-PARTY"],
        ),
    ] {
        for name in names {
            assert!(contents.keys().any(|path| path.trim_end_matches(".gz").ends_with(&format!("/{name}"))), "{name}");
        }
    }
}

/// The program out of each package.
fn shipped_programs() -> [(&'static str, Vec<u8>); 2] {
    let unpacked = tempfile::tempdir().unwrap();
    let place = unpacked.path().to_str().unwrap();
    said("dpkg-deb", &["--extract", &package("tandem_", ".deb"), place]);
    let of_deb = fs::read(unpacked.path().join("usr/sbin/tandem")).unwrap();
    let unpack = format!(
        "rpm2cpio '{}' | cpio --quiet --extract --to-stdout ./usr/sbin/tandem > '{place}/of-rpm'",
        package("tandem-", ".rpm")
    );
    said("sh", &["-c", &unpack]);
    [("deb", of_deb), ("rpm", fs::read(unpacked.path().join("of-rpm")).unwrap())]
}

/// The lab builds a program that can be told to lose writes, to see that its checks can fail. It is not what is shipped.
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

/// The model and the generator are programs for a checkout: neither they nor their code is in what is shipped.
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
    for begin in ["tandem", "tandem-dropin"] {
        let contents = [of_rpm(&package(&format!("{begin}-"), ".rpm")), of_deb(&package(&format!("{begin}_"), ".deb"))];
        for path in contents.iter().flat_map(Contents::keys) {
            assert!(!["tandem-sim", "tandem-generate"].iter().any(|name| path.contains(name)), "{path}");
        }
    }
}

/// The build leaves the names of functions in the binary, for the figures; `make install` strips it.
#[test]
fn what_is_shipped_is_stripped() {
    for (package, program) in shipped_programs() {
        assert!(!program.windows(8).any(|window| window == b".symtab\0"), "{package}: the program has its symbols");
    }
}

/// Their licences ask for it: who wrote what is linked in, and under which terms.
#[test]
fn the_libraries_that_are_linked_in_are_named() {
    let unpacked = tempfile::tempdir().unwrap();
    said("dpkg-deb", &["--extract", &package("tandem_", ".deb"), unpacked.path().to_str().unwrap()]);
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
    // What only builds or tests is not in the binary.
    for words in ["\nproptest ", "\nprost-build ", "\nclap_mangen "] {
        assert!(!text.contains(words), "{words}");
    }
}

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
    let depends = said("dpkg-deb", &["--field", &package("tandem_", ".deb"), "Depends"]);
    let requires = said("rpm", &["--query", "--package", "--requires", &package("tandem-", ".rpm")]);
    // What a set-up through ssh alone types is recommended: a cluster that is there runs without it.
    let recommends = said("dpkg-deb", &["--field", &package("tandem_", ".deb"), "Recommends"]);
    let recommended = said("rpm", &["--query", "--package", "--recommends", &package("tandem-", ".rpm")]);
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
        // Every Debian has its essential packages, which nobody names.
        let essential = said("dpkg-query", &["--show", "--showformat=${Essential}", owner]) == "yes";
        let named = depends.split(", ").any(|one| one.split(' ').next() == Some(owner));
        assert!(essential || named, "{program}: {owner}: {depends}");
        let rpm = owner.replace("-cli-utils", "-cli");
        assert!(requires.lines().any(|one| one.split(' ').next() == Some(&rpm)), "{program}: {rpm}: {requires}");
    }
}

#[test]
fn the_dropin_conflicts_with_what_it_replaces() {
    let rpm = said("rpm", &["--query", "--package", "--conflicts", &package("tandem-dropin-", ".rpm")]);
    let deb = said("dpkg-deb", &["--field", &package("tandem-dropin_", ".deb"), "Conflicts"]);
    for conflicts in [rpm, deb] {
        assert!(conflicts.contains("fence-agents-redfish") && conflicts.contains("resource-agents"), "{conflicts}");
    }
}

#[test]
fn all_packages_have_the_version_that_the_binary_tells() {
    let version = env!("CARGO_PKG_VERSION");
    for begin in ["tandem", "tandem-dropin"] {
        let rpm = package(&format!("{begin}-"), ".rpm");
        assert_eq!(said("rpm", &["--query", "--package", "--queryformat", "%{VERSION}", &rpm]), version);
        let deb = said("dpkg-deb", &["--field", &package(&format!("{begin}_"), ".deb"), "Version"]);
        assert_eq!(deb.trim(), format!("{version}-1"));
    }
    let depends = said("dpkg-deb", &["--field", &package("tandem-dropin_", ".deb"), "Depends"]);
    assert!(depends.contains(&format!("tandem (= {version}-1)")), "{depends}");
}

#[test]
fn rpmlint_has_nothing_to_say_that_is_not_explained() {
    let spec = root().join("rpm/tandem.spec");
    let config = root().join("rpm/rpmlint.toml");
    let (tandem, dropin) = (package("tandem-", ".rpm"), package("tandem-dropin-", ".rpm"));
    let text = said("rpmlint", &["--config", config.to_str().unwrap(), spec.to_str().unwrap(), &tandem, &dropin]);
    assert!(text.contains("0 errors, 0 warnings"), "{text}");
}
