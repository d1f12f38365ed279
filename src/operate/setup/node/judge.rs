//! Judges whether two machines may become the described cluster. Returns a sentence for every fault of both. Pure.

use super::look::{ANSWERS_WITHIN, is_called};
use super::ports::{Port, ways_to_open};
use super::this_cluster::{goes_on, runs_it};
use super::{Cib, Corosync, Data, Facts};
use crate::operate::setup::description::{Description, Node};

/// Largest accepted difference between the two nodes' clocks, in milliseconds. With a larger one, logs appear in the
/// wrong order and certificates may not be valid yet.
const APART: u64 = 1_000;
/// Smallest accepted free space for the data dir, in bytes. etcd's database and log outgrow this within hours.
const LEAST_ROOM: u64 = 1024 * 1024 * 1024;
/// Free space for the data dir below which setup warns, in bytes. It has room for a database of etcd's default quota, a
/// copy and the log.
const GOOD_ROOM: u64 = 8 * 1024 * 1024 * 1024;
/// Time of a synced write above which setup warns, in microseconds. It is the limit in etcd's documentation.
const SLOW_SYNC: u64 = 10_000;

/// Oldest accepted version of each program, as major and minor number.
const LEAST: [(&str, [u32; 2]); 4] =
    [("pacemaker", [2, 1]), ("corosync", [3, 0]), ("pcs", [0, 11]), ("podman", [4, 0])];

/// The facts of a machine, with what the other machine measured about it.
#[derive(Clone, Debug, Default)]
pub struct NodeSeen {
    pub facts: Facts,
    /// Milliseconds by which the machine's clock is ahead of the clock of the node that drives the setup.
    pub ahead_millis: i64,
    /// Ports of the machine that the other machine did not reach.
    pub closed: Vec<Port>,
}

/// The faults, which end the setup, and the warnings, which do not end it. Each is a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    pub faults: Vec<String>,
    pub warnings: Vec<String>,
}

impl Judgement {
    fn fault(&mut self, text: String) {
        self.faults.push(text);
    }

    fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }
}

/// Judges both machines, which are given in the order of the description.
pub fn both(description: &Description, seen: [&NodeSeen; 2]) -> Judgement {
    let mut found = Judgement::default();
    for (at, machine) in seen.into_iter().enumerate() {
        itself(&mut found, &description.nodes[at], &machine.facts);
        if runs_it(description, &machine.facts) {
            found.fault(goes_on(description, at, &seen[1 - at].facts, &machine.facts));
        } else {
            fresh(&mut found, description, &description.nodes[at], &machine.facts);
        }
        unreached(&mut found, &description.nodes[at], &description.nodes[1 - at], &machine.closed);
    }
    together(&mut found, description, seen);
    found
}

/// Judges the machine at index `at` without the other one. `is_member` is true if the machine is already in the
/// cluster, so that its data and ports are in use.
pub fn one(description: &Description, at: usize, facts: &Facts, is_member: bool) -> Judgement {
    let mut found = Judgement::default();
    itself(&mut found, &description.nodes[at], facts);
    if !is_member {
        fresh(&mut found, description, &description.nodes[at], facts);
    }
    found
}

/// Returns the faults of the machine at index `at` that do not depend on the other one. A machine that runs the described cluster need
/// not be blank, because setup may still continue with another command. The other machine's facts decide which command that is.
pub fn alone(description: &Description, at: usize, facts: &Facts) -> Vec<String> {
    one(description, at, facts, runs_it(description, facts)).faults
}

/// Judges a machine's user, names, addresses and program versions.
fn itself(found: &mut Judgement, node: &Node, facts: &Facts) {
    let name = &node.name;
    if !facts.is_root {
        found.fault(format!("{name}: only root can set a node up: type it with sudo"));
    }
    if !is_called(&facts.host, name) {
        found.fault(format!(
            "{name}: that machine calls itself {}: write name = \"{}\" into the file, or type 'hostnamectl set-hostname {name}' there",
            facts.host, facts.host
        ));
    }
    if !facts.addresses.is_empty() {
        for address in std::iter::once(&node.address).chain(&node.links) {
            if !facts.addresses.contains(address) {
                found.fault(format!(
                    "{name}: the machine has no address {address}: write one into the file that 'ip address' shows there"
                ));
            }
        }
    }
    for (program, least) in LEAST {
        let wanted = format!("{}.{}", least[0], least[1]);
        match facts.versions.get(program).and_then(Option::as_deref) {
            None => found.fault(format!(
                "{name}: {program} is not installed, or does not say its version within {} s: install {program} {wanted} or newer there, or type \
                 the same again once that machine is less busy",
                ANSWERS_WITHIN.as_secs()
            )),
            Some(version) if is_older(version, least) => {
                found.fault(format!("{name}: {program} is {version}: install {wanted} or newer there"));
            }
            Some(_) => {}
        }
    }
}

