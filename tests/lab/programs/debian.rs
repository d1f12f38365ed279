//! Files and whole root trees made of Debian's packages, of any of its suites. A private apt configuration leaves the
//! machine's own packages as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};
use ring::digest::{SHA256, digest};

use crate::sh::{self, Result};

const KEYRINGS: &str = "/usr/share/keyrings/debian-archive-trixie-automatic.gpg,\
                        /usr/share/keyrings/debian-archive-trixie-stable.gpg,\
                        /usr/share/keyrings/debian-archive-bookworm-automatic.gpg,\
                        /usr/share/keyrings/debian-archive-bookworm-stable.gpg";
const MIRROR: &str = "http://deb.debian.org/debian";
/// The directory of this machine that keeps what the lab has made of Debian's packages.
pub const CACHE: &str = "/var/cache/tandem-lab";

/// The options of `mmdebstrap` for a root tree, in addition to its suite and packages. They leave documentation out,
/// because it is two thirds of some packages. They also keep the packages' services from starting on this machine.
const TREE_OPTIONS: &[&str] = &[
    "--mode=root",
    "--variant=minbase",
    "--aptopt=APT::Install-Recommends \"false\"",
    "--aptopt=Acquire::Languages \"none\"",
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--essential-hook=printf '#!/bin/sh\\nexit 101\\n' > \"$1/usr/sbin/policy-rc.d\"; chmod 755 \"$1/usr/sbin/policy-rc.d\"",
    "--customize-hook=rm \"$1/usr/sbin/policy-rc.d\" \"$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap\"",
];

/// Returns the root file system of a minimal machine of the Debian release `suite` with `packages` and their dependencies. No program has
/// ever run in it. The first call makes it in a minute or two. It is kept under a name derived from the suite, the packages and the
/// options. Callers must not write to it.
pub fn root_tree(suite: &str, packages: &[&str]) -> Result<PathBuf> {
    let made_of = [&[suite][..], packages, TREE_OPTIONS].concat().join("\n");
    let hash = digest(&SHA256, made_of.as_bytes());
    let hash = u64::from_be_bytes(hash.as_ref()[..8].try_into()?);
    let tree = Path::new(CACHE).join(format!("root-{suite}-{hash:016x}"));
    sh::make_dir(Path::new(CACHE))?;
    // Labs that run in parallel need the same tree: the second one waits for the first.
    let lock = fs::File::create(tree.with_extension("lock"))?;
    let _alone =
        Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| format!("{}: {errno}", tree.display()))?;
    if tree.is_dir() {
        return Ok(tree);
    }
    println!("making a machine of Debian's {suite} from its packages");
    let unfinished = tree.with_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    let done = sh::must(
        Command::new("mmdebstrap")
            .args(TREE_OPTIONS)
            .arg(format!("--include={}", packages.join(",")))
            .arg(suite)
            .arg(&unfinished)
            .arg(source(suite)),
    );
    if let Err(error) = done {
        let _ = fs::remove_dir_all(&unfinished);
        return Err(format!("cannot make a machine of Debian's {suite}: {error}").into());
    }
    fs::rename(&unfinished, &tree)?;
    Ok(tree)
}

fn source(suite: &str) -> String {
    format!("deb [signed-by={KEYRINGS}] {MIRROR} {suite} main")
}

/// Downloads `packages` of the Debian release `suite`, and unpacks them all into `work/unpacked`.
pub fn unpack(suite: &str, packages: &[&str], work: &Path) -> Result<()> {
    download(suite, packages, work)?;
    let unpacked = work.join("unpacked");
    for entry in fs::read_dir(work)?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            sh::must(Command::new("dpkg").arg("-x").arg(entry.path()).arg(&unpacked))?;
        }
    }
    Ok(())
}

fn download(suite: &str, packages: &[&str], work: &Path) -> Result<()> {
    for dir in ["lists/partial", "cache/archives/partial"] {
        sh::make_dir(&work.join(dir))?;
    }
    sh::write(&work.join("sources.list"), source(suite) + "\n")?;
    sh::write(&work.join("status"), "")?;
    let at = |path: &str| work.join(path).display().to_string();
    let options = [
        format!("Dir::Etc::sourcelist={}", at("sources.list")),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        "Dir::Etc::preferences=/dev/null".to_owned(),
        "Dir::Etc::preferencesparts=/dev/null".to_owned(),
        format!("Dir::State::lists={}", at("lists")),
        format!("Dir::State::status={}", at("status")),
        format!("Dir::Cache={}", at("cache")),
        "Acquire::Languages=none".to_owned(),
        // Without this option, apt would continue without the lists that it could not fetch.
        "APT::Update::Error-Mode=any".to_owned(),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let fetch: Vec<&str> = [&["download"], packages].concat();
    for words in [&["update"][..], &fetch] {
        let mut command = Command::new("apt-get");
        command.current_dir(work).arg("-q");
        for option in &options {
            command.arg("-o").arg(option);
        }
        let done = sh::output(command.args(words))?;
        if !done.ok {
            let complaint = done.stderr.lines().find(|line| line.starts_with("E: ")).unwrap_or(&done.stderr);
            return Err(format!(
                "{MIRROR} does not give the packages of Debian's {suite} ({}); they are fetched once, so check this \
                 machine's network and type the same again",
                complaint.trim_start_matches("E: ")
            )
            .into());
        }
    }
    Ok(())
}
