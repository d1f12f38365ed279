//! The agent's parameters: one table, from which they are parsed and described, and the sentences for wrong ones.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::ocf::env::{Env, is_true};
use crate::ocf::exit::Code;
use crate::ocf::metadata::Parameter;

/// Every parameter, in the order in which the meta-data lists them.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "node_ip_map",
        kind: "string",
        required: true,
        default: None,
        short: "Nodes and their addresses",
        long: "The cluster's nodes and the IP addresses under which their etcd members reach each other, as 'node1:192.0.2.1;node2:192.0.2.2'. Names are the cluster nodes' names. An IPv6 address is written without brackets. One entry makes a cluster of one.",
    },
    Parameter {
        name: "image",
        kind: "string",
        required: true,
        default: None,
        short: "Container image",
        long: "The image that etcd runs from, as podman names it, e.g. 'registry.example.com/etcd:v3.5.21'.",
    },
    Parameter {
        name: "name",
        kind: "string",
        required: false,
        default: Some("etcd"),
        short: "Container name",
        long: "The name of the container.",
    },
    Parameter {
        name: "data_dir",
        kind: "string",
        required: false,
        default: Some("/var/lib/etcd"),
        short: "etcd's data dir",
        long: "The directory that holds etcd's data (in 'member'), its configuration file, the backups of data that was moved aside, and the agent's durable note.",
    },
    Parameter {
        name: "trusted_ca_file",
        kind: "string",
        required: true,
        default: None,
        short: "CA certificates",
        long: "The PEM file with the certificates of the authority that signed the members' and the clients' certificates.",
    },
    Parameter {
        name: "cert_file",
        kind: "string",
        required: true,
        default: None,
        short: "Certificate",
        long: "The PEM file with this node's certificate, for clients and for other members, with this node's address in it.",
    },
    Parameter {
        name: "key_file",
        kind: "string",
        required: true,
        default: None,
        short: "Private key",
        long: "The PEM file with the private key of 'cert_file'.",
    },
    Parameter {
        name: "peer_cert_file",
        kind: "string",
        required: false,
        default: None,
        short: "Certificate between members",
        long: "The PEM file with the certificate that members show each other; 'cert_file' where it is not given.",
    },
    Parameter {
        name: "peer_key_file",
        kind: "string",
        required: false,
        default: None,
        short: "Private key between members",
        long: "The PEM file with the private key of 'peer_cert_file'.",
    },
    Parameter {
        name: "client_cert_file",
        kind: "string",
        required: false,
        default: None,
        short: "The agent's certificate",
        long: "The PEM file with the client certificate that the agent itself asks etcd with; 'cert_file' where it is not given.",
    },
    Parameter {
        name: "client_key_file",
        kind: "string",
        required: false,
        default: None,
        short: "The agent's private key",
        long: "The PEM file with the private key of 'client_cert_file'.",
    },
    Parameter {
        name: "client_port",
        kind: "integer",
        required: false,
        default: Some("2379"),
        short: "Port for clients",
        long: "The TCP port on which etcd serves clients.",
    },
    Parameter {
        name: "peer_port",
        kind: "integer",
        required: false,
        default: Some("2380"),
        short: "Port for members",
        long: "The TCP port on which members reach each other.",
    },
    Parameter {
        name: "promote_max_lag",
        kind: "integer",
        required: false,
        default: Some("100"),
        short: "Largest lag of a learner to promote, in log entries",
        long: "A learner becomes a voter once it lacks at most this many entries of the leader's log in two polls in a row. From then on every write waits for it.",
    },
    Parameter {
        name: "max_backup_snapshots",
        kind: "integer",
        required: false,
        default: Some("3"),
        short: "Backups to keep",
        long: "How many data dirs that were moved aside are kept once this node votes again. Until then none is deleted, unless the disk has no room for the data that it is to get; then the oldest go first, and never one that may still be needed.",
    },
    Parameter {
        name: "allow_pull",
        kind: "boolean",
        required: false,
        default: Some("1"),
        short: "Whether to pull the image",
        long: "Whether the image is pulled where this node does not have it.",
    },
    Parameter {
        name: "oom",
        kind: "integer",
        required: false,
        default: Some("-997"),
        short: "OOM score adjustment",
        long: "How willing the kernel is to end etcd when memory runs out, from -1000 (never) to 1000. 0 leaves it alone.",
    },
    Parameter {
        name: "run_opts",
        kind: "string",
        required: false,
        default: None,
        short: "More options of podman run",
        long: "Options added to 'podman run', separated by blanks.",
    },
];

