//! Reads the value of a parameter by its row in the table, or by a rule of this agent.

use std::net::IpAddr;

use super::table::{MAX_BACKUP_SNAPSHOTS, RUN_OPTS};
use super::{Invalid, NodeIp};
use crate::adapters::ocf::env::Env;
use crate::adapters::options::OptionRow;
use crate::adapters::options::standard::Standard;
use crate::adapters::options::value::OptionValue;

/// Returns the value of a parameter, or its default.
pub(super) fn value<T: TryFrom<OptionValue>>(env: &Env, row: &OptionRow) -> Result<T, Invalid> {
    parsed(row, text(env, row)?)
}

/// Returns the value of a parameter, if it is given.
pub(super) fn given<T: TryFrom<OptionValue>>(env: &Env, row: &OptionRow) -> Result<Option<T>, Invalid> {
    env.parameter(row.name).map(|text| parsed(row, text)).transpose()
}

/// Returns the values of a parameter that is a list, which may be empty.
pub(super) fn list<T>(env: &Env, row: &OptionRow) -> Result<Vec<T>, Invalid>
where
    Vec<T>: TryFrom<OptionValue>,
{
    Ok(given(env, row)?.unwrap_or_default())
}

pub(super) fn parsed<T: TryFrom<OptionValue>>(row: &OptionRow, text: &str) -> Result<T, Invalid> {
    row.parse(Standard::ResourceAgent, text).map_err(Invalid::everywhere)
}

pub(super) fn text<'a>(env: &'a Env, row: &OptionRow) -> Result<&'a str, Invalid> {
    env.parameter(row.name).or(row.default).ok_or_else(|| {
        let (name, resource) = (row.name, env.resource());
        // The command is already inside apostrophes.
        let example = if row.value.contains(';') { format!("\"{}\"", row.value) } else { row.value.to_owned() };
        Invalid::everywhere(format!("{name} is not set: 'pcs resource update {resource} {name}={example}'"))
    })
}

/// Reads the number of backups to keep. 0 counts as 1, because an earlier version accepted 0, and a resource from that time must not fail.
pub(super) fn max_backups(env: &Env) -> Result<usize, Invalid> {
    if says_no_backup(env) { Ok(1) } else { value(env, &MAX_BACKUP_SNAPSHOTS) }
}

pub(super) fn says_no_backup(env: &Env) -> bool {
    env.parameter(MAX_BACKUP_SNAPSHOTS.name).is_some_and(super::keeps_no_backup)
}

/// Checks that podman takes the text for an image's name, and not for an option.
pub fn image(text: &str) -> Result<(), Invalid> {
    if text.starts_with('-') || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(Invalid::everywhere(format!(
            "image={text} is no image: write its name, such as registry.example.com/etcd:v3.5.21"
        )));
    }
    Ok(())
}

/// Returns the container's name if podman accepts it.
pub(super) fn container_name(env: &Env) -> Result<String, Invalid> {
    let name = super::container_name(env);
    let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if fits {
        return Ok(name);
    }
    Err(Invalid::everywhere(format!("name={name} cannot name a container: use letters, digits, '_', '.' and '-'")))
}

/// Options of `podman run` that `run_opts` may not contain, each with what to use instead. The agent sets these options itself, or they
/// would take the container out of the agent's control.
const NOT_OPTIONS: &[(&str, &str)] = &[
    ("--name", "use the parameter 'name' instead"),
    ("--restart", "remove it, as Pacemaker alone starts etcd"),
    ("--rm", "remove it, as the agent keeps the container"),
    ("--network", "remove it, as etcd uses the host's network"),
    ("--net", "remove it, as etcd uses the host's network"),
];

pub(super) fn run_opts(env: &Env) -> Result<Vec<String>, Invalid> {
    let options: Vec<String> = list(env, &RUN_OPTS)?;
    for (name, instead) in NOT_OPTIONS {
        if options.iter().any(|option| option.split('=').next() == Some(name)) {
            return Err(Invalid::everywhere(format!("run_opts has {name} in it: {instead}")));
        }
    }
    Ok(options)
}

/// Parses the parameter `node_ip_map`. Each entry is split at its first colon, so that an IPv6 address stays whole.
pub fn node_ip_map(text: &str) -> Result<Vec<NodeIp>, Invalid> {
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
