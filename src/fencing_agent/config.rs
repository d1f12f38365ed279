//! The configuration: a TOML file, and the variables of a DaemonSet's environment.

pub(crate) mod key;
pub(crate) mod kubernetes;
mod raw;
pub(crate) mod refusal;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::kubernetes::Kubernetes;
use self::raw::{Addresses, Raw};
use self::refusal::Refusal;
use super::core::{LONGEST_NAME, NetworkRule, OnQuorumLoss, TieBreaker, TimingOverrides};
use crate::adapters::kubernetes::kubeconfig::Pod;
use crate::os::regular_file;

/// Default path of the configuration.
pub(crate) const FILE: &str = "/etc/tandem/fencing-agent.toml";
/// The configuration that `fencing-agent example` prints.
pub(crate) const EXAMPLE: &str = include_str!("config/example.toml");
/// The largest allowed size of the configuration, and of the file of members, in bytes.
const LIMIT: u64 = 1024 * 1024;
/// The shortest window that may be configured. A window is the time for which an answer of a member counts, and must contain four
/// challenges.
const LEAST_WINDOW: Duration = Duration::from_secs(1);

/// The values from the environment of the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// The environment variable `NODE_NAME`, used if the configuration has no `node`; `None` if it is not set.
    pub(crate) node: Option<String>,
    /// The environment variable `NODE_GROUP`, used if the configuration has no `group`; `None` if it is not set.
    pub(crate) group: Option<String>,
    /// The API server that Kubernetes names in a pod's environment; `None` outside of a pod.
    pub(crate) pod: Option<Pod>,
}

/// The members by name. Each has one address for each network.
pub(crate) type Members = BTreeMap<String, Vec<IpAddr>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) node: String,
    pub(crate) group: String,
    pub(crate) members: Members,
    /// Path of the file with the members; `None` if they are listed elsewhere.
    pub(crate) members_file: Option<PathBuf>,
    /// The settings for the Kubernetes API; `None` unless the members are its Nodes.
    pub(crate) kubernetes: Option<Kubernetes>,
    pub(crate) port: u16,
    pub(crate) networks: NetworkRule,
    pub(crate) key_file: PathBuf,
    pub(crate) on_quorum_loss: OnQuorumLoss,
    pub(crate) quorum: Option<usize>,
    pub(crate) tie_breaker: TieBreaker,
    pub(crate) watchdog: Watchdog,
    pub(crate) timing: TimingOverrides,
    pub(crate) lifeguard: bool,
    pub(crate) adaptive_threshold: u32,
    pub(crate) socket: PathBuf,
    pub(crate) socket_group: Option<String>,
    pub(crate) disable_file: PathBuf,
}

/// The watchdog: a device, or the socket of `watchdog-mux`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watchdog {
    pub(crate) device: PathBuf,
    pub(crate) timeout: Duration,
    pub(crate) interval: Duration,
}

/// Returns the reason why a configuration with this text is refused; `None` if it is accepted. A list of members in another file or in the
/// API is not read, and counts as empty.
pub fn refusal_of(text: &str) -> Option<String> {
    let file = Path::new(FILE);
    let none = (|_: &Path| Ok(Members::new()), |_: &Kubernetes| Ok(Members::new()));
    let config = Raw::of(text, file).and_then(|raw| Config::of(raw, file, Environment::default(), none));
    config.err().map(|why| why.to_string())
}

impl Config {
    /// Reads the configuration in `file`, and its list of members in another file or in the API.
    pub(crate) fn read(file: &Path, environment: Environment) -> Result<Self, Refusal> {
        Self::read_with(file, environment, Err)
    }

    /// Reads only the paths of the socket and of the disable file. Other values are not checked, because the commands for a running agent
    /// do not need them.
    pub(crate) fn socket_and_disable_file(file: &Path) -> Result<(PathBuf, PathBuf), Refusal> {
        let raw = Raw::read(file)?;
        Ok((raw.grpc.socket, raw.disable_file))
    }

    /// Reads the configuration as [`Config::read`] does. If the list of members in a file or in the API is unreadable, calls `otherwise`,
    /// which returns another list or an error.
    pub(crate) fn read_with(
        file: &Path,
        environment: Environment,
        otherwise: impl Fn(Refusal) -> Result<Members, Refusal>,
    ) -> Result<Self, Refusal> {
        let raw = Raw::read(file)?;
        let of_file = |path: &Path| read_members(path).or_else(&otherwise);
        let of_api = |kubernetes: &Kubernetes| kubernetes.first_list().or_else(&otherwise);
        Self::of(raw, file, environment, (of_file, of_api))
    }

