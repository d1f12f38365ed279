//! The contents of a host's disks before its first boot: configuration, certificates, and the installed program. Also
//! etcd's own disk, for hosts that have one.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster;
use crate::host::blank::{self, Blank};
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::host::tls;
use crate::programs;
use crate::programs::release;
use crate::sh::{self, Result};

/// The directories, relative to `/var`, that Pacemaker's user `hacluster` must be able to write.
const CLUSTER_USERS: &[&str] = &[
    "lib/pacemaker",
    "lib/pacemaker/blackbox",
    "lib/pacemaker/cib",
    "lib/pacemaker/cores",
    "lib/pacemaker/pengine",
    "log/pacemaker",
];
const ROOTS: &[&str] =
    &["lib/corosync", "lib/etcd", "lib/containers", "lib/cni", "lib/pcsd", "log/corosync", "log/pcsd", "log/cluster"];
/// The directory of Tandem's systemd units, relative to the host's `/usr`.
const UNITS: &str = "lib/systemd/system";

/// podman's configuration in a host. It selects `runc`, because crun needs more of the cgroup tree than a plain
/// container host has. podman does not use systemd for cgroups or a journal. The limits suit a machine that does not
/// allow to raise them.
const CONTAINERS_CONF: &str = r#"[engine]
runtime = "runc-lab"
cgroup_manager = "cgroupfs"
events_logger = "file"

[engine.runtimes]
runc-lab = ["/usr/sbin/runc-lab"]

[containers]
default_ulimits = ["nofile=1024:4096", "nproc=1024:4096"]
pids_limit = 0
log_driver = "k8s-file"
"#;

/// A wrapper of `runc` that sets a container's OOM score to 0, because a machine without `CAP_SYS_RESOURCE` cannot
/// lower it.
const RUNC: &str = "#!/bin/sh
bundle=
for word; do
    case $bundle in --bundle) sed -i 's/\"oomScoreAdj\":-[0-9]*/\"oomScoreAdj\":0/' \"$word/config.json\" ;; esac
    bundle=$word
done
exec runc \"$@\"
";

/// Fills the disks of one host, before its first boot.
pub fn create(lab: &Lab, node: Node, authkey: &[u8]) -> Result<()> {
    for role in ["etc", "usr", "var-lib", "var-log", "var-tmp"] {
        sh::make_dir(&lab.disk(node, role))?;
    }
    for overlay in ["etc", "usr"] {
        sh::make_dir(&lab.node_dir(node).join("work").join(overlay))?;
        // The overlay's root takes its mode from this directory.
        fs::set_permissions(lab.disk(node, overlay), fs::Permissions::from_mode(0o755))?;
    }
    fs::set_permissions(lab.disk(node, "var-tmp"), fs::Permissions::from_mode(0o1777))?;
    make_var(lab, node)?;
    make_etc(lab, node)?;
    match Blank::of(lab) {
        Some(kind) => blank::furnish(lab, node, kind)?,
        None => make_cluster(lab, node, authkey)?,
    }
    write_uuid(lab, node)?;
    install_program(lab, node)?;
    configure_podman(lab, node)?;
    install_runc(lab, node)
}

/// Returns the directory of the machine that is mounted over the host's `/sys/class`.
pub fn devices(lab: &Lab, node: Node) -> PathBuf {
    lab.node_dir(node).join("class")
}

/// Writes the UUID that the host's BMC reports to the host's `product_uuid`. This machine's firmware may report no
/// UUID, and would report the same one to both hosts.
fn write_uuid(lab: &Lab, node: Node) -> Result<()> {
    let dmi = devices(lab, node).join("dmi/id");
    sh::make_dir(&dmi)?;
    sh::write(&dmi.join("product_uuid"), format!("{}\n", node.uuid()))
}

/// Writes the configuration for a virtual machine's disk, and a copy of the `tandem` binary. The lab replays the
/// node's decisions with that copy.
pub fn create_for_vm(lab: &Lab, node: Node, authkey: &[u8]) -> Result<()> {
    for role in ["etc", "usr", "var-log"] {
        sh::make_dir(&lab.disk(node, role))?;
    }
    make_etc(lab, node)?;
    if Blank::of(lab).is_none() {
        make_cluster_etc(lab, node, authkey)?;
    }
    install_program(lab, node)
}

