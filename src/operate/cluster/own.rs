//! The facts of this node's own machine, read from its files and its kernel without starting a program. The other node needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use super::etcds::{self, Here};
use super::{Certificate, Cluster, Collected, DueHandOver, MovedAside, certificates, route};
use crate::adapters::data_dir;
use crate::adapters::https::address::Address;
use crate::adapters::ocf::env::Env;
use crate::adapters::pacemaker::seen::Configuration;
use crate::adapters::systemd;
use crate::agent::resource::context;
use crate::base::Fact;
use crate::decide::evidence::BootState;
use crate::os::clock;
use crate::os::dmi;
use crate::os::regular_file;
use crate::records::bmc_note::{self, BmcNote};
use crate::records::state_file;

const HTTPS_PORT: u16 = 443;

/// Directory into which `tandem setup` and `tandem certs rotate-ca` write join files.
const JOIN_FILES: &str = "/etc/tandem";
/// Largest number of expired join files that a node publishes, in case the directory is full of `.join` files.
const MOST_JOIN_FILES: usize = 8;
/// Lifetime of a join file, in seconds. No command accepts an older join file.
const JOIN_FILES_LAST: u64 = 24 * 3_600;

/// Replaces this node's entry in `cluster.collected` by its current facts, and returns these.
pub fn take_own(cluster: &mut Cluster) -> Collected {
    let before = cluster.collected.get(&cluster.here).and_then(Fact::known);
    // Keeps the last comparison with the Secrets, because the collector repeats it only every few minutes.
    let secrets = before.map(|before| before.secrets.clone()).unwrap_or_default();
    let own = Collected { secrets, ..collect(cluster) };
    // Without this node's name in the cluster the facts have no key to be stored under.
    if !cluster.here.is_empty() {
        cluster.collected.insert(cluster.here.clone(), Fact::Known(own.clone()));
    }
    own
}

/// Collects the facts of this node's machine. The configuration comes from `cluster`.
fn collect(cluster: &Cluster) -> Collected {
    let configuration = cluster.configuration.known();
    let here = configuration.and_then(|configuration| etcds::resolve(configuration, &cluster.here).ok());
    let (free_bytes, size_bytes) = here.as_ref().and_then(|here| room(&here.deployment.data_dir)).unzip();
    Collected {
        at: clock::wall_seconds(),
        tandem: crate::os::version::VERSION.to_owned(),
        pacemaker: cluster.pacemaker.known().map(|known| known.version.clone()),
        dmi_uuid: dmi::system_uuid(),
        free_bytes,
        size_bytes,
        certificates: ends(configuration, here.as_ref()),
        bmcs: own_notes(),
        moved_aside: here.as_ref().map(|here| moved_aside(&here.deployment.data_dir)).unwrap_or_default(),
        stale_join_files: stale_join_files(Path::new(JOIN_FILES), clock::wall_seconds()),
        enabled: systemd::enabled(Path::new("/")),
        routes: routes(configuration, here.as_ref(), &cluster.here),
        // `fencing::copies` and `collect` fill these in, because they may read the files.
        passwords: BTreeMap::new(),
        secrets: BTreeMap::new(),
    }
}

/// Returns the free space and the size of the file system in which `dir` is or will be, in bytes; `None` if they are
/// unreadable.
fn room(dir: &Path) -> Option<(u64, u64)> {
    let there = dir.ancestors().find(|dir| dir.is_dir())?;
    let system = statvfs(there).ok()?;
    Some((system.blocks_available() * system.fragment_size(), system.blocks() * system.fragment_size()))
}

/// Returns the expiries of etcd's certificates and of the CAs with which fence devices verify their BMCs. Unreadable files are skipped,
/// because the agents report them.
fn ends(configuration: Option<&Configuration>, here: Option<&Here>) -> Vec<Certificate> {
    let etcds = here.into_iter().flat_map(|here| here.deployment.files.iter().map(|(_, path)| path.clone()));
    let devices = configuration.into_iter().flat_map(|configuration| &configuration.fence_devices);
    let authorities = devices.filter_map(|device| Some(PathBuf::from(device.resource.parameters.get("ssl_ca_file")?)));
    let files: BTreeSet<PathBuf> = etcds.chain(authorities).collect();
    files.iter().filter_map(|file| certificates::of_file(file)).collect()
}

