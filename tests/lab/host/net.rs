//! The lab's networks: a switch in a namespace of its own with two bridges, cluster and fencing, and a cable from each
//! host to each bridge. The machine's own network namespace contains none of it.

use std::path::PathBuf;
use std::process::Command;

use crate::host;
use crate::host::node::{CLIENT_IP, FENCING_NETWORK, NODES, Node};
use crate::host::state::Lab;
use crate::sh::{self, Result};

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

/// Returns the file that holds the host's network namespace.
pub fn host_handle(lab: &Lab, node: Node) -> PathBuf {
    handle(&host(lab, node))
}

/// Returns the file that holds the network namespace of the lab's client.
pub fn client_handle(lab: &Lab) -> PathBuf {
    handle(&client(lab))
}

/// Returns the file that holds the network namespace of the lab's switch, where the BMCs listen.
pub fn switch_handle(lab: &Lab) -> PathBuf {
    handle(&switch(lab))
}

/// Returns the names of all network namespaces that this lab can have.
pub fn namespaces(lab: &Lab) -> Vec<String> {
    let mut names = vec![client(lab), switch(lab)];
    names.extend(NODES.map(|node| host(lab, node)));
    names
}

/// Runs a batch of `ip` commands inside a namespace. It uses `nsenter`, because `ip netns exec` would remount `/sys`.
fn ip(namespace: &str, batch: &str) -> Result<()> {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", handle(namespace).display())).args(["ip", "-batch", "-"]);
    sh::feed(&mut command, batch).map(drop)
}

/// Makes the network namespaces of the switch and of the client. A host gets its cables when it is switched on.
pub fn create(lab: &Lab) -> Result<()> {
    let (switch, client) = (switch(lab), client(lab));
    sh::run("ip", &["netns", "add", &switch])?;
    sh::run("ip", &["netns", "add", &client])?;
    // The bridges have fixed addresses. Otherwise a bridge takes its lowest port's address, and changes it when a host
    // goes: then the BMCs on the fencing bridge would be unreachable until the hosts resolve their addresses again.
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

/// Returns the names of the host's two ports at the switch: for the cluster network, and for the fencing network.
pub fn ports(node: Node) -> [String; 2] {
    [format!("{node}-cluster"), format!("{node}-fence")]
}

/// Makes the host's network namespace, with a cable to the cluster network and one to the fencing network.
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

/// Makes the two interfaces at the switch to which a virtual machine connects its network cards.
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

/// Isolates the port of a host that boots while the cluster network is parted.
fn keep_partition(lab: &Lab, node: Node) -> Result<()> {
    if lab.setting("partition").as_deref() == Some("on") {
        let [cluster, _] = ports(node);
        ip(&switch(lab), &format!("link set {cluster} type bridge_slave isolated on\n"))?;
    }
    Ok(())
}

/// Takes both cables of a host down at the switch at once, so that its dying programs cannot send a message.
pub fn deaden(lab: &Lab, node: Node) -> Result<()> {
    let [cluster, fence] = ports(node);
    ip(&switch(lab), &format!("link set {cluster} down\nlink set {fence} down\n"))
}

/// Removes the host's network namespace and cables. It is no error if some are missing.
pub fn unplug(lab: &Lab, node: Node) {
    for port in ports(node) {
        let _ = ip(&switch(lab), &format!("link del {port}\n"));
    }
    delete(&host(lab, node));
}

/// Removes a network namespace if it exists.
pub fn delete(namespace: &str) {
    if handle(namespace).exists() {
        let _ = sh::run("ip", &["netns", "del", namespace]);
    }
}

/// Sets whether the cluster network is cut between the hosts. The hosts then lose each other, but still reach the
/// client and the BMCs. The ports are isolated and keep their carrier, because Corosync would rebind to loopback if
/// the link went down.
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

/// Sets whether a virtual machine is connected to the cluster network at the switch. Its network card keeps the
/// carrier either way.
pub fn set_cluster_cable(lab: &Lab, node: Node, plugged: bool) -> Result<()> {
    let [cluster, _] = ports(node);
    let word = if plugged { "up" } else { "down" };
    ip(&switch(lab), &format!("link set {cluster} {word}\n"))?;
    lab.event(&format!("{node}'s cable to the cluster network is {}", if plugged { "plugged in" } else { "cut" }));
    Ok(())
}

/// Gives the lab's client one more address on the cluster network.
pub fn add_client_address(lab: &Lab, address: &str) -> Result<()> {
    ip(&client(lab), &format!("addr replace {address}/24 dev eth0\n"))
}

/// Sets whether a BMC has its IP address. Each BMC's address has a prefix of its own, because the kernel removes the
/// other addresses of a prefix together with the first one. With the last address it also removes the routes.
pub fn set_bmc_address(lab: &Lab, node: Node, present: bool) -> Result<()> {
    let address = format!("{}/32 dev fencing", node.bmc_ip());
    if present {
        let route = format!("route replace {FENCING_NETWORK} dev fencing");
        return ip(&switch(lab), &format!("addr replace {address}\n{route}\n"));
    }
    // The address may be gone already.
    let _ = ip(&switch(lab), &format!("addr del {address}\n"));
    Ok(())
}