fn is_older(version: &str, least: [u32; 2]) -> bool {
    let mut parts =
        version.split('.').map(|part| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>());
    let mut next = || parts.next().and_then(Result::ok).unwrap_or_default();
    [next(), next()] < least
}

/// Judges a machine that must be blank: it must have no other cluster, free ports, and a usable disk and data dir.
fn fresh(found: &mut Judgement, description: &Description, node: &Node, facts: &Facts) {
    let (name, wanted) = (&node.name, &description.cluster);
    let is_stranger = |name: &&String| !description.nodes.iter().any(|node| node.name == **name);
    match &facts.corosync {
        Corosync::Cluster(cluster) if cluster == wanted && facts.cluster_nodes.iter().any(|name| is_stranger(&name)) => found.fault(format!(
            "{name}: it is in another cluster of this name, of {}, which is not touched: 'pcs cluster destroy' there gives it up, with all that it has",
            facts.cluster_nodes.join(" and ")
        )),
        Corosync::Cluster(cluster) if cluster != wanted => found.fault(format!(
            "{name}: it is in another cluster, '{cluster}', which is not touched: 'pcs cluster destroy' there gives it up, with all that it has"
        )),
        Corosync::Unreadable(why) => {
            found.fault(format!("{name}: /etc/corosync/corosync.conf cannot be read ({why}): put it right, or move it away"));
        }
        Corosync::None | Corosync::Example | Corosync::Cluster(_) => cib(found, node, wanted, facts),
    }
    if let Data::Unknown(why) = &facts.data {
        let dir = description.etcd.data_dir.display();
        found.fault(format!(
            "{name}: what is in {dir} cannot be told ({why}): put that right, or give another data_dir"
        ));
    }
    // kubelet runs OpenShift's etcd on these ports until Pacemaker does.
    let kubelets = |port: &&String| {
        description.is_of_openshift() && [Port::EtcdClients, Port::EtcdPeers].iter().any(|etcds| etcds.word() == **port)
    };
    for port in facts.taken.iter().filter(|port| !kubelets(port)) {
        found.fault(format!("{name}: something else has the port {port}: 'ss -lntup' there shows what; stop it"));
    }
    disk(found, description, node, facts);
}

fn cib(found: &mut Judgement, node: &Node, wanted: &str, facts: &Facts) {
    let name = &node.name;
    match &facts.cib {
        Cib::Known { cluster: Some(cluster), resources } if cluster != wanted && *resources > 0 => found.fault(format!(
            "{name}: its CIB is of another cluster, '{cluster}', which is not touched: 'pcs cluster destroy' there gives it up, with all that it has"
        )),
        Cib::Known { cluster: None, resources } if *resources > 0 => found.fault(format!(
            "{name}: it has a CIB with resources that is not this cluster's: 'pcs cluster destroy' there gives it up, with all that it has"
        )),
        Cib::Unreadable(why) => {
            found.fault(format!("{name}: its CIB cannot be read ({why}): 'cibadmin --query' there may say more; put it right"));
        }
        Cib::None | Cib::Known { .. } => {}
    }
}

fn disk(found: &mut Judgement, description: &Description, node: &Node, facts: &Facts) {
    let (name, dir, disk) = (&node.name, description.etcd.data_dir.display(), &facts.disk);
    let megabytes = disk.free_bytes / (1024 * 1024);
    if disk.is_member_mounted {
        found.fault(format!(
            "{name}: {dir}/member is a mount point, and no join could move the data aside: mount that file system one level higher, at {dir}"
        ));
    }
    if let Some(why) = &disk.failure {
        found.fault(format!("{name}: nothing can be written where {dir} is or will be ({why}): 'df -h' there; make room, or give another data_dir"));
    } else if disk.free_bytes < LEAST_ROOM {
        found.fault(format!("{name}: {dir} has {megabytes} MB of room, and etcd needs 1024 MB at the very least: make room, or give another data_dir"));
    } else if disk.free_bytes < GOOD_ROOM {
        found.warn(format!(
            "{name}: {dir} has {megabytes} MB of room; a full database and its copies need about 8192 MB"
        ));
    }
    if let Some(micros) = disk.sync_micros.filter(|micros| *micros > SLOW_SYNC) {
        found.warn(format!(
            "{name}: of 100 synced writes to {dir} the second slowest took {} ms, and above 10 ms etcd loses its leader now and then: another disk would be better",
            micros / 1000
        ));
    }
}

