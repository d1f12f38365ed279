//! The etcd image: a root file system with Debian's etcd, its libraries and nothing else. It needs no registry: the
//! package is from Debian 12 (etcd 3.4) or from Debian 13 (3.5).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::debian::{self, CACHE};
use crate::sh::{self, Result};

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

    /// Returns the Debian suite that has an `etcd-server` of this release line.
    fn suite(self) -> &'static str {
        match self {
            Self::V3_4 => "bookworm",
            Self::V3_5 => "trixie",
        }
    }
}

/// Returns the name that an etcd image of this version has in the hosts' podman.
pub fn name(version: &str) -> String {
    format!("localhost/tandem/etcd:{version}")
}

/// The programs that an etcd image contains in addition to etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tools {
    /// No further programs, because Tandem runs none in the container.
    None,
    /// `etcdctl` and `true`, which the shell agent runs in the container.
    ForTheShellAgent,
}

impl Tools {
    /// Returns the further programs, each as Debian package and path in that package.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::None => &[],
            Self::ForTheShellAgent => &[("etcd-client", "usr/bin/etcdctl"), ("coreutils", "usr/bin/true")],
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::ForTheShellAgent => "-tools",
        }
    }
}

/// Returns an etcd image's root file system as a tar file. The first call makes it.
pub fn rootfs(version: Version, tools: Tools) -> Result<PathBuf> {
    let name = format!("etcd-{}{}", version.number(), tools.suffix());
    let tar = Path::new(CACHE).join(format!("{name}.tar"));
    if tar.is_file() {
        return Ok(tar);
    }
    println!("making the etcd {} image from Debian's packages", version.number());
    let work = Path::new(CACHE).join(format!("work-{name}-{}", std::process::id()));
    sh::make_dir(&work)?;
    let made = build(version, tools, &work, &tar);
    let _ = fs::remove_dir_all(&work);
    made.map_err(|error| format!("cannot make the etcd {} image: {error}", version.number()))?;
    Ok(tar)
}

fn build(version: Version, tools: Tools, work: &Path, tar: &Path) -> Result<()> {
    let mut packages = vec!["etcd-server", "libc6"];
    packages.extend(tools.files().iter().map(|(package, _)| *package));
    debian::unpack(version.suite(), &packages, work)?;
    let (unpacked, root) = (work.join("unpacked"), work.join("root"));
    assemble(&unpacked, &root)?;
    for (_, file) in tools.files() {
        // Older releases have some programs in `/bin`, newer ones in `/usr/bin`.
        let path = [unpacked.join(file), unpacked.join(file.trim_start_matches("usr/"))];
        let path =
            path.iter().find(|path| path.is_file()).ok_or_else(|| format!("Debian's packages have no {file}"))?;
        fs::copy(path, root.join(file))?;
    }
    let unfinished = work.join("rootfs.tar");
    sh::must(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&unfinished).arg("."))?;
    // The file gets its name when it is complete, so that a failed run leaves no partial image.
    Ok(fs::rename(&unfinished, tar)?)
}

/// Copies the files of an image from the unpacked packages: etcd, the loader, and the few libraries that a Go program
/// with cgo opens. All are from the same release.
fn assemble(unpacked: &Path, root: &Path) -> Result<()> {
    for dir in ["usr/bin", "usr/lib/x86_64-linux-gnu", "lib64", "etc/ssl/certs", "tmp", "proc", "sys", "dev", "run"] {
        sh::make_dir(&root.join(dir))?;
    }
    fs::copy(unpacked.join("usr/bin/etcd"), root.join("usr/bin/etcd"))?;
    symlink("usr/bin", root.join("bin"))?;
    symlink("usr/lib", root.join("lib"))?;
    // Older releases have their libraries in `/lib`, newer ones in `/usr/lib`.
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
