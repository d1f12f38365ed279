//! The lab's networks: a switch in a namespace of its own with two bridges, cluster and fencing, and one cable from
//! each host to each bridge. Nothing of it shows in the machine's own network namespace.

use std::path::PathBuf;
use std::process::Command;

use crate::host;
use crate::node::{CLIENT_IP, FENCING_NETWORK, NODES, Node};
use crate::sh::{self, Result};
use crate::state::Lab;

const CLUSTER: u8 = 0;
const FENCING: u8 = 1;

fn switch(lab: &Lab) -> String {
    format!("{}-switch", lab.name)
}

fn client(lab: &Lab) -> String {
    format!("{}-client", lab.name)
}

fn host(lab: &Lab, node: Node) -> String {
    format!("{}-{node}", lab.name)
}

fn handle(namespace: &str) -> PathBuf {
    PathBuf::from("/run/netns").join(namespace)
}

/// The file that stands for the host's network namespace.
pub fn host_handle(lab: &Lab, node: Node) -> PathBuf {
    handle(&host(lab, node))
}

/// The file that stands for the client's network namespace.
pub fn client_handle(lab: &Lab) -> PathBuf {
    handle(&client(lab))
}

/// The file that stands for the switch's network namespace, where the BMCs listen.
pub fn switch_handle(lab: &Lab) -> PathBuf {
    handle(&switch(lab))
}

/// Every namespace that this lab can have.
pub fn namespaces(lab: &Lab) -> Vec<String> {
    let mut names = vec![client(lab), switch(lab)];
    names.extend(NODES.map(|node| host(lab, node)));
    names
}

/// Runs a batch of `ip` commands inside a namespace. `nsenter`, since `ip netns exec` would remount /sys.
fn ip(namespace: &str, batch: &str) -> Result<()> {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", handle(namespace).display())).args(["ip", "-batch", "-"]);
    sh::feed(&mut command, batch).map(drop)
}

/// Makes switch and client; the hosts get their cables when they are switched on.
pub fn create(lab: &Lab) -> Result<()> {
    let (switch, client) = (switch(lab), client(lab));
    sh::run("ip", &["netns", "add", &switch])?;
    sh::run("ip", &["netns", "add", &client])?;
    // Addresses of their own: a bridge takes its lowest port's otherwise, and changes it when a host goes; the BMCs,
    // which live on the fencing bridge, would then be out of reach until the hosts ask for their address again.
    let mut batch = String::from(
        "link set lo up\n\
         link add cluster address 02:7a:4e:00:00:fe type bridge forward_delay 0 stp_state 0\n\
         link add fencing address 02:7a:4e:00:01:fe type bridge forward_delay 0 stp_state 0\n\
         link set cluster up\n\
         link set fencing up\n",
    );
    for node in NODES {
        batch.push_str(&format!("addr add {}/32 dev fencing\n", node.bmc_ip()));
    }
    batch.push_str(&format!("route add {FENCING_NETWORK} dev fencing\n"));
    batch.push_str(&format!(
        "link add client type veth peer name eth0 netns {client}\n\
         link set client master cluster up\n"
    ));
    ip(&switch, &batch)?;
    ip(&client, &format!("link set lo up\naddr add {CLIENT_IP}/24 dev eth0\nlink set eth0 up\n"))
}

/// Its cables' ends at the switch: to the cluster network, and to the fencing network.
pub fn ports(node: Node) -> [String; 2] {
    [format!("{node}-cluster"), format!("{node}-fence")]
}

/// A network namespace for the host, with a cable to each bridge.
pub fn plug_in(lab: &Lab, node: Node) -> Result<()> {
    let (switch, host) = (switch(lab), host(lab, node));
    let [cluster, fence] = ports(node);
    sh::run("ip", &["netns", "add", &host])?;
    ip(
        &switch,
        &format!(
            "link add {cluster} type veth peer name eth0 address {} netns {host}\n\
             link add {fence} type veth peer name eth1 address {} netns {host}\n\
             link set {cluster} master cluster up\n\
             link set {fence} master fencing up\n",
            node.mac(CLUSTER),
            node.mac(FENCING)
        ),
    )?;
    keep_partition(lab, node)?;
    ip(
        &host,
        &format!(
            "link set lo up\n\
             addr add {}/24 dev eth0\n\
             addr add {}/64 dev eth0 nodad\n\
             addr add {}/24 dev eth1\n\
             link set eth0 up\n\
             link set eth1 up\n",
            node.ip(),
            node.ipv6(),
            node.fence_ip()
        ),
    )
}