    fn of(
        raw: Raw,
        file: &Path,
        environment: Environment,
        (of_file, of_api): (
            impl Fn(&Path) -> Result<Members, Refusal>,
            impl Fn(&Kubernetes) -> Result<Members, Refusal>,
        ),
    ) -> Result<Self, Refusal> {
        let name = |own: Option<String>, of_environment: Option<String>| {
            own.or(of_environment).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
        };
        let node = name(raw.node, environment.node).ok_or_else(|| Refusal::NoNode { file: file.to_owned() })?;
        let group = name(raw.group, environment.group).ok_or_else(|| Refusal::NoGroup { file: file.to_owned() })?;
        let kubernetes = raw.kubernetes.map(|raw| kubernetes(raw, &node, &group, environment.pod)).transpose()?;
        let members = match (&raw.members, &raw.members_file, &kubernetes) {
            (Some(members), None, None) => addresses(members)?,
            (None, Some(path), None) => of_file(path)?,
            (None, None, Some(kubernetes)) => of_api(kubernetes)?,
            (None, None, None) => return Err(Refusal::NoMembers { file: file.to_owned() }),
            _ => return Err(Refusal::TwoLists { file: file.to_owned() }),
        };
        let otherwise = if kubernetes.is_some() { TieBreaker::Api } else { TieBreaker::None };
        let config = Self {
            node,
            group,
            members,
            members_file: raw.members_file,
            kubernetes,
            port: raw.port,
            networks: raw.networks.into(),
            key_file: raw.key_file,
            on_quorum_loss: raw.on_quorum_loss.into(),
            quorum: raw.quorum,
            tie_breaker: raw.tie_breaker.map_or(otherwise, TieBreaker::from),
            watchdog: Watchdog {
                device: raw.watchdog.device,
                timeout: positive("watchdog.timeout", &raw.watchdog.timeout)?,
                interval: positive("watchdog.interval", &raw.watchdog.interval)?,
            },
            timing: TimingOverrides {
                gossip: raw.timing.gossip.map(|text| positive("timing.gossip", &text)).transpose()?,
                probe: raw.timing.probe.map(|text| positive("timing.probe", &text)).transpose()?,
                suspicion: raw.timing.suspicion.map(|texts| suspicion(&texts)).transpose()?,
                window: raw.timing.window.map(|text| positive("timing.window", &text)).transpose()?,
            },
            lifeguard: raw.timing.lifeguard,
            adaptive_threshold: raw.timing.adaptive_threshold,
            socket: raw.grpc.socket,
            socket_group: raw.grpc.group,
            disable_file: raw.disable_file,
        };
        config.check()?;
        Ok(config)
    }

    /// Refuses values of the configuration that are invalid or contradict each other.
    fn check(&self) -> Result<(), Refusal> {
        let count = self.members.len();
        let Some(own) = self.members.get(&self.node) else {
            let names: Vec<&str> = self.members.keys().map(String::as_str).collect();
            return Err(Refusal::NotListed { node: self.node.clone(), names: names.join(", ") });
        };
        check_networks(&self.members, own.len())?;
        let is_for_two = self.on_quorum_loss != OnQuorumLoss::Watchdog;
        if count < 3 && !is_for_two {
            return Err(Refusal::WatchdogOfFew { count });
        }
        let least = count / 2 + 1;
        match self.quorum {
            Some(quorum) if quorum < least => return Err(Refusal::SmallQuorum { quorum, count, least }),
            Some(quorum) if quorum > count => return Err(Refusal::LargeQuorum { quorum, count, least }),
            _ => {}
        }
        if self.tie_breaker == TieBreaker::Api && self.kubernetes.is_none() {
            return Err(Refusal::ApiWithoutKubernetes);
        }
        if self.port == 0 {
            return Err(Refusal::Port);
        }
        let (timeout, least) = (self.watchdog.timeout, self.watchdog.interval * 2);
        if !is_for_two && timeout < least {
            return Err(Refusal::ShortTimeout { timeout: timeout.as_secs_f64(), least: least.as_secs_f64().ceil() });
        }
        if !is_for_two && (timeout.subsec_nanos() != 0) {
            return Err(Refusal::PartOfASecond { timeout: timeout.as_secs_f64() });
        }
        match self.timing.window {
            Some(window) if window < LEAST_WINDOW => Err(Refusal::ShortWindow { window: window.as_secs_f64() }),
            _ => Ok(()),
        }
    }

