//! The configuration as written. An unknown key is refused, because a mistyped one would silently get its default.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::LIMIT;
use super::refusal::{self, Refusal};
use crate::fencing_agent::core;
use crate::os::regular_file;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) node: Option<String>,
    pub(super) group: Option<String>,
    pub(super) members: Option<BTreeMap<String, Addresses>>,
    pub(super) members_file: Option<PathBuf>,
    #[serde(default = "port")]
    pub(super) port: u16,
    #[serde(default)]
    pub(super) networks: Networks,
    #[serde(default = "key_file")]
    pub(super) key_file: PathBuf,
    #[serde(default)]
    pub(super) on_quorum_loss: OnQuorumLoss,
    pub(super) quorum: Option<usize>,
    pub(super) tie_breaker: Option<TieBreaker>,
    #[serde(default)]
    pub(super) watchdog: Watchdog,
    #[serde(default)]
    pub(super) timing: Timing,
    #[serde(default)]
    pub(super) grpc: Grpc,
    #[serde(default = "disable_file")]
    pub(super) disable_file: PathBuf,
    pub(super) kubernetes: Option<Kubernetes>,
}

impl Raw {
    pub(super) fn read(file: &Path) -> Result<Self, Refusal> {
        let text = regular_file::text_of_at_most(file, LIMIT)
            .map_err(|source| Refusal::Unreadable { file: file.to_owned(), source })?;
        Self::of(&text, file)
    }

    pub(super) fn of(text: &str, file: &Path) -> Result<Self, Refusal> {
        toml::from_str(text).map_err(|error| refusal::syntax(file, text, &error))
    }
}

/// The addresses of a member: one, or one for each network.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Addresses {
    One(String),
    Many(Vec<String>),
}

impl Addresses {
    pub(super) fn all(&self) -> Vec<String> {
        match self {
            Self::One(address) => vec![address.clone()],
            Self::Many(addresses) => addresses.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Networks {
    #[default]
    Any,
    All,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnQuorumLoss {
    #[default]
    Watchdog,
    Notify,
    Wait,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TieBreaker {
    Api,
    None,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Kubernetes {
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) label: String,
    pub(super) check_interval: String,
    pub(super) api_timeout: String,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            label: "node.deckhouse.io/group".to_owned(),
            check_interval: "5m".to_owned(),
            api_timeout: "5s".to_owned(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Watchdog {
    pub(super) device: PathBuf,
    pub(super) timeout: String,
    pub(super) interval: String,
}

impl Default for Watchdog {
    fn default() -> Self {
        Self { device: "/dev/watchdog".into(), timeout: "15s".to_owned(), interval: "5s".to_owned() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Timing {
    pub(super) gossip: Option<String>,
    pub(super) probe: Option<String>,
    pub(super) suspicion: Option<[String; 2]>,
    pub(super) window: Option<String>,
    pub(super) lifeguard: bool,
    pub(super) adaptive_threshold: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self { gossip: None, probe: None, suspicion: None, window: None, lifeguard: true, adaptive_threshold: 4 }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Grpc {
    pub(super) socket: PathBuf,
    pub(super) group: Option<String>,
}

impl Default for Grpc {
    fn default() -> Self {
        Self { socket: "/run/fencing-agent.sock".into(), group: None }
    }
}

fn port() -> u16 {
    7946
}

fn key_file() -> PathBuf {
    "/etc/tandem/fencing-agent.key".into()
}

fn disable_file() -> PathBuf {
    "/run/fencing-agent/disable".into()
}

impl From<Networks> for core::NetworkRule {
    fn from(raw: Networks) -> Self {
        match raw {
            Networks::Any => Self::Any,
            Networks::All => Self::All,
        }
    }
}

impl From<OnQuorumLoss> for core::OnQuorumLoss {
    fn from(raw: OnQuorumLoss) -> Self {
        match raw {
            OnQuorumLoss::Watchdog => Self::Watchdog,
            OnQuorumLoss::Notify => Self::Notify,
            OnQuorumLoss::Wait => Self::Wait,
        }
    }
}

impl From<TieBreaker> for core::TieBreaker {
    fn from(raw: TieBreaker) -> Self {
        match raw {
            TieBreaker::Api => Self::Api,
            TieBreaker::None => Self::None,
        }
    }
}