/// Two sockets at the switch, into which a virtual machine plugs its cables.
pub fn plug_in_vm(lab: &Lab, node: Node) -> Result<()> {
    let [cluster, fence] = ports(node);
    ip(
        &switch(lab),
        &format!(
            "tuntap add dev {cluster} mode tap\n\
             tuntap add dev {fence} mode tap\n\
             link set {cluster} master cluster up\n\
             link set {fence} master fencing up\n"
        ),
    )?;
    keep_partition(lab, node)
}

/// A host that boots in the middle of a partition is a part of it.
fn keep_partition(lab: &Lab, node: Node) -> Result<()> {
    if lab.setting("partition").as_deref() == Some("on") {
        let [cluster, _] = ports(node);
        ip(&switch(lab), &format!("link set {cluster} type bridge_slave isolated on\n"))?;
    }
    Ok(())
}

/// Deadens both cables of a host at the switch, in one go: what dies afterwards can tell nobody.
pub fn deaden(lab: &Lab, node: Node) -> Result<()> {
    let [cluster, fence] = ports(node);
    ip(&switch(lab), &format!("link set {cluster} down\nlink set {fence} down\n"))
}

/// Takes the host's namespace and cables away. What is gone already is no error.
pub fn unplug(lab: &Lab, node: Node) {
    for port in ports(node) {
        let _ = ip(&switch(lab), &format!("link del {port}\n"));
    }
    delete(&host(lab, node));
}

/// Removes a namespace if it is there.
pub fn delete(namespace: &str) {
    if handle(namespace).exists() {
        let _ = sh::run("ip", &["netns", "del", namespace]);
    }
}

/// Cuts the cluster network between the hosts: they lose each other, but reach the client and the BMCs as before. An
/// isolated port keeps its carrier; with the link down Corosync would rebind to loopback.
pub fn set_partition(lab: &Lab, on: bool) -> Result<()> {
    let word = if on { "on" } else { "off" };
    lab.set("partition", word)?;
    lab.event(if on { "cluster network cut between the hosts" } else { "cluster network healed" });
    for node in NODES {
        let [cluster, _] = ports(node);
        if host::running(lab, node).is_some() {
            ip(&switch(lab), &format!("link set {cluster} type bridge_slave isolated {word}\n"))?;
        }
    }
    Ok(())
}

/// Unplugs a virtual machine from the cluster network at the switch, or plugs it in again. The guest keeps its carrier.
pub fn set_cluster_cable(lab: &Lab, node: Node, plugged: bool) -> Result<()> {
    let [cluster, _] = ports(node);
    let word = if plugged { "up" } else { "down" };
    ip(&switch(lab), &format!("link set {cluster} {word}\n"))?;
    lab.event(&format!("{node}'s cable to the cluster network is {}", if plugged { "plugged in" } else { "cut" }));
    Ok(())
}

/// Gives the client one more address on the cluster network.
pub fn add_client_address(lab: &Lab, address: &str) -> Result<()> {
    ip(&client(lab), &format!("addr replace {address}/24 dev eth0\n"))
}

/// Whether a BMC answers on its address at all. Each is alone in its prefix: the kernel takes the other addresses of a
/// prefix away with the first one. With the last address of all it takes the routes away, too.
pub fn set_bmc_address(lab: &Lab, node: Node, present: bool) -> Result<()> {
    let address = format!("{}/32 dev fencing", node.bmc_ip());
    if present {
        let route = format!("route replace {FENCING_NETWORK} dev fencing");
        return ip(&switch(lab), &format!("addr replace {address}\n{route}\n"));
    }
    // It may be gone already.
    let _ = ip(&switch(lab), &format!("addr del {address}\n"));
    Ok(())
}
