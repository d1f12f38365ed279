//! The reasons why the agent does not start. Each contains a command or setting that resolves it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::adapters::watchdog::refusal::Refusal as OfTheDevice;

/// A reason why the agent refuses to start, other than wrong arguments.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{file} cannot be read ({source}): 'fencing-agent example > {file}', and fill it in")]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{file}, line {line}: {why}: 'fencing-agent example' shows each key")]
    Syntax { file: PathBuf, line: usize, why: String },
    #[error("the name of this node is not known: type 'node = \"NAME\"' in {file}, or set NODE_NAME")]
    NoNode { file: PathBuf },
    #[error("the name of the group is not known: type 'group = \"NAME\"' in {file}, or set NODE_GROUP")]
    NoGroup { file: PathBuf },
    #[error("{file} has no members: list them under [members], name a members_file, or type [kubernetes]")]
    NoMembers { file: PathBuf },
    #[error("{file} has two of [members], members_file and [kubernetes]: delete one of them")]
    TwoLists { file: PathBuf },
    #[error(
        "the API server does not know this account ({why}): give the kubeconfig under [kubernetes] a token or certificate that it knows"
    )]
    ApiKnowsUsNot { why: String },
    #[error(
        "the API answers {status} ({why}): let the account get, list and watch nodes, as in /usr/share/tandem/kubernetes/fencing-agent.yaml"
    )]
    ApiRefuses { status: u16, why: String },
    #[error(
        "the group cannot be listed ({why}), and no earlier list is kept: 'kubectl get nodes' on this node shows why"
    )]
    NoApi { why: String },
    #[error("there is no Node {node}, the group has {names}: type the Node's name as 'node', or set NODE_NAME")]
    NoNodeObject { node: String, names: String },
    #[error("Node {node} has {has}: 'kubectl label node {node} {label}={group}', or type the group that it has")]
    NotLabelled { node: String, label: String, group: String, has: String },
    #[error("the list of members cannot be read ({source}): 'ls -l {file}'")]
    NoMembersFile { file: PathBuf, source: io::Error },
    #[error("'{name}' is no name of a member: type letters, digits, '-', '.' and '_'")]
    Name { name: String },
    #[error("'{address}' of {name} is no address of a node: type one such as '192.0.2.1'")]
    Address { name: String, address: String },
    #[error("{name} has {has} addresses: type {networks}, one for each network of this node")]
    Networks { name: String, has: usize, networks: usize },
    #[error("{address} is the address of {one} and of {two}: type each address once")]
    TwiceTheAddress { address: IpAddr, one: String, two: String },
    #[error("node {node} is not listed: type one of {names} as 'node', or list it")]
    NotListed { node: String, names: String },
    #[error("{address} is on no interface of this machine: 'ip -brief address' shows those that are")]
    NotLocal { address: IpAddr },
    #[error("the addresses of {node} changed: 'systemctl restart fencing-agent' takes them over")]
    OwnAddressChanged { node: String },
    #[error("a watchdog needs 3 members, and {count} are listed: type 'on_quorum_loss = \"notify\"'")]
    WatchdogOfFew { count: usize },
    #[error("a quorum of {quorum} is at most half of {count} members: type 'quorum = {least}' or more")]
    SmallQuorum { quorum: usize, count: usize, least: usize },
    #[error("a quorum of {quorum} is more than all {count} members: type 'quorum = {least}', or list the others")]
    LargeQuorum { quorum: usize, count: usize, least: usize },
    #[error("tie_breaker = \"api\" needs [kubernetes]: type 'tie_breaker = \"none\"'")]
    ApiWithoutKubernetes,
    #[error("port 0 is none that other nodes can send to: type 'port = 7946'")]
    Port,
    #[error("{key} is 0: type a duration such as '3s', or delete the key")]
    Zero { key: &'static str },
    #[error("{key}: {why}")]
    Duration { key: &'static str, why: String },
    #[error("the upper time of a suspicion is below the lower one: type 'suspicion = [\"1s\", \"2s\"]'")]
    Suspicion,
    #[error("a watchdog's time-out of {timeout} s is less than two intervals: type 'timeout = \"{least}s\"' or more")]
    ShortTimeout { timeout: f64, least: f64 },
    #[error(
        "a watchdog's time-out of {timeout} s is none that a device takes: type whole seconds, as in 'timeout = \"15s\"'"
    )]
    PartOfASecond { timeout: f64 },
    #[error("a window of {window} s is less than four challenges: type 'window = \"1s\"' or more")]
    ShortWindow { window: f64 },
    #[error("{file} is missing: 'fencing-agent keygen > {file}', 'chmod 0600 {file}', and the same file on each node")]
    NoKey { file: PathBuf },
    #[error("{file} cannot be read ({source}): 'ls -l {file}'")]
    KeyUnreadable { file: PathBuf, source: io::Error },
    #[error("{file} has {has} bytes, and a key has at least {least}: 'fencing-agent keygen > {file}'")]
    ShortKey { file: PathBuf, has: usize, least: usize },
    #[error("{file} can be read by others (mode {mode:04o}): 'chmod 0600 {file}'")]
    OpenKey { file: PathBuf, mode: u32 },
    #[error("{file} belongs to user {owner}: 'chown root {file}'")]
    KeyOfAnother { file: PathBuf, owner: u32 },
    #[error("{0}")]
    Device(#[from] OfTheDevice),
    #[error("{socket} is taken, another agent serves it: 'fencing-agent status' shows it")]
    SocketTaken { socket: PathBuf },
    #[error("{socket} cannot be served ({source}): 'ls -ld {socket}'")]
    Socket { socket: PathBuf, source: io::Error },
    #[error("there is no group {group}: type another under [grpc], or 'groupadd --system {group}'")]
    NoUserGroup { group: String },
    #[error("{address} is taken ({source}): 'fencing-agent status', or 'ss -ulpn' shows by which program")]
    PortTaken { address: SocketAddr, source: io::Error },
    #[error("{path} cannot be written ({source}): 'ls -ld {path}'")]
    Place { path: PathBuf, source: io::Error },
    #[error("{marker} is there, since a client of watchdog-mux has not left in order: 'reboot'")]
    Marked { marker: PathBuf },
    #[error("{socket} is not served: 'systemctl start watchdog-mux'")]
    NoMux { socket: PathBuf },
    #[error("the signals cannot be taken over ({source}): 'systemctl start fencing-agent'")]
    Signals { source: io::Error },
    #[error("a thread cannot be started ({source}): 'ulimit -u'")]
    Thread { source: io::Error },
    #[error("the kernel gives no random numbers: 'systemctl start fencing-agent' later")]
    Random,
}

impl Refusal {
    /// Returns whether there was no list of members to read: the API server does not serve, or the file of members is missing or broken.
    /// Returns false if the API server refuses this account or this node.
    pub(crate) fn is_without_list(&self) -> bool {
        let is_of_api = matches!(self, Self::NoApi { .. });
        let is_of_file =
            matches!(self, Self::NoMembersFile { .. } | Self::Syntax { .. } | Self::Name { .. } | Self::Address { .. });
        is_of_api || is_of_file
    }
}

/// Returns the refusal of a file with the content `text` that is not TOML, or has an unknown key.
pub(super) fn syntax(file: &Path, text: &str, error: &toml::de::Error) -> Refusal {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let why = error.message().lines().collect::<Vec<_>>().join(" ");
    Refusal::Syntax { file: file.to_owned(), line, why }
}
