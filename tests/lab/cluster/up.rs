//! Brings a lab up: networks, BMCs, disks, both hosts, the cluster, etcd.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cluster::etcd;
use crate::cluster::redundant;
use crate::cluster::teardown;
use crate::cluster::{self, CloneKind};
use crate::host;
use crate::host::blank::{self, Blank};
use crate::host::bmc;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::{self, Lab};
use crate::host::tls;
use crate::host::vm::disk::ETCD_DISK;
use crate::judge::check;
use crate::judge::evidence;
use crate::judge::journals;
use crate::programs::image::{self, Tools, Version};
use crate::programs::release::{self, Release};
use crate::programs::shell_agent::{self, Agent};
use crate::sh::{self, Result};

/// The options of `cargo lab up`.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// The kind of hosts: namespaces or virtual machines.
    pub hosts: host::Kind,
    pub etcd: Version,
    /// The Debian release that the hosts run.
    pub release: Release,
    pub clone: CloneKind,
    /// True for hosts that run Pacemaker only, without fence devices and etcd.
    pub bare: bool,
    /// The state of hosts that have packages but no cluster. `None` for hosts with a cluster.
    pub blank: Option<Blank>,
    /// The seconds from the power button until a host boots. The first boot of the lab has no such delay.
    pub boot_delay: u64,
    /// The resource agent that manages etcd: Tandem's or the shell agent.
    pub agent: Agent,
    /// True if the agent always restarts the survivor's etcd (`recovery=restart`).
    pub restarts: bool,
    /// Corosync's token time-out in milliseconds. `None` for the lab's default.
    pub token: Option<u32>,
    /// True for virtual machines with a disk for etcd alone.
    pub etcd_disk: bool,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            hosts: host::Kind::Namespaces,
            etcd: Version::V3_5,
            release: Release::Own,
            clone: CloneKind::Plain,
            bare: false,
            blank: None,
            boot_delay: 0,
            agent: Agent::Tandem,
            restarts: false,
            token: None,
            etcd_disk: false,
        }
    }
}

/// Brings a lab up. If that fails, it removes what it made so far.
pub fn up(lab: &Lab, wish: Wish) -> Result<()> {
    teardown::make_room(lab)?;
    let began = Instant::now();
    let done = build(lab, wish);
    if let Err(error) = &done {
        let seen = evidence::of_failure(lab).join("\n    ");
        let kept = teardown::keep_logs(lab, "up");
        teardown::down(lab);
        return Err(format!("{error} (logs: {})\n    {seen}", kept.display()).into());
    }
    println!("the lab is up after {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// The directory trees that the machine keeps, and that all labs of a kind share.
#[derive(Debug)]
struct Parts {
    /// The unpacked root file system of the etcd image.
    rootfs: PathBuf,
    /// The root of the hosts' files: `/` of the machine, or a tree of another release's packages.
    root: PathBuf,
}

fn fetch(wish: Wish) -> Result<Parts> {
    let tools = match wish.agent {
        Agent::Tandem => Tools::None,
        Agent::Shell => Tools::ForTheShellAgent,
    };
    let rootfs = image::rootfs(wish.etcd, tools)?;
    let root = match wish.hosts {
        host::Kind::Namespaces => wish.release.root()?,
        host::Kind::Vm => host::vm::packages(wish.release)?,
    };
    Ok(Parts { rootfs, root })
}

/// Makes the shared directory trees without a lab, so that a build can run at the same time. It takes a minute or
/// two.
pub fn fetch_parts(wish: Wish) -> Result<()> {
    check_machine()?;
    fetch(wish).map(drop)
}

fn build(lab: &Lab, wish: Wish) -> Result<()> {
    let began = state::since_epoch();
    check_machine()?;
    let Parts { rootfs, root } = fetch(wish)?;
    sh::make_dir(&lab.dir())?;
    let _being_built = lab.lock_whole()?;
    fs::set_permissions(lab.dir(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    release::remember(lab, &root)?;
    lab.set("hosts", wish.hosts.word())?;
    lab.set("etcd", wish.etcd.number())?;
    lab.set("clone", wish.clone.word())?;
    lab.set("agent", wish.agent.word())?;
    blank::remember(lab, wish.blank)?;
    lab.set("recovery", if wish.restarts { "restart" } else { "" })?;
    lab.set(cluster::TOKEN, &wish.token.map(|token| token.to_string()).unwrap_or_default())?;
    lab.set(ETCD_DISK, if wish.etcd_disk { "own" } else { "" })?;
    tls::create(lab)?;
    let authkey = random_key()?;
    host::prepare(lab)?;
    if wish.blank.is_some() {
        blank::make_keys(lab)?;
    }
    for node in NODES {
        host::make_disks(lab, node, &authkey)?;
        if wish.agent == Agent::Shell {
            shell_agent::install(lab, node)?;
        }
    }
    net::create(lab)?;
    bmc::start(lab)?;
    for node in NODES {
        power::on(lab, node)?;
    }
    println!("hosts are on");
    import_images(lab, &rootfs, wish.etcd)?;
    if wish.blank.is_some() {
        println!("two hosts with the packages, and no cluster");
        return lab.set("boot-delay", &wish.boot_delay.to_string());
    }
    wait_online(lab)?;
    println!("two nodes are online in Pacemaker");
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    if wish.bare {
        return Ok(());
    }
    cluster::create_fencing(lab, Node::One)?;
    match wish.agent {
        Agent::Tandem => cluster::create_etcd(lab, Node::One, wish.clone)?,
        Agent::Shell => shell_agent::create(lab, Node::One)?,
    }
    let voters = etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    println!("etcd has two voters, {} leads", voters.leader);
    redundant::wait(lab)?;
    journals::must_hold_no_error(lab, began, journals::NO_FENCING_YET)
}

fn check_machine() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Err("the lab makes namespaces and needs root; type 'sudo -E cargo lab ...' or become root".into());
    }
    for program in ["corosync", "pacemakerd", "pcs", "podman", "runc", "ip", "nsenter", "dpkg", "mmdebstrap"] {
        let found = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().any(|dir| Path::new(dir).join(program).is_file());
        if !found {
            return Err(format!("{program} is not installed; run tests/lab/setup").into());
        }
    }
    Ok(())
}

fn random_key() -> Result<Vec<u8>> {
    let mut key = vec![0_u8; 256];
    fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(key)
}

/// Imports the etcd image into podman on both hosts. Both imports run at the same time, because unpacking takes most
/// of the time.
pub fn import_images(lab: &Lab, rootfs: &Path, version: Version) -> Result<()> {
    let name = image::name(version.number());
    std::thread::scope(|scope| {
        let imports = NODES.map(|node| {
            let name = &name;
            scope.spawn(move || {
                host::wait_booted(lab, node)?;
                host::import_image(lab, node, rootfs, name)
            })
        });
        imports.into_iter().try_for_each(|import| import.join().map_err(|_| "an import panicked")?)
    })
}

/// Waits until Pacemaker on both nodes reports both nodes as online.
pub fn wait_online(lab: &Lab) -> Result<()> {
    let online = || NODES.map(|node| cluster::online(lab, node));
    let all = |seen: &[Vec<Node>; 2]| seen.iter().all(|nodes| nodes.len() == NODES.len());
    check::within(Duration::from_secs(120), "both nodes have both online in Pacemaker", online, all).map(drop)
}
