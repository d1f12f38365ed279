//! Who we are in this call: the node, its peer, where their etcds are, and where our files lie.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::params::{Invalid, NodeIp, Params};
use crate::clock::Deadline;
use crate::decide::snapshot::{NodeAddress, Notify};
use crate::etcd::client::{Credentials, Endpoint};
use crate::etcd::config::Settings;
use crate::notes;
use crate::ocf::env::Env;
use crate::pacemaker;

/// What every round of one action shares.
#[derive(Debug)]
pub struct Context {
    pub resource: String,
    pub params: Params,
    pub me: NodeAddress,
    pub peer: Option<NodeAddress>,
    pub own_endpoint: Endpoint,
    pub peer_endpoint: Option<Endpoint>,
    pub credentials: Credentials,
    pub boot_id: String,
    pub promotable: bool,
    pub notify: Option<Notify>,
    pub memory_path: PathBuf,
    pub authorisation_path: PathBuf,
    pub deadline: Deadline,
    pub budget: Duration,
    own_ip: IpAddr,
}

impl Context {
    /// Finds out who we are; `budget` is the action's time.
    pub fn new(env: &Env, params: Params, budget: Duration) -> Result<Self, Invalid> {
        let deadline = Deadline::after(budget);
        let name = local_name(env)?;
        let own =
            params.nodes.iter().find(|node| node.name == name).cloned().ok_or_else(|| not_in_map(&name, &params))?;
        let peer = params.nodes.iter().find(|node| node.name != name).cloned();
        let credentials = Credentials {
            trusted_ca_file: params.trusted_ca_file.clone(),
            cert_file: params.client_cert_file.clone(),
            key_file: params.client_key_file.clone(),
        };
        Ok(Self {
            resource: env.resource().to_owned(),
            me: address(&own, &params),
            peer: peer.as_ref().map(|peer| address(peer, &params)),
            own_endpoint: endpoint(own.ip, params.client_port),
            peer_endpoint: peer.as_ref().map(|peer| endpoint(peer.ip, params.client_port)),
            credentials,
            boot_id: boot_id(),
            promotable: env.is_promotable(),
            notify: env.notify(),
            authorisation_path: notes::authorisation_path(&env.volatile_dir(), env.resource()),
            memory_path: notes::memory_path(&env.volatile_dir(), env.resource()),
            deadline,
            budget,
            own_ip: own.ip,
            params,
        })
    }

    /// What etcd's configuration says besides how to start.
    pub fn settings(&self) -> Settings {
        let params = &self.params;
        Settings {
            name: self.me.name.clone(),
            data_dir: params.data_dir.clone(),
            own_peer_url: self.me.peer_url.clone(),
            own_client_url: self.me.client_url.clone(),
            peer: self.peer.as_ref().map(|peer| (peer.name.clone(), peer.peer_url.clone())),
            client_port: params.client_port,
            peer_port: params.peer_port,
            is_ipv6: self.own_ip.is_ipv6(),
            trusted_ca_file: params.trusted_ca_file.clone(),
            cert_file: params.cert_file.clone(),
            key_file: params.key_file.clone(),
            peer_cert_file: params.peer_cert_file.clone(),
            peer_key_file: params.peer_key_file.clone(),
        }
    }

    /// etcd's configuration file.
    pub fn config_path(&self) -> PathBuf {
        self.params.data_dir.join("config.yaml")
    }
}

fn local_name(env: &Env) -> Result<String, Invalid> {
    match env.on_node() {
        Some(name) => Ok(name.to_owned()),
        None => {
            pacemaker::local_node().map_err(|error| Invalid::here(format!("cannot tell this node's name: {error}")))
        }
    }
}

fn not_in_map(name: &str, params: &Params) -> Invalid {
    let known: Vec<&str> = params.nodes.iter().map(|node| node.name.as_str()).collect();
    Invalid::here(format!(
        "this node, {name}, is not in node_ip_map (which names {}): add '{name}:ADDRESS'",
        known.join(", ")
    ))
}

fn address(node: &NodeIp, params: &Params) -> NodeAddress {
    NodeAddress {
        name: node.name.clone(),
        peer_url: format!("https://{}", host_and_port(node.ip, params.peer_port)),
        client_url: format!("https://{}", host_and_port(node.ip, params.client_port)),
    }
}

fn endpoint(ip: IpAddr, port: u16) -> Endpoint {
    let address = host_and_port(ip, port);
    Endpoint { url: format!("https://{address}"), address }
}

fn host_and_port(ip: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(ip, port).to_string()
}

/// This boot of this machine. The kernel's own id, and the start of process 1, which differs where several machines
/// share a kernel.
fn boot_id() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let init = std::fs::read_to_string("/proc/1/stat").unwrap_or_default();
    // The name, in parentheses, may hold blanks; the 20th field after it is the start time in clock ticks since boot.
    let start = init.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)).unwrap_or_default();
    format!("{}-{start}", kernel.trim())
}