/// Returns the directory of the machine that is the host's `/var/lib/etcd`. It is a mount point if etcd has a disk of
/// its own.
pub fn mount_point(lab: &Lab, node: Node) -> PathBuf {
    lab.disk(node, "var-lib").join("etcd")
}

/// Returns the directory of the machine that holds etcd's data. It is on etcd's own disk if there is one, and
/// otherwise the directory at [`mount_point`].
pub fn data_dir(lab: &Lab, node: Node) -> PathBuf {
    let own = own_disk(lab, node);
    if own.is_dir() { own } else { mount_point(lab, node) }
}

/// Returns the path of the directory that replaces a disk of etcd's own. The directory exists only after [`give_own_disk`].
fn own_disk(lab: &Lab, node: Node) -> PathBuf {
    lab.disk(node, "etcd")
}

/// Gives etcd a disk of its own that holds its present data. The host must be off.
pub fn give_own_disk(lab: &Lab, node: Node) -> Result<()> {
    let (own, point) = (own_disk(lab, node), mount_point(lab, node));
    if !own.is_dir() {
        fs::rename(&point, &own)?;
        sh::make_dir(&point)?;
        fs::set_permissions(&point, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn unmounted(node: Node) -> String {
    format!("unmounted-{node}")
}

/// Sets whether the next boots of the host mount etcd's own disk at `/var/lib/etcd`.
pub fn set_mounted(lab: &Lab, node: Node, on: bool) -> Result<()> {
    lab.event(&format!(
        "etcd's disk of {node} is {}",
        if on { "mounted from its next boot on" } else { "not mounted" }
    ));
    lab.set(&unmounted(node), if on { "" } else { "yes" })
}

/// Returns the directory of etcd's own disk. `None` if a boot mounts no such disk.
pub fn mounted(lab: &Lab, node: Node) -> Option<PathBuf> {
    let is_mounted = lab.setting(&unmounted(node)).is_none_or(|text| text.is_empty());
    Some(own_disk(lab, node)).filter(|own| is_mounted && own.is_dir())
}

pub fn empty(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir)?.flatten() {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(&path)? } else { fs::remove_file(&path)? }
    }
    Ok(())
}

/// Replaces the contents of the directory `to` with those of `from`, including owners and times.
pub fn replace(from: &Path, to: &Path) -> Result<()> {
    sh::make_dir(to)?;
    empty(to)?;
    sh::run("cp", &[OsStr::new("-a"), from.join(".").as_os_str(), to.as_os_str()]).map(drop)
}

/// Returns the place on the machine of a path that is relative to the host's `/var`.
fn place(lab: &Lab, node: Node, path: &str) -> PathBuf {
    let (role, rest) = path.split_once('/').unwrap_or((path, ""));
    lab.disk(node, &format!("var-{role}")).join(rest)
}

fn make_var(lab: &Lab, node: Node) -> Result<()> {
    let (user, group) = release::hacluster(lab)?;
    for path in CLUSTER_USERS {
        let dir = place(lab, node, path);
        sh::make_dir(&dir)?;
        chown(&dir, Some(user), Some(group))?;
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o770))?;
    }
    Ok(())
}

/// Writes the files of a configured cluster to a host's disks: Corosync's configuration, the first CIB, and etcd's
/// certificates.
fn make_cluster(lab: &Lab, node: Node, authkey: &[u8]) -> Result<()> {
    let (user, group) = release::hacluster(lab)?;
    let cib = place(lab, node, "lib/pacemaker/cib/cib.xml");
    tls::write_secret(&cib, cluster::FIRST_CIB.as_bytes())?;
    chown(&cib, Some(user), Some(group))?;
    for path in ROOTS {
        sh::make_dir(&place(lab, node, path))?;
    }
    fs::set_permissions(place(lab, node, "lib/etcd"), fs::Permissions::from_mode(0o700))?;
    make_cluster_etc(lab, node, authkey)
}

