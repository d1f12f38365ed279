//! A virtual machine's disks, and the initrd that it boots with.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{guest, tree};
use crate::cluster;
use crate::host::blank::Blank;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::host::tls;
use crate::programs::release;
use crate::sh::{self, Result};

/// The lab's setting for virtual machines on which etcd has a disk of its own.
pub const ETCD_DISK: &str = "etcd-disk";
/// The kernel drivers that the initrd loads, in this order. Each comes after the drivers that it depends on.
const DRIVERS: &[&str] =
    &["virtio_pci", "virtio_blk", "ext4", "virtio_net", "virtio_console", "virtio_rng", WATCHDOG, "softdog", "overlay"];
const WATCHDOG: &str = "i6300esb";
/// The time-out in seconds that the watchdog's driver gets; its default is 30. A shutdown sets another time-out.
const BITES_AFTER: u32 = 10;
/// The word on the kernel's command line that makes a virtual machine print [`WORD`] and switch itself off. The printed text shows that
/// KVM works.
pub const PROBE: &str = "lab.probe";
pub const WORD: &str = "the lab's kernel runs";

/// Returns the script that is the initrd's `init`, its only program.
fn init() -> String {
    format!(
        "#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
if $b grep -q {PROBE} /proc/cmdline; then
    echo \"{WORD}\"
    $b poweroff -f
fi
$b umount /proc
for driver in /drivers/*; do
    case $driver in
        *-{WATCHDOG}.*) $b insmod $driver heartbeat={BITES_AFTER} ;;
        *) $b insmod $driver ;;
    esac
done
$b mount -t devtmpfs dev /dev
until [ -b /dev/vda ]; do $b usleep 20000; done
$b mount -t ext4 -o rw,relatime /dev/vda /root || exec $b sh
$b mount -o move /dev /root/dev
exec $b switch_root /root /sbin/init
"
    )
}

/// A disk of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// The root file system.
    Root,
    /// The file system of `/var/lib/etcd`, in a lab that wants one.
    Etcd,
}

impl Drive {
    /// Returns the disks of this lab's machines, in the order of their devices.
    pub fn of(lab: &Lab) -> &'static [Self] {
        let has_both = lab.setting(ETCD_DISK).is_some_and(|word| !word.is_empty());
        if has_both { &[Self::Root, Self::Etcd] } else { &[Self::Root] }
    }

    /// Returns the word that names this disk in the names of its files on this machine, and on QEMU's command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Root => "disk",
            Self::Etcd => ETCD_DISK,
        }
    }

    pub fn parse(word: &str) -> Result<Self> {
        let all = [Self::Root, Self::Etcd];
        all.into_iter().find(|drive| drive.word() == word).ok_or_else(|| format!("'{word}' is no disk").into())
    }

    /// Returns the size of this disk. The disk's file is sparse.
    fn size(self) -> &'static str {
        match self {
            Self::Root => "6G",
            Self::Etcd => "1G",
        }
    }

    pub fn image(self, lab: &Lab, node: Node) -> PathBuf {
        lab.node_dir(node).join(format!("{}.raw", self.word()))
    }
}

pub fn kernel(lab: &Lab) -> PathBuf {
    lab.dir().join("vmlinuz")
}

pub fn initrd(lab: &Lab) -> PathBuf {
    lab.dir().join("initrd")
}

/// Copies the node's own files into the tree of packages, and makes the node's disk of that tree. The copies replace
/// those of the node that got its disk before. In a lab with [`ETCD_DISK`] it also
/// makes an empty disk for etcd.
pub fn make(lab: &Lab, node: Node) -> Result<()> {
    let (tree, etc, root) = (tree::path(lab), lab.disk(node, "etc"), lab.disk(node, "root"));
    sh::make_dir(&etc.join("systemd/system"))?;
    sh::write(&etc.join("systemd/system/lab-net.service"), guest::net_unit(node))?;
    if Drive::of(lab).contains(&Drive::Etcd) {
        guest::mount_etcd_disk(&etc.join("systemd/system"))?;
    }
    for (files, to) in [(&etc, "etc"), (&root, "root")] {
        if files.exists() {
            sh::must(Command::new("cp").arg("--archive").arg(files.join(".")).arg(tree.join(to)))?;
        }
    }
    guest::authorize(&tree.join("root/.ssh"), &lab.pki().join("ssh.pub"))?;
    if Blank::of(lab).is_none() {
        make_first_cib(lab, &tree)?;
    }
    for drive in Drive::of(lab) {
        let mut command = Command::new("mke2fs");
        command.args(["-q", "-t", "ext4", "-m", "0", "-L", drive.word(), "-E", "root_owner=0:0"]);
        if *drive == Drive::Root {
            command.arg("-d").arg(&tree);
        }
        sh::must(command.arg(drive.image(lab, node)).arg(drive.size()))?;
    }
    Ok(())
}

fn make_first_cib(lab: &Lab, tree: &Path) -> Result<()> {
    let cib = tree.join("var/lib/pacemaker/cib/cib.xml");
    tls::write_secret(&cib, cluster::FIRST_CIB.as_bytes())?;
    let (user, group) = release::hacluster(lab)?;
    Ok(chown(&cib, Some(user), Some(group))?)
}

/// Makes copies of the kernel and of an initrd that loads the drivers and mounts the disk. This initrd needs a tenth
/// of the time of the distribution's own.
pub fn make_initrd(lab: &Lab, tree: &Path) -> Result<()> {
    let modules = fs::read_dir(tree.join("usr/lib/modules"))?.flatten().next().ok_or("the tree has no kernel")?;
    let release = modules.file_name().to_string_lossy().into_owned();
    fs::copy(tree.join("boot").join(format!("vmlinuz-{release}")), kernel(lab))?;
    let root = lab.dir().join("initrd-root");
    for dir in ["bin", "dev", "proc", "root", "drivers"] {
        sh::make_dir(&root.join(dir))?;
    }
    fs::copy(tree.join("usr/bin/busybox").as_path(), root.join("bin/busybox"))
        .or_else(|_| fs::copy(tree.join("bin/busybox"), root.join("bin/busybox")))?;
    let program = root.join("init");
    sh::write(&program, init())?;
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    for (number, driver) in drivers(tree, &release)?.iter().enumerate() {
        // A release with compressed drivers has a kernel that can decompress them.
        let file = tree.join(driver.trim_start_matches('/'));
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        fs::copy(&file, root.join("drivers").join(format!("{number:02}-{name}")))?;
    }
    let pack = "cd \"$1\" && find . | cpio --quiet -o -H newc > \"$2\"";
    sh::must(Command::new("sh").args(["-c", pack, "sh"]).arg(&root).arg(initrd(lab)))?;
    Ok(fs::remove_dir_all(root)?)
}

/// Returns the files of the drivers and of the modules that they depend on, each once.
fn drivers(tree: &Path, release: &str) -> Result<Vec<String>> {
    let mut files: Vec<String> = Vec::new();
    for driver in DRIVERS {
        let said = tree::run(tree, &["modprobe", "--set-version", release, "--show-depends", driver])?;
        for file in said.lines().filter_map(|line| line.strip_prefix("insmod ")).map(str::trim) {
            if !files.iter().any(|known| known == file) {
                files.push(file.to_owned());
            }
        }
    }
    Ok(files)
}