/// The parameters, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    pub nodes: Vec<NodeIp>,
    pub image: String,
    pub name: String,
    pub data_dir: PathBuf,
    pub trusted_ca_file: PathBuf,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub peer_cert_file: PathBuf,
    pub peer_key_file: PathBuf,
    pub client_cert_file: PathBuf,
    pub client_key_file: PathBuf,
    pub client_port: u16,
    pub peer_port: u16,
    pub promote_max_lag: u64,
    pub max_backups: usize,
    pub allow_pull: bool,
    pub oom: i32,
    pub run_opts: Vec<String>,
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
}

/// The container's name and the data dir: what a stop and a probe need, even where all else is wrong.
pub fn container_name(env: &Env) -> String {
    env.parameter("name").or_else(|| default_of("name")).unwrap_or_default().to_owned()
}

/// Reads the parameters from the environment.
pub fn parse(env: &Env) -> Result<Params, Invalid> {
    let cert_file = path(env, "cert_file")?;
    let key_file = path(env, "key_file")?;
    let pair = |cert: &str, key: &str| -> Result<(PathBuf, PathBuf), Invalid> {
        match (env.parameter(cert), env.parameter(key)) {
            (None, None) => Ok((cert_file.clone(), key_file.clone())),
            (Some(_), Some(_)) => Ok((path(env, cert)?, path(env, key)?)),
            _ => Err(Invalid::everywhere(format!("{cert} and {key} belong together: give both or neither"))),
        }
    };
    let (peer_cert_file, peer_key_file) = pair("peer_cert_file", "peer_key_file")?;
    let (client_cert_file, client_key_file) = pair("client_cert_file", "client_key_file")?;
    Ok(Params {
        nodes: node_ip_map(required(env, "node_ip_map", "node1:192.0.2.1;node2:192.0.2.2")?)?,
        image: required(env, "image", "registry.example.com/etcd:v3.5.21")?.to_owned(),
        name: container_name(env),
        data_dir: path(env, "data_dir")?,
        trusted_ca_file: path(env, "trusted_ca_file")?,
        cert_file: cert_file.clone(),
        key_file: key_file.clone(),
        peer_cert_file,
        peer_key_file,
        client_cert_file,
        client_key_file,
        client_port: integer(env, "client_port", 1..=65535)?,
        peer_port: integer(env, "peer_port", 1..=65535)?,
        promote_max_lag: integer(env, "promote_max_lag", 0..=1_000_000)?,
        max_backups: integer(env, "max_backup_snapshots", 0..=1000)?,
        allow_pull: boolean(env, "allow_pull")?,
        oom: integer(env, "oom", -1000..=1000)?,
        run_opts: env.parameter("run_opts").unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
    })
}

fn default_of(name: &str) -> Option<&'static str> {
    PARAMETERS.iter().find(|parameter| parameter.name == name).and_then(|parameter| parameter.default)
}

fn required<'a>(env: &'a Env, name: &str, example: &str) -> Result<&'a str, Invalid> {
    env.parameter(name).or_else(|| default_of(name)).ok_or_else(|| {
        Invalid::everywhere(format!("{name} is not set: 'pcs resource update {} {name}={example}'", env.resource()))
    })
}

fn path(env: &Env, name: &str) -> Result<PathBuf, Invalid> {
    let text = required(env, name, &format!("/etc/etcd/{name}"))?;
    if text.starts_with('/') {
        return Ok(PathBuf::from(text));
    }
    Err(Invalid::everywhere(format!("{name}={text} is not an absolute path")))
}

fn integer<T: TryFrom<i64>>(env: &Env, name: &str, range: std::ops::RangeInclusive<i64>) -> Result<T, Invalid> {
    let text = required(env, name, "0")?;
    let wrong = || {
        Invalid::everywhere(format!("{name}={text} is not a whole number from {} to {}", range.start(), range.end()))
    };
    let number: i64 = text.parse().map_err(|_| wrong())?;
    if !range.contains(&number) {
        return Err(wrong());
    }
    T::try_from(number).map_err(|_| wrong())
}

