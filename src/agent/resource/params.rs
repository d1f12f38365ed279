//! The agent's parameters: a table that describes and parses them, and the sentences for wrong ones.

pub mod leading;
pub mod lone_boot;
mod read;
mod table;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::PathBuf;

use crate::adapters::etcd::config::Pair;
use crate::adapters::etcd::settings::{self, Setting};
use crate::adapters::ocf::env::Env;
use crate::adapters::ocf::exit::Code;
use crate::adapters::options::OptionRow;
use crate::base::printable;
use crate::decide::evidence::Recovery;
use leading::Leading;
use lone_boot::LoneBoot;
use read::{given, list, text, value};
pub use read::{image as image_fits, node_ip_map};
use table::{
    ALLOW_PULL, AUTHFILE, BACKUP_LOCATION, CERT_FILE, CLIENT_CERT_FILE, CLIENT_KEY_FILE, CLIENT_PORT, CONFIG_LOCATION,
    DATA_DIR, DROP_IN_DEPENDENCY, ETCD_SETTINGS, FORCE_KILL, IMAGE, KEY_FILE, KUBECONFIG, MACHINE_HOOKS,
    MAX_BACKUP_SNAPSHOTS, MONITOR_CMD, MOUNT_POINTS, NAME, NODE_IP_MAP, OOM, PEER_CERT_FILE, PEER_KEY_FILE, PEER_PORT,
    POD_MANIFEST, PROMOTE_MAX_LAG, RECOVERY, RESTART, REUSE, RUN_CMD, RUN_CMD_OPTS, TRUSTED_CA_FILE,
    VOTE_PROXY_UNTESTED,
};
pub use table::{DEFAULT_KUBECONFIG, NEVER, PARAMETERS, SOLE_VOTER};

/// Value of the parameter `image` that selects the image in the pod manifest.
const IMAGE_OF_THE_MANIFEST: &str = "default";
/// Directory that exists if systemd runs.
pub const SYSTEMD_RUNS: &str = "/run/systemd/system";
/// Paths that turn `drop_in_dependency` on by default if any of them exists. Without drop-in files, systemd would end the container in
/// parallel with Pacemaker, before etcd has left its cluster. The shell agent used the two files as switches.
const DROP_IN_SWITCHES: &[&str] = &[SYSTEMD_RUNS, "/etc/sysconfig/podman_drop_in", "/etc/default/podman_drop_in"];

/// Parameters of the resource, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    pub nodes: Vec<NodeIp>,
    pub source: Source,
    pub name: String,
    pub authfile: PathBuf,
    pub allow_pull: bool,
    pub run_opts: Vec<String>,
    pub run_cmd: Vec<String>,
    pub run_cmd_opts: Vec<String>,
    pub mount_points: Vec<PathBuf>,
    pub monitor_cmd: Vec<String>,
    pub force_kill: bool,
    pub drop_in_dependency: bool,
    pub oom: i32,
    pub config_location: PathBuf,
    pub backup_location: PathBuf,
    pub max_backups: usize,
    pub kubeconfig: PathBuf,
    pub data_dir: Option<PathBuf>,
    pub client_port: u16,
    pub peer_port: u16,
    pub etcd_settings: Vec<Setting>,
    pub promote_max_lag: u64,
    pub recovery: Recovery,
    pub leading: Leading,
    pub lone_boot: LoneBoot,
}

/// Source of etcd's image, certificates and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A pod manifest of OpenShift; `image` replaces the manifest's image.
    Manifest { path: PathBuf, image: Option<String> },
    /// Image and certificates from the parameters, without a pod manifest.
    Parameters { image: String, certificates: Certificates },
}

/// PEM files on this node that the parameters name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    pub trusted_ca_file: PathBuf,
    pub server: Pair,
    pub peer: Pair,
    /// Certificate and key with which the agent queries etcd as a client.
    pub client: Pair,
}

/// Entry of the parameter `node_ip_map`: a node and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIp {
    pub name: String,
    pub ip: IpAddr,
}

/// Error for a wrong parameter: the exit code, and a sentence with what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct Invalid {
    pub code: Code,
    pub sentence: String,
}

impl Invalid {
    /// Returns the error for a parameter's value that is wrong on every node.
    fn everywhere(sentence: impl Into<String>) -> Self {
        Self::with(Code::Configured, sentence)
    }

    /// Returns the error for a parameter's value that is wrong only on this node.
    pub fn here(sentence: impl Into<String>) -> Self {
        Self::with(Code::Args, sentence)
    }