/// Adds a fault that names the ports of `node` which the machine of `other` did not reach. Adds none if `closed` is
/// empty.
pub fn unreached(found: &mut Judgement, node: &Node, other: &Node, closed: &[Port]) {
    if closed.is_empty() {
        return;
    }
    let words: Vec<String> = closed.iter().map(|port| port.word()).collect();
    found.fault(format!(
        "{}: {} does not reach its {} at {}: open it there, with whichever firewall it has: {}",
        node.name,
        other.name,
        words.join(", "),
        node.address,
        ways_to_open(closed, other.address).join("; or ")
    ));
}

/// Adds a fault if the clocks of both nodes differ by more than a second. `apart` is the difference in milliseconds.
pub fn clocks(found: &mut Judgement, [one, other]: [&Node; 2], apart: u64) {
    if apart > APART {
        found.fault(format!(
            "the clocks of {} and {} are {}.{} s apart: 'chronyc makestep' (or 'timedatectl set-ntp true') on the one that is wrong",
            one.name,
            other.name,
            apart / 1000,
            apart % 1000 / 100
        ));
    }
}

/// Adds the faults and warnings that only a comparison of both machines shows.
fn together(found: &mut Judgement, description: &Description, seen: [&NodeSeen; 2]) {
    let [one, other] = &description.nodes;
    let versions = seen.map(|seen| seen.facts.tandem.as_str());
    if versions[0] != versions[1] {
        found.fault(format!(
            "{} has Tandem {} and {} has {}: install the same on both",
            one.name, versions[0], other.name, versions[1]
        ));
    }
    for (program, _) in LEAST {
        let [mine, yours] = seen.map(|seen| seen.facts.versions.get(program).and_then(Option::as_deref));
        if let (Some(mine), Some(yours)) = (mine, yours)
            && mine != yours
        {
            found.warn(format!(
                "{} has {program} {mine} and {} has {yours}: the same on both would be better",
                one.name, other.name
            ));
        }
    }
    clocks(found, [one, other], seen[0].ahead_millis.abs_diff(seen[1].ahead_millis));
    let is_running = seen.iter().any(|seen| runs_it(description, &seen.facts));
    if seen.iter().all(|seen| seen.facts.data == Data::Present) && !description.is_of_openshift() && !is_running {
        let dir = description.etcd.data_dir.display();
        found.fault(format!(
            "both {} and {} have etcd's data in {dir}: only you know which is wanted; on the other one 'mv {dir} {dir}.old'",
            one.name, other.name
        ));
    }
    if let [Some(mine), Some(yours)] = seen.map(|seen| seen.facts.dmi_uuid.as_deref())
        && mine == yours
    {
        found.warn(format!(
            "{} and {} have one and the same system UUID, {mine}, so that their BMCs cannot be told apart by it: correct it in the firmware",
            one.name, other.name
        ));
    }
}

#[cfg(test)]
pub(in crate::operate::setup) mod tests {
    use super::*;
    use crate::operate::setup::file;

    pub(in crate::operate::setup) fn described() -> Description {
        file::read(file::EXAMPLE).unwrap()
    }

    /// Returns the facts of a machine that can become `node` without a fault.
    pub(in crate::operate::setup) fn well(node: &Node) -> NodeSeen {
        let versions = [("pacemaker", "2.1.5-1+b1"), ("corosync", "3.1.7"), ("pcs", "0.11.5"), ("podman", "4.3.1")];
        let facts = Facts {
            host: node.name.clone(),
            is_root: true,
            tandem: "0.1.0".to_owned(),
            versions: versions
                .iter()
                .map(|(name, version)| ((*name).to_owned(), Some((*version).to_owned())))
                .collect(),
            addresses: vec!["127.0.0.1".parse().unwrap(), node.address],
            dmi_uuid: Some(format!("00000000-0000-4000-8000-0000000000{}", &node.name[4..])),
            disk: super::super::Disk { free_bytes: 100 << 30, sync_micros: Some(900), ..Default::default() },
            ..Facts::default()
        };
        NodeSeen { facts, ..NodeSeen::default() }
    }

    pub(in crate::operate::setup::node) fn judged(change: impl FnOnce(&mut NodeSeen, &mut NodeSeen)) -> Judgement {
        let described = described();
        let [mut one, mut other] = described.nodes.each_ref().map(well);
        change(&mut one, &mut other);
        both(&described, [&one, &other])
    }

