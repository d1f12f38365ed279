//! The context of a call: the node, its peer, their etcds, and the places of the agent's files.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::deployment::{Deployment, Manifests, SAVED_MANIFEST};
use super::directories;
use super::params::{Invalid, NodeIp, Params};
use crate::adapters::command::Programs;
use crate::adapters::etcd::client::{self, Credentials, Endpoint};
use crate::adapters::etcd::config::{self, OpenShift, Settings};
use crate::adapters::etcd::peer::Place;
use crate::adapters::etcd::version::Version;
use crate::adapters::ocf::env::Env;
use crate::adapters::openshift::manifest::SIZE_LIMIT;
use crate::adapters::openshift::revision;
use crate::adapters::pace::Question;
use crate::adapters::pacemaker;
use crate::adapters::podman::container_lock::ContainerLock;
use crate::decide::evidence::{NodeAddress, Notify};
use crate::os::beneath::Dir;
use crate::os::clock::{self, Deadline};
use crate::os::proc;
use crate::records::{data_mount, decision_log, own_dir, state_file};

/// Query of an etcd with a time-out, such as a linearizable read.
pub type Probe = fn(&Endpoint, &Credentials, Duration) -> Result<(), client::Error>;

/// Parameters, addresses and paths of one action. They do not change during the action.
#[derive(Debug)]
pub struct Context {
    pub resource: String,
    pub params: Params,
    pub deployment: Deployment,
    pub me: NodeAddress,
    pub peer: Option<NodeAddress>,
    pub own_endpoint: Endpoint,
    pub peer_endpoint: Option<Endpoint>,
    pub boot_id: String,
    pub promotable: bool,
    pub notify: Option<Notify>,
    pub memory_path: PathBuf,
    pub confirmation_path: PathBuf,
    pub process_path: PathBuf,
    /// Path of the file that records the mount that holds the data dir.
    pub data_mount_path: PathBuf,
    /// Lock on the container, which prevents two actions from changing the container at once. An operator's command never takes the lock.
    pub container_lock: ContainerLock,
    /// True for a recurring monitor. Only such a monitor runs the additional checks of `OCF_CHECK_LEVEL`.
    pub is_monitor: bool,
    /// Depth of a monitor's checks (`OCF_CHECK_LEVEL`).
    pub check_level: u32,
    pub deadline: Deadline,
    /// Directory in which decisions are recorded; `None` for an operator's command, which records none.
    pub decisions: Option<PathBuf>,
    /// Directory in which events are recorded; `None` for an operator's command, which records none.
    pub events: Option<PathBuf>,
    /// Means to run podman and Pacemaker's tools.
    pub programs: Programs,
    pub budget: Duration,
    pub own_ip: IpAddr,
}

impl Context {
    /// Determines the context of an action that ends at `deadline`.
    pub fn new(
        env: &Env,
        params: Params,
        programs: &Programs,
        deadline: Deadline,
        manifests: Manifests,
    ) -> Result<Self, Invalid> {
        let name = local_name(env, programs)?;
        let own =
            params.nodes.iter().find(|node| node.name == name).cloned().ok_or_else(|| not_in_map(&name, &params))?;
        let peer = params.nodes.iter().find(|node| node.name != name).cloned();
        let deployment = Deployment::resolve(&params, &name, manifests)?;
        Ok(Self {
            resource: env.resource().to_owned(),
            me: address(&own, &params),
            peer: peer.as_ref().map(|peer| address(peer, &params)),
            own_endpoint: endpoint(own.ip, params.client_port),
            peer_endpoint: peer.as_ref().map(|peer| endpoint(peer.ip, params.client_port)),
            boot_id: boot_id(),
            promotable: env.is_promotable(),
            notify: env.notify(),
            confirmation_path: state_file::confirmation_path(&env.volatile_dir(), env.resource()),
            memory_path: state_file::memory_path(&env.volatile_dir(), env.resource()),
            process_path: state_file::process_path(&env.volatile_dir(), env.resource()),
            data_mount_path: data_mount::path(Path::new(decision_log::DIRECTORY), env.resource()),
            container_lock: ContainerLock::at(state_file::container_lock_path(&env.volatile_dir(), env.resource())),
            decisions: None,
            events: None,
            is_monitor: false,
            check_level: env.check_level(),
            budget: deadline.budget(),
            deadline,
            programs: programs.clone(),
            own_ip: own.ip,
            deployment,
            params,
        })
    }

    /// Returns the credentials with which the agent queries etcd as a client.
    pub fn credentials(&self) -> &Credentials {
        &self.deployment.credentials
    }

    /// Returns the peer URL of this node's etcd, with the credentials that etcd members use among themselves.
    pub fn peer_place(&self) -> Place {
        Place { url: self.me.peer_url.clone(), credentials: self.deployment.peer_credentials.clone() }
    }

