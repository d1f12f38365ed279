//! Clusters as `tandem` observes them, written by hand: a healthy one, and changes of it.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::collections::BTreeMap;

use tandem::adapters::corosync::quorum::Quorum;
use tandem::adapters::pacemaker::seen::{
    Configuration, FenceDevice, History, Instance, Node, Operation, Pacemaker, Resource,
};
use tandem::base::Fact;
use tandem::operate::cluster::{Certificate, Cluster, Collected, Etcd, Member};
use tandem::records::bmc_note::BmcNote;

/// The time of the observation in seconds since 1970: 2026-11-23T14:00:00Z.
pub(crate) const AT: u64 = 1_795_442_400;
pub(crate) const NODES: [&str; 2] = ["node1", "node2"];
/// The value of Pacemaker's INFINITY.
pub(crate) const INFINITY: u64 = 1_000_000;

/// Returns a healthy cluster of two nodes with two voters and a kubelet. Each node's Redfish device runs on the other node.
pub(crate) fn healthy() -> Cluster {
    Cluster {
        at: AT,
        here: "node1".to_owned(),
        pacemaker: Fact::Known(pacemaker()),
        configuration: Fact::Known(configuration()),
        quorum: Fact::Known(Quorum {
            quorate: true,
            two_node: true,
            expected_votes: 2,
            total_votes: 2,
            members: vec![1, 2],
            ..Quorum::default()
        }),
        detection: None,
        etcd: NODES.iter().map(|node| ((*node).to_owned(), Fact::Known(etcd(node)))).collect(),
        collected: NODES.iter().map(|node| ((*node).to_owned(), Fact::Known(collected(node)))).collect(),
        power: BTreeMap::new(),
        hand_over: None,
        leaderless_for_s: None,
        own_notes: Vec::new(),
        is_starting: false,
    }
}

pub(crate) fn other(node: &str) -> &'static str {
    if node == "node1" { "node2" } else { "node1" }
}

fn strings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn pacemaker() -> Pacemaker {
    let node = |(name, id): (&str, &str)| Node {
        name: name.to_owned(),
        id: id.to_owned(),
        online: true,
        expected_up: true,
        is_dc: name == "node1",
        kind: "member".to_owned(),
        ..Node::default()
    };
    let mut resources = Vec::new();
    for name in NODES {
        resources.push(instance("kubelet", Some("kubelet-clone"), "systemd:kubelet", name, "Started"));
        resources.push(instance("etcd", Some("etcd-clone"), "ocf:heartbeat:podman-etcd", name, "Started"));
        let device = format!("{name}_redfish");
        resources.push(instance(&device, None, "stonith:fence_redfish_rs", other(name), "Started"));
    }
    let operation = |task: &str, call: i64, at: u64| Operation {
        task: task.to_owned(),
        call,
        last_change: Some(at),
        exec_millis: Some(1200),
        ..Operation::default()
    };
    let history = |node: &str, resource: &str| History {
        node: node.to_owned(),
        resource: resource.to_owned(),
        migration_threshold: INFINITY,
        operations: vec![operation("start", 10, AT - 7200), operation("monitor", 11, AT - 7100)],
        ..History::default()
    };
    let mut histories: Vec<History> =
        NODES.iter().flat_map(|node| ["kubelet", "etcd"].map(|resource| history(node, resource))).collect();
    histories.extend(NODES.map(|node| history(other(node), &format!("{node}_redfish"))));
    Pacemaker {
        version: "2.1.5".to_owned(),
        dc: Some("node1".to_owned()),
        has_quorum: true,
        stonith_enabled: true,
        nodes: NODES.into_iter().zip(["1", "2"]).map(node).collect(),
        resources,
        histories,
        ..Pacemaker::default()
    }
}

pub(crate) fn instance(id: &str, clone: Option<&str>, agent: &str, node: &str, role: &str) -> Instance {
    Instance {
        id: id.to_owned(),
        clone: clone.map(str::to_owned),
        agent: agent.to_owned(),
        nodes: vec![node.to_owned()],
        role: role.to_owned(),
        active: true,
        managed: true,
        ..Instance::default()
    }
}

fn configuration() -> Configuration {
    let resource = |id: &str, agent: &str, parameters: &[(&str, &str)]| Resource {
        id: id.to_owned(),
        agent: agent.to_owned(),
        clone: (!id.ends_with("redfish")).then(|| format!("{id}-clone")),
        parameters: strings(parameters),
        ..Resource::default()
    };
    let address = |node: &str| format!("192.0.2.1{}", &node[4..]);
    let device = |node: &str| FenceDevice {
        resource: resource(
            &format!("{node}_redfish"),
            "stonith:fence_redfish_rs",
            &[("ip", &address(node)), ("plug", "1"), ("pcmk_host_list", node)],
        ),
        targets: vec![node.to_owned()],
        ..FenceDevice::default()
    };
    let lineage = |node: &&str| ((*node).to_owned(), strings(&[("etcd_lineage", "2:node1")]));
    let map = [("node_ip_map", "node1:192.0.2.1;node2:192.0.2.2")];
    Configuration {
        nodes: NODES.map(str::to_owned).to_vec(),
        properties: strings(&[("cluster-name", "edge"), ("etcd_redundancy", "redundant:1795352400")]),
        permanent: NODES.iter().map(lineage).collect(),
        etcd: Some(resource("etcd", "ocf:heartbeat:podman-etcd", &map)),
        kubelet: Some(resource("kubelet", "systemd:kubelet", &[])),
        fence_devices: NODES.iter().map(|node| device(node)).collect(),
        ..Configuration::default()
    }
}