/// Returns the last results of this node's fence devices, from the files that the fence agent wrote.
pub(super) fn own_notes() -> Vec<BmcNote> {
    notes(Path::new(bmc_note::DIRECTORY))
}

/// Returns the pending hand-over of leadership, from the file in which this node's agent keeps it until the next
/// boot; `None` if there is none.
pub(super) fn hand_over(configuration: &Configuration) -> Option<DueHandOver> {
    due(&memory_path(configuration)?, &context::boot_id(), now_s())
}

/// Returns the seconds for which this node's etcd has had no leader. Returns `None` if it has a leader, or if the agent does not
/// measure this time.
pub(super) fn leaderless_for_s(configuration: &Configuration) -> Option<u64> {
    let since_s = memory(&memory_path(configuration)?, &context::boot_id())?.leaderless_since_s?;
    Some(now_s().saturating_sub(since_s.into()))
}

fn memory_path(configuration: &Configuration) -> Option<PathBuf> {
    let resource = configuration.etcd.as_ref()?;
    Some(state_file::memory_path(&Env::from_pairs([]).volatile_dir(), &resource.id))
}

fn now_s() -> u64 {
    clock::boot_nanoseconds() / 1_000_000_000
}

fn memory(path: &Path, boot_id: &str) -> Option<BootState> {
    state_file::read::<BootState>(path).known().filter(|memory| memory.boot_id == boot_id).cloned()
}

fn due(path: &Path, boot_id: &str, now_s: u64) -> Option<DueHandOver> {
    let memory = memory(path, boot_id)?.hand_over?;
    Some(DueHandOver { cause: memory.cause, for_s: now_s.saturating_sub(memory.since_s.into()), tries: memory.tries })
}

/// Reads the results of this node's fence devices from the JSON files in `directory`. Skips unreadable files.
fn notes(directory: &Path) -> Vec<BmcNote> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect();
    files.sort();
    let note = |file: &PathBuf| serde_json::from_slice(&regular_file::read_at_most(file, bmc_note::LIMIT).ok()?).ok();
    files.iter().filter_map(note).collect()
}

fn moved_aside(dir: &Path) -> Vec<MovedAside> {
    let found = data_dir::aside(dir).unwrap_or_default().into_iter();
    found.map(|aside| MovedAside { path: aside.path.display().to_string(), at: aside.at, bytes: aside.bytes }).collect()
}

/// Returns the paths of expired join files in `directory`. Only names and ages are read, because the content is secret.
fn stale_join_files(directory: &Path, now: u64) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_stale = |entry: &fs::DirEntry| {
        let changed = entry.metadata().ok().filter(fs::Metadata::is_file).map(|metadata| metadata.mtime());
        let age = changed.and_then(|changed| now.checked_sub(u64::try_from(changed).ok()?));
        entry.path().extension().is_some_and(|extension| extension == "join")
            && age.is_some_and(|age| age > JOIN_FILES_LAST)
    };
    let mut files: Vec<String> = entries.filter(is_stale).map(|entry| entry.path().display().to_string()).collect();
    files.sort();
    files.truncate(MOST_JOIN_FILES);
    files
}

/// Returns the interface to each BMC and to each other node's etcd, by the host or address of the target.
fn routes(configuration: Option<&Configuration>, here: Option<&Here>, own: &str) -> BTreeMap<String, String> {
    let mut hosts: Vec<(String, Option<IpAddr>)> = Vec::new();
    for device in configuration.into_iter().flat_map(|configuration| &configuration.fence_devices) {
        let ip = ["ip", "ipaddr"].iter().find_map(|name| device.resource.parameters.get(*name));
        if let Some(address) = ip.and_then(|ip| Address::parse(ip, HTTPS_PORT).ok()) {
            hosts.push((address.host().to_owned(), resolved(address.host())));
        }
    }
    for node in here.into_iter().flat_map(|here| &here.params.nodes).filter(|node| node.name != own) {
        hosts.push((node.ip.to_string(), Some(node.ip)));
    }
    hosts.into_iter().filter_map(|(host, address)| Some((host, route::interface_to(address?)?))).collect()
}