    /// Makes an error from `sentence` in one line. The sentence may quote a value with line breaks.
    fn with(code: Code, sentence: impl Into<String>) -> Self {
        let sentence: String = sentence.into();
        Self { code, sentence: printable::one_line(&sentence).into_owned() }
    }

    /// Returns the error for a fault that can be repaired at any moment, so that Pacemaker may try again.
    pub fn for_now(sentence: impl Into<String>) -> Self {
        Self::with(Code::Generic, sentence)
    }
}

/// Returns the container's name. A stop and a probe need it even if all other parameters are wrong.
pub fn container_name(env: &Env) -> String {
    text(env, &NAME).unwrap_or_default().to_owned()
}

/// Returns the directory of etcd's configuration. A stop reads it even if all other parameters are wrong.
pub fn config_location(env: &Env) -> PathBuf {
    PathBuf::from(text(env, &CONFIG_LOCATION).unwrap_or_default())
}

/// Name of the parameter for the number of backups to keep.
pub const BACKUPS: &str = MAX_BACKUP_SNAPSHOTS.name;

/// Returns whether a value of [`BACKUPS`] is 0, which counts as 1.
pub fn keeps_no_backup(value: &str) -> bool {
    value.trim().parse::<u64>() == Ok(0)
}

/// Returns a fault that only `validate-all` refuses; `None` if there is none. The actions of an existing resource tolerate it, because they
/// must not stop a running etcd for it.
pub fn outdated(env: &Env) -> Option<Invalid> {
    let image = env.parameter(IMAGE.name).filter(|image| *image != IMAGE_OF_THE_MANIFEST);
    image
        .and_then(|image| image_fits(image).err())
        .or_else(|| no_backup(env))
        .or_else(|| no_primary(env))
        .or_else(|| no_lone_boot(env))
        .or_else(|| env.parameter(MACHINE_HOOKS.name).and_then(|text| read::parsed::<bool>(&MACHINE_HOOKS, text).err()))
}

/// Returns whether Tandem writes deletion hooks to the voters' Machines, by the value of the parameter `machine_hooks`. A wrong value
/// counts as no.
pub fn keeps_machine_hooks(value: Option<&str>) -> bool {
    value.is_some_and(|text| read::parsed(&MACHINE_HOOKS, text).unwrap_or(false))
}

fn no_primary(env: &Env) -> Option<Invalid> {
    let nodes = node_ip_map(text(env, &NODE_IP_MAP).ok()?).ok()?;
    leading::fault(|name| env.parameter(name), &nodes, env.resource()).map(Invalid::everywhere)
}

fn no_lone_boot(env: &Env) -> Option<Invalid> {
    lone_boot::fault(|name| env.parameter(name)).map(Invalid::everywhere)
}

fn no_backup(env: &Env) -> Option<Invalid> {
    let (name, resource) = (MAX_BACKUP_SNAPSHOTS.name, env.resource());
    read::says_no_backup(env).then(|| {
        Invalid::everywhere(format!(
            "{name}=0 would delete the last backup: 'pcs resource update {resource} {name}=1', or more"
        ))
    })
}

/// Reads the parameters of the resource from the environment, and checks them.
pub fn parse(env: &Env) -> Result<Params, Invalid> {
    // The parameter has no effect, and a wrong value is still a fault.
    let _: bool = value(env, &REUSE)?;
    let params = parse_each(env)?;
    fit_together(&params)?;
    Ok(params)
}

/// Parses each parameter without regard to the others.
fn parse_each(env: &Env) -> Result<Params, Invalid> {
    let nodes = node_ip_map(text(env, &NODE_IP_MAP)?)?;
    Ok(Params {
        leading: leading::read(|name| env.parameter(name), &nodes),
        lone_boot: lone_boot::read(|name| env.parameter(name)),
        nodes,
        source: source(env)?,
        name: read::container_name(env)?,
        authfile: value(env, &AUTHFILE)?,
        allow_pull: value(env, &ALLOW_PULL)?,
        run_opts: read::run_opts(env)?,
        run_cmd: list(env, &RUN_CMD)?,
        run_cmd_opts: list(env, &RUN_CMD_OPTS)?,
        mount_points: list(env, &MOUNT_POINTS)?,
        monitor_cmd: list(env, &MONITOR_CMD)?,
        force_kill: value(env, &FORCE_KILL)?,
        drop_in_dependency: drop_in_dependency(env)?,
        oom: value(env, &OOM)?,
        config_location: value(env, &CONFIG_LOCATION)?,
        backup_location: value(env, &BACKUP_LOCATION)?,
        max_backups: read::max_backups(env)?,
        kubeconfig: value(env, &KUBECONFIG)?,
        data_dir: given(env, &DATA_DIR)?,
        client_port: value(env, &CLIENT_PORT)?,
        peer_port: value(env, &PEER_PORT)?,
        etcd_settings: etcd_settings(env)?,
        promote_max_lag: value(env, &PROMOTE_MAX_LAG)?,
        recovery: recovery(env)?,
    })
}