pub(crate) fn member_id(node: &str) -> String {
    format!("{node}00").replace("node", "8e9e05c52164694")
}

fn etcd(node: &str) -> Etcd {
    let member = |name: &&str| Member {
        id: member_id(name),
        name: (*name).to_owned(),
        learner: false,
        peer_urls: vec![format!("https://192.0.2.{}:2380", &name[4..])],
    };
    Etcd {
        version: "3.5.21".to_owned(),
        cluster_id: "cdf818194e3a8c32".to_owned(),
        member_id: member_id(node),
        leader: Some(member_id("node1")),
        term: 4,
        index: if node == "node1" { 1200 } else { 1198 },
        applied: if node == "node1" { 1200 } else { 1198 },
        db_bytes: 25_000_000,
        db_in_use_bytes: 20_000_000,
        quota_bytes: Some(2_147_483_648),
        members: NODES.iter().map(member).collect(),
        reads: Fact::Known(()),
        millis: 3,
        certificate_ends: Some(AT + 200 * 86_400),
        ..Etcd::default()
    }
}

fn collected(node: &str) -> Collected {
    let target = other(node);
    Collected {
        at: AT - 12,
        tandem: "0.1.0".to_owned(),
        pacemaker: Some("2.1.5".to_owned()),
        certificates: vec![Certificate { file: "/etc/etcd/server.crt".to_owned(), ends: AT + 200 * 86_400 }],
        bmcs: vec![BmcNote {
            address: format!("192.0.2.1{}", &target[4..]),
            system: "/redfish/v1/Systems/1".to_owned(),
            at: AT - 40,
            millis: 850,
            last_success: Some(AT - 40),
            power: Some("On".to_owned()),
            certificate_ends: Some(AT + 400 * 86_400),
            clock_ahead: Some(2),
            ..BmcNote::default()
        }],
        ..Collected::default()
    }
}

pub(crate) fn seen(cluster: &mut Cluster) -> &mut Pacemaker {
    let Fact::Known(seen) = &mut cluster.pacemaker else { panic!("Pacemaker is not known") };
    seen
}

pub(crate) fn configured(cluster: &mut Cluster) -> &mut Configuration {
    let Fact::Known(configuration) = &mut cluster.configuration else { panic!("the CIB is not known") };
    configuration
}

pub(crate) fn node<'a>(cluster: &'a mut Cluster, name: &str) -> &'a mut Node {
    seen(cluster).nodes.iter_mut().find(|node| node.name == name).unwrap()
}

/// Returns the instance of the resource `id` that runs on the node `name`.
pub(crate) fn on<'a>(cluster: &'a mut Cluster, id: &str, name: &str) -> &'a mut Instance {
    let is_it = |instance: &&mut Instance| instance.id == id && instance.nodes.iter().any(|node| node == name);
    seen(cluster).resources.iter_mut().find(is_it).unwrap()
}

/// Returns every instance of the resource `id`.
pub(crate) fn each<'a>(cluster: &'a mut Cluster, id: &'a str) -> impl Iterator<Item = &'a mut Instance> {
    seen(cluster).resources.iter_mut().filter(move |instance| instance.id == id)
}

pub(crate) fn stop(instance: &mut Instance) {
    instance.nodes.clear();
    "Stopped".clone_into(&mut instance.role);
    instance.active = false;
}

/// Changes the cluster so that Pacemaker shows the machine `name` as fenced. No etcd and no kubelet run there. The fence device for the
/// survivor, which ran there, now runs on the survivor itself.
pub(crate) fn power_off(cluster: &mut Cluster, name: &str) {
    node(cluster, name).online = false;
    stop(on(cluster, "etcd", name));
    stop(on(cluster, "kubelet", name));
    let survivor = other(name);
    on(cluster, &format!("{survivor}_redfish"), name).nodes = vec![survivor.to_owned()];
    cluster.etcd.insert(name.to_owned(), Fact::Unknown("no answer within 2 s".to_owned()));
}

/// Changes etcd's member list so that the survivor is the only member, as the agent does after the peer was fenced.
pub(crate) fn alone(cluster: &mut Cluster, survivor: &str) {
    let Some(Fact::Known(etcd)) = cluster.etcd.get_mut(survivor) else { panic!("etcd is not known") };
    etcd.members.retain(|member| member.name == survivor);
    etcd.leader = Some(member_id(survivor));
}
