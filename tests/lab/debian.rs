//! Files out of Debian's packages, of any of its suites, through a private apt configuration: the machine's own packages
//! stay as they are.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sh::{self, Result};

const KEYRINGS: &str = "/usr/share/keyrings/debian-archive-trixie-automatic.gpg,\
                        /usr/share/keyrings/debian-archive-trixie-stable.gpg,\
                        /usr/share/keyrings/debian-archive-bookworm-automatic.gpg,\
                        /usr/share/keyrings/debian-archive-bookworm-stable.gpg";
const MIRROR: &str = "http://deb.debian.org/debian";
/// Where what was made of packages is kept.
pub const CACHE: &str = "/var/cache/tandem-lab";

/// Downloads `packages` of `suite` and unpacks them all into `work/unpacked`.
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
    let source = format!("deb [signed-by={KEYRINGS}] {MIRROR} {suite} main\n");
    sh::write(&work.join("sources.list"), source)?;
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
        // Else it goes on without the lists that it could not fetch.
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