/// Parses `host` as an address, or else resolves the host name. Returns `None` if that fails.
fn resolved(host: &str) -> Option<IpAddr> {
    let address = host.parse().ok();
    address.or_else(|| Some((host, HTTPS_PORT).to_socket_addrs().ok()?.next()?.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::pacemaker::seen::{FenceDevice, Resource};
    use crate::base::Fact;

    fn cluster(data_dir: &Path, device: &[(&str, &str)]) -> Cluster {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let dir = data_dir.display().to_string();
        let pem = data_dir.join("etcd.crt").display().to_string();
        let parameters = map(&[
            ("node_ip_map", "node1:192.0.2.1;node2:192.0.2.2"),
            ("image", "etcd:test"),
            ("trusted_ca_file", &pem),
            ("cert_file", &pem),
            ("key_file", &pem),
            ("data_dir", &dir),
        ]);
        let etcd = Resource { id: "etcd".to_owned(), parameters, ..Resource::default() };
        let device = Resource { parameters: map(device), ..Resource::default() };
        let configuration = Configuration {
            etcd: Some(etcd),
            fence_devices: vec![FenceDevice { resource: device, ..FenceDevice::default() }],
            ..Configuration::default()
        };
        Cluster { here: "node1".to_owned(), configuration: Fact::Known(configuration), ..Cluster::default() }
    }

    #[test]
    fn this_nodes_facts_are_those_of_its_files_and_its_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["node1".to_owned()]).unwrap().self_signed(&key).unwrap();
        fs::write(dir.path().join("etcd.crt"), certificate.pem()).unwrap();
        fs::create_dir_all(dir.path().join("member-backup-0003-20260131T235959Z/snap")).unwrap();
        fs::create_dir_all(dir.path().join("member-history-0001-20260201T000000Z")).unwrap();
        let collected = collect(&cluster(dir.path(), &[("ip", "127.0.0.1:8443")]));
        assert_eq!(collected.tandem, crate::os::version::VERSION);
        assert!(collected.free_bytes <= collected.size_bytes && collected.size_bytes > Some(0));
        let file = dir.path().join("etcd.crt").display().to_string();
        assert_eq!(collected.certificates.iter().map(|one| &one.file).collect::<Vec<_>>(), [&file], "once");
        let times: Vec<u64> = collected.moved_aside.iter().map(|aside| aside.at).collect();
        assert_eq!(times, [1_769_903_999, 1_769_904_000]);
        assert_eq!(collected.routes.get("127.0.0.1").map(String::as_str), Some("lo"));
        assert!(!collected.routes.contains_key("192.0.2.1"), "the way to itself is no question");
    }

    #[test]
    fn join_files_are_stale_after_a_day() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("node2.join"), "a key").unwrap();
        fs::write(dir.path().join("cluster.toml"), "").unwrap();
        let now = clock::wall_seconds();
        assert_eq!(stale_join_files(dir.path(), now), Vec::<String>::new());
        let file = dir.path().join("node2.join").display().to_string();
        assert_eq!(stale_join_files(dir.path(), now + JOIN_FILES_LAST + 2), [file]);
        assert_eq!(stale_join_files(&dir.path().join("missing"), now), Vec::<String>::new());
    }

    #[test]
    fn without_a_configuration_it_knows_what_needs_none() {
        let collected = collect(&Cluster::default());
        assert!(collected.at > 0 && !collected.tandem.is_empty());
        assert_eq!((collected.free_bytes, collected.certificates.len(), collected.routes.len()), (None, 0, 0));
    }

    #[test]
    fn notes_of_fence_devices_are_read_and_rubbish_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let note = BmcNote { address: "10.98.0.102".to_owned(), at: 7, ..BmcNote::default() };
        fs::write(bmc_note::path(dir.path(), &note.address, "1"), serde_json::to_string(&note).unwrap()).unwrap();
        fs::write(dir.path().join("half.json"), "{\"at\":").unwrap();
        fs::write(dir.path().join("other.txt"), "{}").unwrap();
        assert_eq!(notes(dir.path()), [note]);
        assert!(notes(&dir.path().join("none")).is_empty());
    }
}