    /// Returns the addresses at which this node receives datagrams, one for each network.
    pub(crate) fn own_addresses(&self) -> Vec<SocketAddr> {
        let own = self.members.get(&self.node).map(Vec::as_slice).unwrap_or_default();
        own.iter().map(|address| SocketAddr::new(*address, self.port)).collect()
    }

    /// Returns the number of members for a quorum.
    pub(crate) fn quorum(&self) -> usize {
        self.quorum.unwrap_or(self.members.len() / 2 + 1)
    }

    /// Returns the configuration with another list of members. Refuses a list that contradicts the other values, or changes this node's
    /// own addresses.
    pub(crate) fn with_members(&self, members: Members) -> Result<Self, Refusal> {
        let config = Self { members, ..self.clone() };
        config.check()?;
        let networks = |config: &Self| config.own_addresses();
        if networks(self) != networks(&config) {
            return Err(Refusal::OwnAddressChanged { node: self.node.clone() });
        }
        Ok(config)
    }
}

/// Reads the members from `file`, which another program maintains.
pub(crate) fn read_members(file: &Path) -> Result<Members, Refusal> {
    let text = regular_file::text_of_at_most(file, LIMIT)
        .map_err(|source| Refusal::NoMembersFile { file: file.to_owned(), source })?;
    let raw: BTreeMap<String, Addresses> =
        toml::from_str(&text).map_err(|error| refusal::syntax(file, &text, &error))?;
    addresses(&raw)
}

fn addresses(raw: &BTreeMap<String, Addresses>) -> Result<Members, Refusal> {
    let mut members = Members::new();
    for (name, addresses) in raw {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            return Err(Refusal::Name { name: name.clone() });
        }
        let read = |text: &String| {
            let wrong = || Refusal::Address { name: name.clone(), address: text.clone() };
            let address: IpAddr = text.trim().parse().map_err(|_| wrong())?;
            if address.is_unspecified() || address.is_multicast() { Err(wrong()) } else { Ok(address) }
        };
        let read: Vec<IpAddr> = addresses.all().iter().map(read).collect::<Result<_, _>>()?;
        members.insert(name.clone(), read);
    }
    Ok(members)
}

/// Checks that each member has one address for each network, and that no address occurs twice.
fn check_networks(members: &Members, networks: usize) -> Result<(), Refusal> {
    let mut seen = BTreeMap::new();
    for (name, addresses) in members {
        if addresses.len() != networks || networks == 0 {
            return Err(Refusal::Networks { name: name.clone(), has: addresses.len(), networks: networks.max(1) });
        }
        for address in addresses {
            if let Some(other) = seen.insert(address, name) {
                return Err(Refusal::TwiceTheAddress { address: *address, one: other.clone(), two: name.clone() });
            }
        }
    }
    Ok(())
}

fn kubernetes(raw: raw::Kubernetes, node: &str, group: &str, pod: Option<Pod>) -> Result<Kubernetes, Refusal> {
    Ok(Kubernetes {
        kubeconfig: raw.kubeconfig,
        pod,
        node: node.to_owned(),
        label: raw.label,
        group: group.to_owned(),
        check_interval: positive("kubernetes.check_interval", &raw.check_interval)?,
        api_timeout: positive("kubernetes.api_timeout", &raw.api_timeout)?,
    })
}

fn positive(key: &'static str, text: &str) -> Result<Duration, Refusal> {
    match crate::base::duration(text) {
        Ok(duration) if duration.is_zero() => Err(Refusal::Zero { key }),
        Ok(duration) => Ok(duration),
        Err(why) => Err(Refusal::Duration { key, why }),
    }
}

fn suspicion(texts: &[String; 2]) -> Result<(Duration, Duration), Refusal> {
    let [lower, upper] = texts;
    let (lower, upper) = (positive("timing.suspicion", lower)?, positive("timing.suspicion", upper)?);
    if lower > upper { Err(Refusal::Suspicion) } else { Ok((lower, upper)) }
}

#[cfg(test)]
mod tests;
