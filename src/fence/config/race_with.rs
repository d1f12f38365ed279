//! The option `race_with` and its companions: the BMC of the agent's own node, and the preferred node of the two.

use std::path::PathBuf;
use std::time::Duration;

use super::TrustSource;
use super::reader::Reader;
use crate::adapters::https::address::Address;
use crate::adapters::https::tls;
use crate::fence::options::Opt;

/// The port of the BMC of this agent's own node. It applies if the option `race_with` names no port.
const PORT: u16 = 443;

/// The value of the options `race_with`, `race_delay` and `race_preferred`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceWith {
    /// The address of the BMC of this agent's own node.
    pub address: Address,
    pub trust: TrustSource,
    /// The user at the BMC of this agent's own node; `None` if it is the same as at the target's BMC.
    pub username: Option<String>,
    pub password_file: Option<PathBuf>,
    /// The path of this agent's own system at the BMC of its node; `None` if it is not configured.
    pub systems_uri: Option<String>,
    /// True if this agent's node wins when both nodes fence each other. The option `race_preferred` names the winner.
    pub is_preferred: bool,
    pub delay: Duration,
    /// The address, system and node name of the reset's target. Each node's target is the other node, so this text also shows
    /// which node opened a session of the fence race.
    pub target: String,
}

impl Reader<'_> {
    /// Reads the option `race_with`; returns `None` if it is not set or not valid. `address` and `trust` are those of the
    /// target's BMC.
    pub(super) fn race(&mut self, address: Option<&Address>, trust: Option<&TrustSource>) -> Option<RaceWith> {
        let text = self.text(Opt::RaceWith)?;
        let delay = self.seconds(Opt::RaceDelay);
        let Some(preferred) = self.text(Opt::RacePreferred) else {
            self.fault(
                "race_preferred is missing: race_with needs the node that wins, by the same name in both devices",
            );
            return None;
        };
        let mut parts = text.split(',').map(str::trim);
        let own = parts.next().unwrap_or_default();
        let own = Address::parse(own, PORT).map_err(|fault| self.fault(&format!("race_with: {fault}"))).ok();
        let (mut username, mut password_file, mut ca_file, mut systems_uri, mut pins) =
            (None, None, None, None, Vec::new());
        for part in parts {
            match part.split_once('=') {
                Some(("username", name)) if !name.is_empty() => username = Some(name.to_owned()),
                Some(("password_file", file)) if file.starts_with('/') => password_file = Some(PathBuf::from(file)),
                Some(("ca_file", file)) if file.starts_with('/') => ca_file = Some(PathBuf::from(file)),
                Some(("systems_uri", uri)) if uri.starts_with('/') => systems_uri = Some(uri.to_owned()),
                Some(("fingerprint", pin)) => match tls::parse_fingerprints(pin) {
                    Ok(more) => pins.extend(more),
                    Err(fault) => self.fault(&format!("race_with: {fault}")),
                },
                _ => self.fault(&format!(
                    "race_with has '{part}' behind the address of this node's BMC: give systems_uri=/URI, fingerprint=, \
                     ca_file=/FILE, username= or password_file=/FILE"
                )),
            }
        }
        let trust = match (pins.is_empty(), ca_file, trust?) {
            (false, ..) => TrustSource::Pinned(pins),
            (_, Some(file), _) => TrustSource::CaFile(file),
            (_, None, TrustSource::Pinned(_)) => {
                self.fault("race_with needs fingerprint=: ssl_fingerprint is that of the other node's BMC");
                return None;
            }
            (_, None, of_device) => of_device.clone(),
        };
        let node = self.node().unwrap_or_default();
        let system = self.text(Opt::SystemsUri).or_else(|| self.text(Opt::Plug)).unwrap_or_default();
        Some(RaceWith {
            address: own?,
            trust,
            username,
            password_file,
            systems_uri,
            is_preferred: !node.is_empty() && node != preferred,
            delay: Duration::from_secs(delay),
            target: format!("{} {system} {node}", address?.full()),
        })
    }
}
