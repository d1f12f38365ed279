//! One value of a parameter, of each kind, and the sentence where it is wrong.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::{Component, PathBuf};

use super::table::PARAMETERS;
use super::{Invalid, NodeIp};
use crate::ocf::env::Env;
use crate::options::yes_no;

pub(super) fn default_of(name: &str) -> Option<&'static str> {
    PARAMETERS.iter().find(|parameter| parameter.name == name).and_then(|parameter| parameter.default)
}

pub(super) fn required<'a>(env: &'a Env, name: &str, example: &str) -> Result<&'a str, Invalid> {
    env.parameter(name).or_else(|| default_of(name)).ok_or_else(|| {
        Invalid::everywhere(format!("{name} is not set: 'pcs resource update {} {name}={example}'", env.resource()))
    })
}

pub(super) fn path(env: &Env, name: &str) -> Result<PathBuf, Invalid> {
    absolute(name, required(env, name, &format!("/etc/etcd/{name}"))?)
}

pub(super) fn optional_path(env: &Env, name: &str) -> Result<Option<PathBuf>, Invalid> {
    env.parameter(name).map(|text| absolute(name, text)).transpose()
}

/// Paths separated by commas.
pub(super) fn paths(env: &Env, name: &str) -> Result<Vec<PathBuf>, Invalid> {
    let text = env.parameter(name).unwrap_or_default();
    text.split(',').map(str::trim).filter(|path| !path.is_empty()).map(|path| absolute(name, path)).collect()
}

/// podman separates the parts of a mount by colons, and knows no way to quote one.
fn absolute(name: &str, text: &str) -> Result<PathBuf, Invalid> {
    if !text.starts_with('/') {
        return Err(Invalid::everywhere(format!("{name}={text} is not an absolute path: begin it with '/'")));
    }
    if text.contains(':') {
        return Err(Invalid::everywhere(format!("{name}={text} has a colon in it: podman mounts no such path")));
    }
    if text.contains(char::is_control) {
        return Err(Invalid::everywhere(format!(
            "{name} has a line break or the like in it: type the path in one line"
        )));
    }
    Ok(PathBuf::from(text))
}

/// A directory that is etcd's or the agent's alone: what is in it is moved and deleted, and mounted into the container.
pub(super) fn directory(name: &str, path: PathBuf) -> Result<PathBuf, Invalid> {
    if path.components().any(|part| matches!(part, Component::Normal(_))) {
        return Ok(path);
    }
    Err(Invalid::everywhere(format!("{name}={} is the root directory: give one such as /var/lib/etcd", path.display())))
}

/// A name that podman takes for an image, and not for an option of its own.
pub(super) fn image(text: &str) -> Result<(), Invalid> {
    if text.starts_with('-') || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(Invalid::everywhere(format!(
            "image={text} is no image: write its name, such as registry.example.com/etcd:v3.5.21"
        )));
    }
    Ok(())
}

pub(super) fn words(env: &Env, name: &str) -> Vec<String> {
    env.parameter(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

pub(super) fn integer<T: TryFrom<i64>>(env: &Env, name: &str, range: RangeInclusive<i64>) -> Result<T, Invalid> {
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

pub(super) fn boolean(env: &Env, name: &str) -> Result<bool, Invalid> {
    let text = required(env, name, "1")?;
    yes_no::of_resource_agents(text)
        .ok_or_else(|| Invalid::everywhere(format!("{name}={text} is neither yes nor no: write 1 or 0")))
}

/// What podman takes for a name.
pub(super) fn container_name(env: &Env) -> Result<String, Invalid> {
    let name = super::container_name(env);
    let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if fits {
        return Ok(name);
    }
    Err(Invalid::everywhere(format!("name={name} cannot name a container: use letters, digits, '_', '.' and '-'")))
}

/// Options of `podman run` that the agent sets itself, or that would take the container out of its hands, each with what to
/// do instead.
const NOT_OPTIONS: &[(&str, &str)] = &[
    ("--name", "use the parameter 'name' instead"),
    ("--restart", "remove it, as Pacemaker alone starts etcd"),
    ("--rm", "remove it, as the agent keeps the container"),
    ("--network", "remove it, as etcd uses the host's network"),
    ("--net", "remove it, as etcd uses the host's network"),
];

pub(super) fn run_opts(env: &Env) -> Result<Vec<String>, Invalid> {
    let options = words(env, "run_opts");
    for (name, instead) in NOT_OPTIONS {
        if options.iter().any(|option| option.split('=').next() == Some(name)) {
            return Err(Invalid::everywhere(format!("run_opts has {name} in it: {instead}")));
        }
    }
    Ok(options)
}

/// Splits each entry at its first colon, so that an IPv6 address stays whole.
pub(super) fn node_ip_map(text: &str) -> Result<Vec<NodeIp>, Invalid> {
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
        if name.contains([',', '=']) {
            return Err(wrong("has ',' or '=' in its name"));
        }
        if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
            return Err(wrong("has an address that no node can have"));
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