    #[test]
    fn two_good_machines_have_no_fault() {
        assert_eq!(judged(|_, _| {}), Judgement::default());
        let example = judged(|one, other| {
            one.facts.corosync = Corosync::Example;
            one.facts.cib = Cib::Known { cluster: Some("debian".to_owned()), resources: 0 };
            other.facts.data = Data::Present;
        });
        assert_eq!(example, Judgement::default());
        // The cluster that an interrupted run made on one node only.
        let ours = judged(|one, _| one.facts.corosync = Corosync::Cluster("tandem".to_owned()));
        assert_eq!(ours, Judgement::default());
    }

    type Change = fn(&mut NodeSeen, &mut NodeSeen);

    #[test]
    fn each_fault_is_a_sentence_that_says_what_to_do() {
        let cases: &[(Change, &str)] = &[
            (|one, _| one.facts.is_root = false, "node1: only root"),
            (
                |_, two| two.facts.host = "spare".to_owned(),
                "node2: that machine calls itself spare: write name = \"spare\"",
            ),
            (
                |_, two| two.facts.addresses.retain(std::net::IpAddr::is_loopback),
                "node2: the machine has no address 192.0.2.2",
            ),
            (
                |_, two| drop(two.facts.versions.insert("pcs".to_owned(), None)),
                "node2: pcs is not installed, or does not say its version within 90 s: install pcs 0.11 or newer there, or type the same \
                 again once that machine is less busy",
            ),
            (
                |one, _| drop(one.facts.versions.insert("podman".to_owned(), Some("3.4.4".to_owned()))),
                "node1: podman is 3.4.4: install 4.0 or newer",
            ),
            (
                |one, _| one.facts.tandem = "0.0.9".to_owned(),
                "node1 has Tandem 0.0.9 and node2 has 0.1.0: install the same",
            ),
            (|_, two| two.ahead_millis = -1_300, "are 1.3 s apart: 'chronyc makestep'"),
            (
                |one, _| one.facts.taken.push("2379/tcp".to_owned()),
                "node1: something else has the port 2379/tcp: 'ss -lntup'",
            ),
            (
                |_, two| two.closed = vec![Port::Corosync],
                "node2: node1 does not reach its 5405/udp at 192.0.2.2: open it there, with whichever firewall it has: firewall-cmd",
            ),
            (
                |one, two| (one.facts.data, two.facts.data) = (Data::Present, Data::Present),
                "both node1 and node2 have etcd's data in /var/lib/etcd",
            ),
            (|one, _| one.facts.data = Data::Unknown("it is a file".to_owned()), "cannot be told (it is a file)"),
            (
                |_, two| two.facts.corosync = Corosync::Cluster("prod".to_owned()),
                "node2: it is in another cluster, 'prod', which is not touched",
            ),
            (|_, two| two.facts.corosync = Corosync::Unreadable("x".to_owned()), "corosync.conf cannot be read (x)"),
            (
                |_, two| two.facts.cib = Cib::Known { cluster: Some("prod".to_owned()), resources: 1 },
                "node2: its CIB is of another cluster, 'prod'",
            ),
            (
                |_, two| two.facts.cib = Cib::Known { cluster: None, resources: 1 },
                "a CIB with resources that is not this",
            ),
            (|_, two| two.facts.cib = Cib::Unreadable("x".to_owned()), "its CIB cannot be read (x)"),
            (|one, _| one.facts.disk.free_bytes = 1 << 20, "node1: /var/lib/etcd has 1 MB of room"),
            (
                |one, _| one.facts.disk.is_member_mounted = true,
                "node1: /var/lib/etcd/member is a mount point, and no join could move the data aside: mount that file system one level higher",
            ),
            (|one, _| one.facts.disk.failure = Some("no storage space".to_owned()), "nothing can be written where"),
        ];
        for (change, said) in cases {
            let judged = judged(*change);
            assert_eq!(judged.faults.len(), 1, "{said}: {judged:?}");
            assert!(judged.faults[0].contains(said), "{said}: {judged:?}");
        }
    }

    #[test]
    fn all_faults_of_both_are_told_at_once_and_a_slow_disk_is_none() {
        let judged = judged(|one, two| {
            one.facts.host = "a".to_owned();
            two.facts.host = "b".to_owned();
            two.ahead_millis = 60_000;
            one.facts.disk.sync_micros = Some(25_000);
            two.facts.disk.free_bytes = 2 << 30;
        });
        assert_eq!((judged.faults.len(), judged.warnings.len()), (3, 2), "{judged:?}");
    }

    #[test]
    fn a_member_is_not_judged_as_a_blank_machine() {
        let described = described();
        let mut seen = well(&described.nodes[0]);
        seen.facts.data = Data::Present;
        seen.facts.taken.push("2379/tcp".to_owned());
        assert_eq!(one(&described, 0, &seen.facts, true), Judgement::default());
        assert_eq!(one(&described, 0, &seen.facts, false).faults.len(), 1);
    }
}
