//! The etcd image: a root file system of Debian's etcd with its libraries and nothing else. No registry is asked; the
//! package comes from the machine's own suite (3.4) or from Debian 13 (3.5) through a private apt configuration that
//! leaves the machine's packages alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sh::{self, Result};

const CACHE: &str = "/var/cache/tandem-lab";
const KEYRINGS: &str = "/usr/share/keyrings/debian-archive-trixie-automatic.gpg,\
                        /usr/share/keyrings/debian-archive-trixie-stable.gpg,\
                        /usr/share/keyrings/debian-archive-bookworm-automatic.gpg,\
                        /usr/share/keyrings/debian-archive-bookworm-stable.gpg";

/// An etcd release line that the lab can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V3_4,
    V3_5,
}

impl Version {
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "3.4" => Ok(Self::V3_4),
            "3.5" => Ok(Self::V3_5),
            other => Err(format!("the lab has no etcd '{other}'; type --etcd 3.4 or --etcd 3.5").into()),
        }
    }

    pub fn number(self) -> &'static str {
        match self {
            Self::V3_4 => "3.4",
            Self::V3_5 => "3.5",
        }
    }

    /// The Debian release whose `etcd-server` is of this line.
    fn suite(self) -> &'static str {
        match self {
            Self::V3_4 => "bookworm",
            Self::V3_5 => "trixie",
        }
    }
}

/// The image's name inside the hosts.
pub fn name(version: &str) -> String {
    format!("localhost/tandem/etcd:{version}")
}

/// The root file system as a tar file, made on first use and kept.
pub fn rootfs(version: Version) -> Result<PathBuf> {
    let tar = Path::new(CACHE).join(format!("etcd-{}.tar", version.number()));
    if tar.is_file() {
        return Ok(tar);
    }
    println!("making the etcd {} image from Debian's packages", version.number());
    let work = Path::new(CACHE).join(format!("work-{}-{}", version.number(), std::process::id()));
    sh::make_dir(&work)?;
    let made = build(version, &work, &tar);
    let _ = fs::remove_dir_all(&work);
    made.map_err(|error| {
        format!("cannot make the etcd {} image: {error}; are Debian's packages reachable?", version.number())
    })?;
    Ok(tar)
}

fn build(version: Version, work: &Path, tar: &Path) -> Result<()> {
    download(version, work)?;
    let unpacked = work.join("unpacked");
    for entry in fs::read_dir(work)?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            sh::must(Command::new("dpkg").arg("-x").arg(entry.path()).arg(&unpacked))?;
        }
    }
    let root = work.join("root");
    assemble(&unpacked, &root)?;
    let unfinished = work.join("rootfs.tar");
    sh::must(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&unfinished).arg("."))?;
    // Named only when whole: a broken run leaves no half image behind.
    Ok(fs::rename(&unfinished, tar)?)
}

fn download(version: Version, work: &Path) -> Result<()> {
    for dir in ["lists/partial", "cache/archives/partial"] {
        sh::make_dir(&work.join(dir))?;
    }
    let suite = version.suite();
    let source = format!("deb [signed-by={KEYRINGS}] http://deb.debian.org/debian {suite} main\n");
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
        "APT::Sandbox::User=root".to_owned(),
    ];
    for words in [&["update"][..], &["download", "etcd-server", "libc6"][..]] {
        let mut command = Command::new("apt-get");
        command.current_dir(work).arg("-q");
        for option in &options {
            command.arg("-o").arg(option);
        }
        sh::must(command.args(words))?;
    }
    Ok(())
}

/// etcd, the loader and the few libraries that a Go program with cgo opens, all from the same release.
fn assemble(unpacked: &Path, root: &Path) -> Result<()> {
    for dir in ["usr/bin", "usr/lib/x86_64-linux-gnu", "lib64", "etc/ssl/certs", "tmp", "proc", "sys", "dev", "run"] {
        sh::make_dir(&root.join(dir))?;
    }
    fs::copy(unpacked.join("usr/bin/etcd"), root.join("usr/bin/etcd"))?;
    symlink("usr/bin", root.join("bin"))?;
    symlink("usr/lib", root.join("lib"))?;
    // Older releases have their libraries in /lib, newer ones in /usr/lib.
    let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|dir| unpacked.join(dir));
    let find = |name: &str| libraries.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
    for name in ["libc.so.6", "libpthread.so.0", "libresolv.so.2", "libnss_files.so.2", "libnss_dns.so.2"] {
        let path = find(name).ok_or_else(|| format!("Debian's libc6 has no {name}"))?;
        fs::copy(path, root.join("usr/lib/x86_64-linux-gnu").join(name))?;
    }
    let loader = find("ld-linux-x86-64.so.2").ok_or("Debian's libc6 has no loader")?;
    fs::copy(loader, root.join("lib64/ld-linux-x86-64.so.2"))?;
    Ok(())
}