    /// Sends a linearizable read or a write to this node's etcd. An error about permission counts as success, because etcd confirms quorum
    /// before it checks the permission.
    pub fn probe_own_etcd(&self, question: Question, probe: Probe) -> Result<(), client::Error> {
        let ask = |timeout| probe(&self.own_endpoint, self.credentials(), timeout);
        match self.programs.pace().within(question, ask, client::Error::is_too_late) {
            Err(client::Error::NoPermission { .. }) => Ok(()),
            answer => answer,
        }
    }

    pub fn data_dir(&self) -> &Path {
        &self.deployment.data_dir
    }

    /// Returns the contents of the configuration file for an etcd of `version`, without the keys that define how etcd starts.
    pub fn settings(&self, version: Version) -> Settings {
        let (params, deployment) = (&self.params, &self.deployment);
        Settings {
            name: self.me.name.clone(),
            data_dir: deployment.data_dir.clone(),
            own_peer_url: self.me.peer_url.clone(),
            own_client_url: self.me.client_url.clone(),
            peer: self.peer.as_ref().map(|peer| (peer.name.clone(), peer.peer_url.clone())),
            client_port: params.client_port,
            peer_port: params.peer_port,
            own_ip: self.own_ip,
            trusted_ca_file: deployment.trusted_ca_file.clone(),
            server: deployment.server.clone(),
            peer_pair: deployment.peer.clone(),
            settings: deployment.settings.clone(),
            version,
            openshift: deployment
                .manifest
                .is_some()
                .then(|| OpenShift { bump: revision::bump(revision::read(&deployment.data_dir)) }),
            new_token: format!("tandem-{}-{}", clock::wall_seconds(), clock::boot_nanoseconds()),
        }
    }

    /// Returns the path of etcd's configuration file.
    pub fn config_path(&self) -> PathBuf {
        self.params.config_location.join(config::FILE)
    }

    /// Reads etcd's present configuration.
    pub fn config_text(&self) -> io::Result<String> {
        self.configured(config::FILE, config::LIMIT)
    }

    /// Reads the copy of the pod manifest from which the container was made.
    pub fn saved_manifest(&self) -> io::Result<String> {
        // External tests delete the name that the shell agent gives to it, so that the container is made anew.
        self.open(&self.params.config_location)?.stat(SAVED_MANIFEST)?;
        self.configured(SAVED_MANIFEST, SIZE_LIMIT)
    }

    fn configured(&self, file: &str, limit: u64) -> io::Result<String> {
        own_dir::text(&self.open(&self.params.config_location)?, file, limit)
    }

    /// Opens a directory that a parameter names.
    pub fn open(&self, directory: &Path) -> io::Result<Dir> {
        directories::open(self.data_dir(), directory)
    }

    /// Opens a directory as [`Context::open`] does, after making the part of its path that is missing.
    pub fn make(&self, directory: &Path) -> io::Result<Dir> {
        directories::make(self.data_dir(), directory)
    }
}

/// Returns this node's name in Pacemaker.
pub fn local_name(env: &Env, programs: &Programs) -> Result<String, Invalid> {
    match env.on_node() {
        Some(name) => Ok(name.to_owned()),
        None => pacemaker::local_node(programs)
            .map_err(|error| Invalid::here(format!("cannot tell this node's name: {error}"))),
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

/// Returns the client endpoint of the etcd at the address `ip`.
pub fn endpoint(ip: IpAddr, port: u16) -> Endpoint {
    let address = host_and_port(ip, port);
    Endpoint { url: format!("https://{address}"), address }
}

fn host_and_port(ip: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(ip, port).to_string()
}

/// Returns an id of this boot, from the kernel's boot id and the start time of process 1. Containers that act as machines share the
/// kernel's boot id, but not that start time.
pub fn boot_id() -> String {
    let start = proc::stat(1).map(|init| init.started.to_string()).unwrap_or_default();
    format!("{}-{start}", proc::boot_id())
}

#[cfg(test)]
impl Context {
    /// Returns a context for a test: node1 of two nodes, with its volatile files in `dir`, and these parameters.
    pub(crate) fn of_test(dir: &Path, parameters: &[(&str, &str)]) -> Self {
        let own = [("node_ip_map", "node1:192.0.2.1;node2:192.0.2.2"), ("CRM_meta_on_node", "node1")];
        let pairs = own.iter().chain(parameters);
        let pairs = pairs.map(|(name, value)| (format!("OCF_RESKEY_{name}"), (*value).to_owned()));
        let env = Env::from_pairs(pairs.chain([("HA_RSCTMP".to_owned(), dir.display().to_string())]));
        let params = super::params::parse(&env).unwrap();
        let deadline = Deadline::after(Duration::from_secs(1));
        let context = Self::new(&env, params, &Programs::default(), deadline, Manifests::Current).unwrap();
        Self { data_mount_path: data_mount::path(dir, &context.resource), ..context }
    }
}