fn boolean(env: &Env, name: &str) -> Result<bool, Invalid> {
    let text = required(env, name, "1")?;
    match text.to_ascii_lowercase().as_str() {
        _ if is_true(text) => Ok(true),
        "no" | "false" | "0" | "off" | "nein" => Ok(false),
        _ => Err(Invalid::everywhere(format!("{name}={text} is neither yes nor no"))),
    }
}

/// Splits each entry at its first colon, so that an IPv6 address stays whole.
fn node_ip_map(text: &str) -> Result<Vec<NodeIp>, Invalid> {
    let compact: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    let mut nodes: Vec<NodeIp> = Vec::new();
    for entry in compact.split(';').filter(|entry| !entry.is_empty()) {
        let wrong = |why: &str| {
            Invalid::everywhere(format!("node_ip_map: '{entry}' {why}; write 'node1:192.0.2.1;node2:192.0.2.2'"))
        };
        let (name, ip) = entry.split_once(':').ok_or_else(|| wrong("is not 'name:address'"))?;
        let ip: IpAddr = ip.trim_matches(['[', ']']).parse().map_err(|_| wrong("does not end in an IP address"))?;
        if name.is_empty() {
            return Err(wrong("names no node"));
        }
        if nodes.iter().any(|node| node.name == name || node.ip == ip) {
            return Err(wrong("repeats a node or an address"));
        }
        nodes.push(NodeIp { name: name.to_owned(), ip });
    }
    match nodes.len() {
        1 | 2 => Ok(nodes),
        0 => Err(Invalid::everywhere("node_ip_map is empty; write 'node1:192.0.2.1;node2:192.0.2.2'")),
        count => Err(Invalid::everywhere(format!("node_ip_map names {count} nodes; this agent keeps one or two"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[(&str, &str)] = &[
        ("node_ip_map", "node1:192.0.2.1; node2:2001:db8::2"),
        ("image", "etcd:3.5"),
        ("trusted_ca_file", "/c/ca"),
        ("cert_file", "/c/crt"),
        ("key_file", "/c/key"),
    ];

    fn parsed(changed: &[(&str, &str)]) -> Result<Params, Invalid> {
        let pairs = GOOD.iter().chain(changed).map(|(n, v)| (format!("OCF_RESKEY_{n}"), (*v).to_owned()));
        parse(&Env::from_pairs(pairs))
    }

    #[test]
    fn defaults_and_ipv6() {
        let params = parsed(&[]).unwrap();
        assert_eq!(params.nodes[1].ip.to_string(), "2001:db8::2");
        assert_eq!((params.client_port, params.oom, params.max_backups), (2379, -997, 3));
        assert_eq!(params.peer_cert_file, params.cert_file);
    }

    #[test]
    fn every_wrong_value_gets_its_sentence() {
        for (name, value, words) in [
            ("node_ip_map", "", "node_ip_map is not set"),
            ("node_ip_map", ";", "node_ip_map is empty"),
            ("node_ip_map", "node1", "'node1' is not 'name:address'"),
            ("node_ip_map", "node1:x", "does not end in an IP address"),
            ("node_ip_map", ":192.0.2.1", "names no node"),
            ("node_ip_map", "a:192.0.2.1;a:192.0.2.2", "repeats a node"),
            ("node_ip_map", "a:192.0.2.1;b:192.0.2.1", "repeats a node or an address"),
            ("node_ip_map", "a:192.0.2.1;b:192.0.2.2;c:192.0.2.3", "names 3 nodes"),
            ("image", "", "image is not set"),
            ("cert_file", "etcd.crt", "not an absolute path"),
            ("peer_cert_file", "/c/peer.crt", "belong together"),
            ("client_port", "0", "client_port=0 is not a whole number from 1 to 65535"),
            ("oom", "-1001", "from -1000 to 1000"),
            ("promote_max_lag", "few", "promote_max_lag=few"),
            ("allow_pull", "perhaps", "allow_pull=perhaps is neither yes nor no"),
        ] {
            let invalid = parsed(&[(name, value)]).unwrap_err();
            assert!(invalid.sentence.contains(words), "{name}={value}: {}", invalid.sentence);
            assert_eq!(invalid.code, Code::Configured, "{name}={value}");
        }
    }
}
