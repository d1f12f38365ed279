//! The agent's parameters: one table, from which they are parsed and described, and the sentences for wrong ones.

mod read;
mod table;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::PathBuf;

use crate::etcd::config::Pair;
use crate::etcd::settings::{self, Setting};
use crate::ocf::env::Env;
use crate::ocf::exit::Code;
use read::{boolean, default_of, integer, node_ip_map, optional_path, path, required, words};
pub use table::PARAMETERS;

/// The value of `image` that takes the image from the pod manifest.
const IMAGE_OF_THE_MANIFEST: &str = "default";
/// With one of these files, `drop_in_dependency` is on.
const DROP_IN_SWITCHES: &[&str] = &["/etc/sysconfig/podman_drop_in", "/etc/default/podman_drop_in"];

/// The parameters, parsed.
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
}

/// Where image, certificates and settings come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A pod manifest of OpenShift; the image may be another one.
    Manifest { path: PathBuf, image: Option<String> },
    /// The parameters alone.
    Parameters { image: String, certificates: Certificates },
}

/// The PEM files that the parameters name, on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    pub trusted_ca_file: PathBuf,
    pub server: Pair,
    pub peer: Pair,
    /// What the agent asks etcd with.
    pub client: Pair,
}

/// One entry of `node_ip_map`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIp {
    pub name: String,
    pub ip: IpAddr,
}

/// A wrong parameter: the exit code that fits it, and what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct Invalid {
    pub code: Code,
    pub sentence: String,
}

impl Invalid {
    /// A value that can fit no node.
    fn everywhere(sentence: impl Into<String>) -> Self {
        Self { code: Code::Configured, sentence: sentence.into() }
    }

    /// A value that does not fit this node.
    pub fn here(sentence: impl Into<String>) -> Self {
        Self { code: Code::Args, sentence: sentence.into() }
    }

    /// What can be put right at any moment: worth another try.
    pub fn for_now(sentence: impl Into<String>) -> Self {
        Self { code: Code::Generic, sentence: sentence.into() }
    }
}

/// The container's name: what a stop and a probe need, even where all else is wrong.
pub fn container_name(env: &Env) -> String {
    env.parameter("name").or_else(|| default_of("name")).unwrap_or_default().to_owned()
}

/// The directory of etcd's configuration, which a stop looks into even where all else is wrong.
pub fn config_location(env: &Env) -> PathBuf {
    PathBuf::from(env.parameter("config_location").or_else(|| default_of("config_location")).unwrap_or_default())
}

/// Reads the parameters from the environment.
pub fn parse(env: &Env) -> Result<Params, Invalid> {
    boolean(env, "reuse")?;
    let params = parse_each(env)?;
    fit_together(&params)?;
    Ok(params)
}

/// Each by itself.
fn parse_each(env: &Env) -> Result<Params, Invalid> {
    Ok(Params {
        nodes: node_ip_map(required(env, "node_ip_map", "node1:192.0.2.1;node2:192.0.2.2")?)?,
        source: source(env)?,
        name: read::container_name(env)?,
        authfile: path(env, "authfile")?,
        allow_pull: boolean(env, "allow_pull")?,
        run_opts: read::run_opts(env)?,
        run_cmd: words(env, "run_cmd"),
        run_cmd_opts: words(env, "run_cmd_opts"),
        mount_points: read::paths(env, "mount_points")?,
        monitor_cmd: words(env, "monitor_cmd"),
        force_kill: boolean(env, "force_kill")?,
        drop_in_dependency: drop_in_dependency(env)?,
        oom: integer(env, "oom", -1000..=1000)?,
        config_location: read::directory("config_location", path(env, "config_location")?)?,
        backup_location: read::directory("backup_location", path(env, "backup_location")?)?,
        max_backups: integer(env, "max_backup_snapshots", 0..=1000)?,
        kubeconfig: path(env, "kubeconfig")?,
        data_dir: optional_path(env, "data_dir")?.map(|path| read::directory("data_dir", path)).transpose()?,
        client_port: integer(env, "client_port", 1..=65535)?,
        peer_port: integer(env, "peer_port", 1..=65535)?,
        etcd_settings: etcd_settings(env)?,
        promote_max_lag: integer(env, "promote_max_lag", 0..=1_000_000)?,
    })
}

/// What holds of several parameters. Settings of a pod manifest go with those of the parameters, and are looked at with it.
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

/// Whether etcd takes `settings` beside each other and the ports.
pub fn settings_fit(params: &Params, settings: &[Setting]) -> Result<(), Invalid> {
    let taken = [("client_port", params.client_port), ("peer_port", params.peer_port)];
    settings::fit_together(settings, &taken).map_err(|why| Invalid::everywhere(format!("etcd_settings: {why}")))
}

/// The certificates decide: where they are given, nothing of OpenShift is read.
fn source(env: &Env) -> Result<Source, Invalid> {
    let image = env.parameter("image").filter(|image| *image != IMAGE_OF_THE_MANIFEST);
    if let Some(image) = image {
        read::image(image)?;
    }
    let (Some(certificates), image) = (certificates(env)?, image) else {
        let image = image.map(str::to_owned);
        return Ok(Source::Manifest { path: path(env, "pod_manifest")?, image });
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
    const NAMES: [&str; 3] = ["trusted_ca_file", "cert_file", "key_file"];
    const PAIRS: [&str; 4] = ["peer_cert_file", "peer_key_file", "client_cert_file", "client_key_file"];
    if NAMES.iter().chain(&PAIRS).all(|name| env.parameter(name).is_none()) {
        return Ok(None);
    }
    if let Some(missing) = NAMES.iter().find(|name| env.parameter(name).is_none()) {
        return Err(Invalid::everywhere(format!("{missing} is not set: give {} together", NAMES.join(", "))));
    }
    let server = Pair { cert: path(env, "cert_file")?, key: path(env, "key_file")? };
    let other = |cert: &str, key: &str| match (optional_path(env, cert)?, optional_path(env, key)?) {
        (None, None) => Ok(server.clone()),
        (Some(cert), Some(key)) => Ok(Pair { cert, key }),
        _ => Err(Invalid::everywhere(format!("{cert} and {key} belong together: give both or neither"))),
    };
    Ok(Some(Certificates {
        trusted_ca_file: path(env, "trusted_ca_file")?,
        peer: other("peer_cert_file", "peer_key_file")?,
        client: other("client_cert_file", "client_key_file")?,
        server,
    }))
}

fn drop_in_dependency(env: &Env) -> Result<bool, Invalid> {
    if env.parameter("drop_in_dependency").is_some() {
        return boolean(env, "drop_in_dependency");
    }
    Ok(DROP_IN_SWITCHES.iter().any(|file| std::path::Path::new(file).is_file()))
}

fn etcd_settings(env: &Env) -> Result<Vec<Setting>, Invalid> {
    let text = env.parameter("etcd_settings").unwrap_or_default();
    let entries = text.split([';', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| settings::parse(entry).map_err(|why| Invalid::everywhere(format!("etcd_settings: {why}"))))
        .collect()
}