/// Checks the parameters against each other. On OpenShift, the pod manifest's settings are checked later, together with those of the
/// parameters.
fn fit_together(params: &Params) -> Result<(), Invalid> {
    if params.client_port == params.peer_port {
        return Err(Invalid::everywhere(format!(
            "client_port and peer_port are both {}: give each a port of its own, such as 2379 and 2380",
            params.peer_port
        )));
    }
    match params.source {
        Source::Manifest { .. } => Ok(()),
        Source::Parameters { .. } => settings_fit(params, &params.etcd_settings),
    }
}

/// Checks whether etcd accepts `settings` together, and together with the ports in `params`.
pub fn settings_fit(params: &Params, settings: &[Setting]) -> Result<(), Invalid> {
    let taken = [("client_port", params.client_port), ("peer_port", params.peer_port)];
    settings::fit_together(settings, &taken).map_err(|why| Invalid::everywhere(format!("etcd_settings: {why}")))
}

/// Returns the source of etcd's image and certificates. If the parameters name certificates, nothing of OpenShift is read.
fn source(env: &Env) -> Result<Source, Invalid> {
    let image = env.parameter(IMAGE.name).filter(|image| *image != IMAGE_OF_THE_MANIFEST);
    let (Some(certificates), image) = (certificates(env)?, image) else {
        let image = image.map(str::to_owned);
        return Ok(Source::Manifest { path: value(env, &POD_MANIFEST)?, image });
    };
    let Some(image) = image else {
        return Err(Invalid::everywhere(format!(
            "certificates without image: 'pcs resource update {} image=registry.example.com/etcd:v3.5.21'",
            env.resource()
        )));
    };
    Ok(Source::Parameters { image: image.to_owned(), certificates })
}

fn certificates(env: &Env) -> Result<Option<Certificates>, Invalid> {
    const NAMES: [&str; 3] = [TRUSTED_CA_FILE.name, CERT_FILE.name, KEY_FILE.name];
    const PAIRS: [OptionRow; 4] = [PEER_CERT_FILE, PEER_KEY_FILE, CLIENT_CERT_FILE, CLIENT_KEY_FILE];
    let is_missing = |name: &&str| env.parameter(name).is_none();
    let missing = NAMES.into_iter().find(is_missing);
    if NAMES.iter().all(is_missing) && PAIRS.iter().all(|row| is_missing(&row.name)) {
        return Ok(None);
    }
    if let Some(missing) = missing {
        return Err(Invalid::everywhere(format!("{missing} is not set: give {} together", NAMES.join(", "))));
    }
    let server = Pair { cert: value(env, &CERT_FILE)?, key: value(env, &KEY_FILE)? };
    let other = |cert: &OptionRow, key: &OptionRow| match (given(env, cert)?, given(env, key)?) {
        (None, None) => Ok(server.clone()),
        (Some(cert), Some(key)) => Ok(Pair { cert, key }),
        _ => Err(Invalid::everywhere(format!("{} and {} belong together: give both or neither", cert.name, key.name))),
    };
    Ok(Some(Certificates {
        trusted_ca_file: value(env, &TRUSTED_CA_FILE)?,
        peer: other(&PEER_CERT_FILE, &PEER_KEY_FILE)?,
        client: other(&CLIENT_CERT_FILE, &CLIENT_KEY_FILE)?,
        server,
    }))
}

fn drop_in_dependency(env: &Env) -> Result<bool, Invalid> {
    let given = given(env, &DROP_IN_DEPENDENCY)?;
    Ok(given.unwrap_or_else(|| one_is_there(DROP_IN_SWITCHES)))
}

fn one_is_there(places: &[&str]) -> bool {
    places.iter().any(|place| std::path::Path::new(place).exists())
}

fn recovery(env: &Env) -> Result<Recovery, Invalid> {
    let word: String = value(env, &RECOVERY)?;
    Ok(match word.as_str() {
        RESTART => Recovery::Restart,
        VOTE_PROXY_UNTESTED => Recovery::VoteProxyUntested,
        _ => Recovery::VoteProxy,
    })
}

fn etcd_settings(env: &Env) -> Result<Vec<Setting>, Invalid> {
    let text = env.parameter(ETCD_SETTINGS.name).unwrap_or_default();
    let entries = text.split([';', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| settings::parse(entry).map_err(|why| Invalid::everywhere(format!("etcd_settings: {why}"))))
        .collect()
}
