//! A host's pid 1: mounts what makes it a machine of its own, starts its services, and reaps orphans.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::wait::wait;

use crate::host::blank::Blank;
use crate::host::disks;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::host::syslog;
use crate::programs::release;
use crate::sh::{self, Result};

/// The device files that programs expect. Each is the machine's own, bound into the host's private `/dev`.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty", "fuse", "net/tun"];
/// The kernel files with which Pacemaker resets its machine at once. The lab makes writes to them ineffective in a host, because they
/// would reset the real machine.
const DEADLY: &[&str] = &["/proc/sysrq-trigger", "/proc/sys/kernel/sysrq"];

/// The file that exists once the host's mounts are complete. A program that enters the host earlier still sees the
/// machine's own files.
pub const BOOTED: &str = "/run/lab-booted";

/// Runs as the host's pid 1, and does not return while the host lives.
pub fn run(lab: &Lab, node: Node) -> Result<()> {
    nix::unistd::sethostname(node.name())?;
    let recorded = || lab.init_record(node).exists();
    if !sh::wait_for_quietly(Duration::from_secs(10), Duration::from_millis(2), recorded) {
        return Err("nobody recorded this host's pid 1".into());
    }
    let blank = Blank::of(lab).is_some();
    mount_all(lab, node)?;
    sh::write(Path::new(BOOTED), "")?;
    syslog::start(node)?;
    Command::new("/proc/self/exe").args([if blank { "host-units" } else { "host-services" }, node.name()]).spawn()?;
    loop {
        // The host's orphans become children of pid 1, which has to reap them.
        if wait() == Err(Errno::ECHILD) {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

fn mount_all(lab: &Lab, node: Node) -> Result<()> {
    // This is the first step, so that no later mount shows on the machine.
    change("/", MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    for top in ["etc", "usr"] {
        overlay(lab, node, top)?;
    }
    dev(&lab.node_dir(node).join("dev"))?;
    special("proc", "/proc", "")?;
    for file in DEADLY {
        if Path::new(file).exists() {
            bind(Path::new("/dev/null"), Path::new(file))?;
        }
    }
    special("sysfs", "/sys", "")?;
    let layers = format!("lowerdir={}:/sys/class", disks::devices(lab, node).display());
    special("overlay", "/sys/class", &layers)?;
    if Blank::of(lab).is_some() {
        bind(&lab.disk(node, "root"), Path::new("/root"))?;
    }
    // Mounts only the unified hierarchy, so that podman works the same on all machines.
    special("cgroup2", "/sys/fs/cgroup", "")?;
    for dir in ["/run", "/tmp"] {
        special("tmpfs", dir, "mode=0755")?;
    }
    for dir in ["/run/lock", "/run/crm", "/run/resource-agents", "/run/user/0"] {
        sh::make_dir(Path::new(dir))?;
    }
    let hacluster = nix::unistd::User::from_name("hacluster")?.ok_or("user hacluster is missing")?;
    nix::unistd::chown("/run/crm", Some(hacluster.uid), Some(hacluster.gid))?;
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    fs::set_permissions("/tmp", std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
    bind(&lab.disk(node, "var-log"), Path::new("/var/log"))?;
    bind(&lab.disk(node, "var-tmp"), Path::new("/var/tmp"))?;
    if let Some(disk) = disks::mounted(lab, node) {
        bind(&disk, &disks::mount_point(lab, node))?;
    }
    // This is the last step, because it hides the lab's own directory: a host sees neither its disks' backing nor the
    // other host.
    bind(&lab.disk(node, "var-lib"), Path::new("/var/lib"))
}

fn overlay(lab: &Lab, node: Node, top: &str) -> Result<()> {
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        release::root(lab).join(top).display(),
        lab.disk(node, top).display(),
        lab.node_dir(node).join("work").join(top).display()
    );
    special("overlay", &format!("/{top}"), &options)
}

/// Makes a private `/dev` for the host, so that `/dev/log` and `/dev/shm` are its own.
fn dev(staging: &Path) -> Result<()> {
    sh::make_dir(staging)?;
    let at = |name: &str| -> PathBuf { staging.join(name) };
    mount(Some("tmpfs"), staging, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))?;
    for name in DEVICES {
        let source = Path::new("/dev").join(name);
        if source.exists() {
            if let Some(parent) = at(name).parent() {
                sh::make_dir(parent)?;
            }
            sh::write(&at(name), "")?;
            bind(&source, &at(name))?;
        }
    }
    for dir in ["pts", "shm", "mqueue"] {
        sh::make_dir(&at(dir))?;
    }
    bind(Path::new("/dev/pts"), &at("pts"))?;
    mount(Some("tmpfs"), &at("shm"), Some("tmpfs"), MsFlags::empty(), Some("mode=1777"))?;
    for (name, target) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, at(name))?;
    }
    mount(Some(staging), "/dev", None::<&str>, MsFlags::MS_MOVE, None::<&str>)
        .map_err(|errno| format!("cannot move /dev into place: {errno}"))?;
    special("mqueue", "/dev/mqueue", "")
}

fn special(kind: &str, target: &str, options: &str) -> Result<()> {
    mount(Some(kind), target, Some(kind), MsFlags::empty(), Some(options))
        .map_err(|errno| format!("cannot mount {kind} on {target}: {errno}").into())
}

fn bind(source: &Path, target: &Path) -> Result<()> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .map_err(|errno| format!("cannot bind {} to {}: {errno}", source.display(), target.display()).into())
}

fn change(target: &str, flags: MsFlags) -> Result<()> {
    mount(None::<&str>, target, None::<&str>, flags, None::<&str>)
        .map_err(|errno| format!("cannot change the mount {target}: {errno}").into())
}
