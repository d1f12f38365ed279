//! This node: the place of its certificates, their issuer, and the way to both etcds.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use crate::adapters::command::Programs;
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::agent::resource::context::{Context, endpoint};
use crate::operate::certs::pki::site_certs::{Peer, PeerSeen};
use crate::operate::certs::pki::{self, Files, Holder, Leaf, seen};
use crate::operate::failure::Failure;
use crate::operate::node;

/// Timeout of `corosync-cmapctl`, which only reads a map in memory.
const COROSYNC: Duration = Duration::from_secs(5);

/// Returns the certificate files of Tandem's own CA on this node.
pub(crate) fn files() -> Files {
    Files::at(pki::DIR)
}

/// This node, its peer and its etcd resource, for the commands about certificates.
pub(crate) struct Here {
    pub(crate) context: Context,
    pub(crate) node: String,
    pub(crate) address: IpAddr,
    /// Name and address of the other node; `None` if the cluster has only this one.
    pub(crate) other: Option<(String, IpAddr)>,
}

impl Here {
    /// Reads this node's name, address and peer from the parameters of its etcd resource.
    pub(crate) fn find(resource: Option<&str>) -> Result<Self, Failure> {
        let context = node::context(resource)?;
        let node = context.me.name.clone();
        let other = context.params.nodes.iter().find(|other| other.name != node);
        let other = other.map(|other| (other.name.clone(), other.ip));
        Ok(Self { node, address: context.own_ip, other, context })
    }

    /// Returns whether this node's etcd uses the certificate files of Tandem's own CA.
    pub(crate) fn has_own_ca(&self) -> bool {
        let deployment = &self.context.deployment;
        let is_ours = |file: &Path, name: &str| file == files().path(name);
        deployment.manifest.is_none()
            && is_ours(&deployment.trusted_ca_file, pki::CA_CERT)
            && is_ours(&deployment.server.cert, Leaf::Etcd.cert())
            && is_ours(&deployment.peer.cert, Leaf::Etcd.cert())
    }

    /// Fails unless this node's etcd uses certificates of Tandem's own CA.
    pub(crate) fn must_have_own_ca(&self) -> Result<(), Failure> {
        if self.context.deployment.manifest.is_some() {
            return Err(Failure(
                "OpenShift looks after these certificates: see 'oc get secrets -n openshift-etcd'".to_owned(),
            ));
        }
        if self.has_own_ca() {
            return Ok(());
        }
        let file = self.context.deployment.server.cert.display();
        Err(Failure(format!("{file} is of your own making: type 'tandem certs install' with what takes its place")))
    }

    /// Returns the client endpoint and the peer endpoint of the etcd at `address`.
    fn ports(&self, address: IpAddr) -> [Endpoint; 2] {
        let params = &self.context.params;
        [endpoint(address, params.client_port), endpoint(address, params.peer_port)]
    }

    /// Returns the credentials with which etcd connects to its peer. Both of etcd's ports accept them.
    pub(crate) fn as_peer(&self) -> &Credentials {
        &self.context.deployment.peer_credentials
    }

    pub(crate) fn own_seen(&self) -> Result<PeerSeen, String> {
        seen::ports(&self.ports(self.address), self.as_peer())
    }

    pub(crate) fn peer(&self) -> Option<Peer> {
        let (node, address) = self.other.clone()?;
        let seen = seen::ports(&self.ports(address), self.as_peer());
        Some(Peer { node, address, seen })
    }

    pub(crate) fn holder(&self) -> Holder {
        let addresses = std::iter::once(self.address).chain(links(&self.context.programs, &self.node));
        Holder { node: self.node.clone(), reached_at: addresses.map(|address| address.to_string()).collect() }
    }
}

/// Returns the names for a new certificate of this node: the node's name and addresses in the cluster, and all names of
/// the present certificate.
pub(crate) fn holder(here: Option<&Here>, files: &Files) -> Result<Holder, Failure> {
    let there = files.leaf(Leaf::Etcd)?;
    let named = there.as_ref().and_then(|leaf| Some(Holder { node: leaf.name()?.to_owned(), reached_at: Vec::new() }));
    let unknown =
        || Failure("Pacemaker does not say who this node is: type 'pcs cluster start', and the same again".to_owned());
    let mut holder = here.map(Here::holder).or(named).ok_or_else(unknown)?;
    holder.reached_at.extend(there.into_iter().flat_map(|leaf| leaf.names));
    holder.reached_at.sort();
    holder.reached_at.dedup();
    Ok(holder)
}

/// Returns the addresses of `node` on Corosync's links, because etcd may connect to its peer from any of them.
fn links(programs: &Programs, node: &str) -> Vec<IpAddr> {
    let output = programs.run("corosync-cmapctl", &["nodelist."], COROSYNC);
    output.map(|output| of_map(&output.stdout, node)).unwrap_or_default()
}

/// Parses the addresses of `node` from lines of `corosync-cmapctl` such as
/// `nodelist.node.0.ring0_addr (str) = 192.0.2.1`.
fn of_map(map: &str, node: &str) -> Vec<IpAddr> {
    let entries: Vec<(&str, &str, &str)> = map
        .lines()
        .filter_map(|line| {
            let (key, value) = line.split_once(" = ")?;
            let (number, name) = key.split(' ').next()?.strip_prefix("nodelist.node.")?.split_once('.')?;
            Some((number, name, value.trim()))
        })
        .collect();
    let own = entries.iter().find(|(_, name, value)| *name == "name" && *value == node).map(|(number, ..)| *number);
    let links = entries.iter().filter(|(number, name, _)| Some(*number) == own && name.ends_with("_addr"));
    links.filter_map(|(.., value)| value.parse().ok()).collect()
}

impl Here {
    /// Returns the name of the Corosync cluster, which becomes a part of the CA's name. If it is unknown, returns this
    /// node's name.
    pub(crate) fn cluster(&self) -> String {
        let output = self.context.programs.run("corosync-cmapctl", &["-g", "totem.cluster_name"], COROSYNC);
        let name = output.ok().and_then(|output| Some(output.stdout.split_once(" = ")?.1.trim().to_owned()));
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| self.node.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_links_are_those_of_its_own_entry() {
        let map = "nodelist.node.0.name (str) = node1\nnodelist.node.0.nodeid (u32) = 1\n\
                   nodelist.node.0.ring0_addr (str) = 192.0.2.1\nnodelist.node.0.ring1_addr (str) = fd00::1\n\
                   nodelist.node.1.name (str) = node2\nnodelist.node.1.ring0_addr (str) = 192.0.2.2\n\
                   nodelist.node.1.ring1_addr (str) = node2.example\nrubbish\n";
        let links = |node| of_map(map, node).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(links("node1"), ["192.0.2.1", "fd00::1"]);
        assert_eq!(links("node2"), ["192.0.2.2"]);
        assert!(links("node3").is_empty());
    }
}
