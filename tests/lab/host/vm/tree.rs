//! The root file system of the virtual machines before it becomes a disk: Debian's packages, Tandem's own packages
//! installed by `apt`, and etcd's image in podman's store.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{disk, guest};
use crate::host::blank::Blank;
use crate::host::state::Lab;
use crate::programs;
use crate::programs::debian;
use crate::programs::image::{self, Tools, Version};
use crate::programs::release::{self, Release};
use crate::sh::{self, Result};

/// The packages that a virtual machine needs. Each Debian release has the same names.
const PACKAGES: &[&str] = &[
    "linux-image-amd64",
    "systemd",
    "systemd-sysv",
    "dbus",
    "kmod",
    "openssh-server",
    "busybox-static",
    "ca-certificates",
    "openssl",
    "iproute2",
    "procps",
    "psmisc",
    "corosync",
    "pacemaker",
    "pacemaker-cli-utils",
    "pcs",
    "podman",
    "crun",
    "netavark",
    "resource-agents",
];
/// A script that runs a program in the tree of packages as if the tree were the machine. It uses namespaces that end
/// with the program.
const IN_TREE: &str = "set -e
    tree=$1; shift
    mount --make-rprivate /
    mount --bind \"$tree\" \"$tree\"
    mount -t proc proc \"$tree/proc\"
    mount -t sysfs sysfs \"$tree/sys\"
    mount -t cgroup2 cgroup2 \"$tree/sys/fs/cgroup\"
    mount --rbind /dev \"$tree/dev\"
    mount -t tmpfs tmpfs \"$tree/run\"
    exec chroot \"$tree\" \"$@\"";
/// The `policy-rc.d` of the tree of packages. It keeps the packages' services from starting, because there is no
/// machine yet.
const NOTHING_STARTS: &str = "#!/bin/sh\nexit 101\n";

/// Returns the tree of packages of a Debian release. The first call makes it.
pub fn of_packages(release: Release) -> Result<PathBuf> {
    debian::root_tree(release.suite_of_a_vm(), PACKAGES)
}

/// Returns the path of the lab's own copy of the tree of packages.
pub fn path(lab: &Lab) -> PathBuf {
    lab.dir().join("tree")
}

pub fn make(lab: &Lab) -> Result<()> {
    let tree = path(lab);
    sh::must(Command::new("cp").arg("--archive").arg(release::root(lab)).arg(&tree))?;
    install_package(&tree)?;
    import_image(lab, &tree)?;
    guest::configure(&tree, Blank::of(lab))?;
    disk::make_initrd(lab, &tree)
}

fn install_package(tree: &Path) -> Result<()> {
    let packages = programs::packages().ok_or(
        "TANDEM_DEB does not name Tandem's Debian packages, which virtual machines install; type 'make vm-lab'",
    )?;
    let policy = tree.join("usr/sbin/policy-rc.d");
    sh::write(&policy, NOTHING_STARTS)?;
    fs::set_permissions(&policy, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let mut words = ["apt-get", "install", "--quiet", "--yes", "--no-install-recommends"].map(str::to_owned).to_vec();
    for (at, package) in packages.iter().enumerate() {
        let inside = format!("var/tmp/tandem-{at}.deb");
        fs::copy(package, tree.join(&inside)).map_err(|error| format!("{}: {error}", package.display()))?;
        words.push(format!("/{inside}"));
    }
    run(tree, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(fs::remove_file(policy)?)
}

fn import_image(lab: &Lab, tree: &Path) -> Result<()> {
    let version = Version::parse(&lab.setting("etcd").unwrap_or_default())?;
    let tar = "/var/tmp/etcd.tar";
    fs::copy(image::rootfs(version, Tools::None)?, tree.join(tar.trim_start_matches('/')))?;
    let name = image::name(version.number());
    run(tree, &["podman", "--cgroup-manager=cgroupfs", "import", "--quiet", tar, &name])?;
    Ok(fs::remove_file(tree.join(tar.trim_start_matches('/')))?)
}

/// Runs a program in the tree of packages, as if the tree were the machine.
pub fn run(tree: &Path, words: &[&str]) -> Result<String> {
    sh::must(
        Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", IN_TREE, "sh"])
            .arg(tree)
            .args(words)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HOME", "/root")
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}