fn make_etc(lab: &Lab, node: Node) -> Result<()> {
    let etc = lab.disk(node, "etc");
    sh::make_dir(&etc.join("ssl/certs"))?;
    sh::write(&etc.join("hostname"), format!("{node}\n"))?;
    sh::write(&etc.join("hosts"), format!("127.0.0.1 localhost\n10.99.0.1 {}\n10.99.0.2 {}\n", Node::One, Node::Two))?;
    // The hosts trust the lab's CA as a site's hosts trust the site's CA, so that BMC certificates are verified.
    let mut trusted = fs::read(release::root(lab).join("etc/ssl/certs/ca-certificates.crt")).unwrap_or_default();
    trusted.extend(fs::read(lab.pki().join("ca.crt"))?);
    sh::write(&etc.join("ssl/certs/ca-certificates.crt"), trusted)
}

fn make_cluster_etc(lab: &Lab, node: Node, authkey: &[u8]) -> Result<()> {
    let etc = lab.disk(node, "etc");
    for dir in ["corosync", "tandem"] {
        sh::make_dir(&etc.join(dir))?;
    }
    sh::write(&etc.join("corosync/corosync.conf"), cluster::corosync_conf(lab))?;
    tls::write_secret(&etc.join("corosync/authkey"), authkey)?;
    let dir = etc.join("tandem");
    let name = tls::etcd_name(node);
    copy(&lab.pki().join("ca.crt"), &dir.join("ca.crt"))?;
    copy(&lab.pki().join(format!("{name}.crt")), &dir.join("etcd.crt"))?;
    tls::write_secret(&dir.join("etcd.key"), &fs::read(lab.pki().join(format!("{name}.key")))?)
}

/// Installs the `tandem` binary, its links and its man pages on a host's disks, where the package puts them.
fn install_program(lab: &Lab, node: Node) -> Result<()> {
    let usr = lab.disk(node, "usr");
    if let Some(packages) = programs::packages() {
        // The packages' files begin with `usr`, which is also the name of the disk.
        let disks = usr.parent().unwrap_or(&usr);
        let extract = |package: &PathBuf| sh::run("dpkg-deb", &[Path::new("--extract"), package, disks]).map(drop);
        return packages.iter().try_for_each(extract);
    }
    for dir in ["sbin", "lib/ocf/resource.d/tandem", "share/pacemaker/alerts", "libexec/tandem"] {
        sh::make_dir(&usr.join(dir))?;
    }
    let installed = usr.join("sbin/tandem");
    copy(&programs::tested(), &installed)?;
    fs::set_permissions(&installed, fs::Permissions::from_mode(0o755))?;
    if Blank::of(lab).is_some() {
        install_units(&usr)?;
    }
    sh::must(Command::new(env!("CARGO_BIN_EXE_tandem-generate")).arg(usr.join("share")))?;
    link("/usr/sbin/tandem", &usr.join("lib/ocf/resource.d/tandem/podman-etcd"))?;
    link("/usr/sbin/tandem", &usr.join("share/pacemaker/alerts/tandem-release-locks"))?;
    link("/usr/sbin/tandem", &usr.join("libexec/tandem/alert"))?;
    link("tandem", &usr.join("sbin/fence_redfish_rs"))
}

fn install_units(usr: &Path) -> Result<()> {
    sh::make_dir(&usr.join(UNITS))?;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd"))?.flatten() {
        let name = entry.file_name();
        if [".service", ".timer"].iter().any(|kind| name.to_string_lossy().ends_with(kind)) {
            copy(&entry.path(), &usr.join(UNITS).join(name))?;
        }
    }
    Ok(())
}

fn configure_podman(lab: &Lab, node: Node) -> Result<()> {
    let dir = lab.disk(node, "etc").join("containers");
    sh::make_dir(&dir)?;
    sh::write(&dir.join("containers.conf"), CONTAINERS_CONF)
}

fn install_runc(lab: &Lab, node: Node) -> Result<()> {
    let sbin = lab.disk(node, "usr").join("sbin");
    sh::make_dir(&sbin)?;
    let runc = sbin.join("runc-lab");
    sh::write(&runc, RUNC)?;
    fs::set_permissions(&runc, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

fn link(target: &str, link: &Path) -> Result<()> {
    symlink(target, link).map_err(|error| format!("cannot link {}: {error}", link.display()).into())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()).into())
}
