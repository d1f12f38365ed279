//! The file that the other node needs so that the first one can reach it: the description and one half of the one-time
//! keys. The first node keeps its half only in memory, so the file is useless once its command has ended.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::Error as Channel;
use super::tls::{self, Identity};
use crate::base::json;
use crate::operate::setup::description::Description;
use crate::operate::setup::found_file::digest;
use crate::os::wiped;
use crate::records::state_file;

/// Largest size of a join file, in bytes.
pub const LIMIT: u64 = 1024 * 1024;
/// Seconds for which a join file is valid.
const LASTS: u64 = 24 * 3_600;
/// Largest accepted difference between the two nodes' clocks when a join file is used, in seconds. Setup itself later
/// requires a smaller one.
const AHEAD: u64 = 3_600;
const HEAD: &str = "# A join file of Tandem";
const CHECK: &str = "sha256 ";

/// The contents of a join file. With it, 'tandem setup join' lets the node that drives the setup connect.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The version of Tandem that wrote the join file.
    pub tandem: String,
    /// Time at which the join file was written, in seconds since 1970 by the writing node's clock.
    pub made_at: u64,
    /// Name of the node that uses the join file.
    pub node: String,
    /// Name of the node that wrote the join file and drives the setup.
    pub from: String,
    pub description: Description,
    pub is_dry: bool,
    certificate: String,
    key: Zeroizing<String>,
    /// The certificate that the node which drives the setup presents when it connects, in PEM.
    caller: String,
}

impl std::fmt::Debug for Join {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Join(for {} from {}, made at {})", self.node, self.from, self.made_at)
    }
}

/// The reason why a join file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("{0} cannot be read: {1}: bring the file that 'tandem setup' wrote on the other node")]
    Unreadable(String, String),
    #[error("that is no join file: bring the one that 'tandem setup' wrote on the other node, /etc/tandem/NODE.join")]
    Foreign,
    #[error("the join file is cut off: copy it anew")]
    Cut,
    #[error("the join file was changed since it was written: copy it anew")]
    Changed,
    #[error("the join file was written by Tandem {0}, and here is {1}: install the same on both nodes")]
    Version(String, &'static str),
    #[error("the join file is older than 24 hours, and void: type 'tandem setup' on {0} again, and bring the new one")]
    Old(String),
    #[error(
        "the join file was written at a time that is yet to come: 'chronyc makestep' where the clock is wrong, then 'tandem setup' on {0} again"
    )]
    Ahead(String),
    #[error("the join file is for {node}, and this machine is {here}: type this on {node}")]
    Another { node: String, here: String },
}

/// Creates the join file for the other node than the one at index `at`. Also returns the half of the one-time keys that
/// stays on this node.
pub fn make(
    description: &Description,
    at: usize,
    is_dry: bool,
    now: u64,
) -> Result<(Join, super::Credentials), Channel> {
    let (server, client) = (Identity::draw()?, Identity::draw()?);
    let [from, node] = [at, 1 - at].map(|at| description.nodes[at].name.clone());
    let join = Join {
        tandem: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: now,
        node,
        from,
        description: description.clone(),
        is_dry,
        certificate: server.certificate.clone(),
        key: server.key,
        caller: client.certificate.clone(),
    };
    Ok((join, super::Credentials { own: client, other: server.certificate }))
}

impl Join {
    /// Returns the path at which the node that drives the setup writes the join file.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/etc/tandem/{}.join", self.node))
    }

    /// Returns the text of the join file: a head line, the content and its checksum.
    pub fn text(&self) -> Result<Zeroizing<String>, Channel> {
        let body = Zeroizing::new(serde_json::to_string(self).map_err(|error| Channel::Stranger(error.to_string()))?);
        let head = format!("{HEAD} for {}: a secret, for 24 hours at most", self.node);
        let check = digest(body.as_bytes());
        let mut text = Zeroizing::new(String::with_capacity(head.len() + body.len() + check.len() + 16));
        for piece in [head.as_str(), "\n", &body, "\n", CHECK, &check, "\n"] {
            text.push_str(piece);
        }
        Ok(text)
    }

    /// Writes the join file to its path, readable only by root.
    pub fn write(&self) -> Result<(), Channel> {
        let path = self.path();
        let failed =
            |error: std::io::Error| Channel::Stranger(format!("{} cannot be written: {error}", path.display()));
        state_file::replace(&path, self.text()?.as_bytes(), 0o600).map_err(failed)
    }

    /// Returns the key that the joining node presents, and the only certificate that it accepts. That certificate
    /// belongs to the node that drives the setup.
    pub(super) fn credentials(&self) -> super::Credentials {
        let own = Identity { certificate: self.certificate.clone(), key: self.key.clone() };
        super::Credentials { own, other: self.caller.clone() }
    }

    /// Checks that the join file may be used at the time `now` on this machine. `here` is the machine's node name, or
    /// `None` if it is no described node.
    pub fn check(&self, now: u64, here: Option<&str>) -> Result<(), Unusable> {
        if now > self.made_at.saturating_add(LASTS) {
            return Err(Unusable::Old(self.from.clone()));
        }
        if self.made_at > now.saturating_add(AHEAD) {
            return Err(Unusable::Ahead(self.from.clone()));
        }
        if here != Some(self.node.as_str()) {
            let here = here.unwrap_or("none of the two").to_owned();
            return Err(Unusable::Another { node: self.node.clone(), here });
        }
        Ok(())
    }
}

/// Reads and checks the join file at `path`.
pub fn read(path: &Path) -> Result<Join, Unusable> {
    let bytes = wiped::read_at_most(path, LIMIT).map_err(|error| {
        let why = if error.kind() == ErrorKind::NotFound { "it is not there".to_owned() } else { error.to_string() };
        Unusable::Unreadable(path.display().to_string(), why)
    })?;
    parse(&bytes)
}

/// Parses the text that [`Join::text`] wrote, and checks its checksum and version.
pub fn parse(bytes: &[u8]) -> Result<Join, Unusable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unusable::Foreign)?;
    if !text.starts_with(HEAD) {
        return Err(if !text.is_empty() && HEAD.starts_with(text) { Unusable::Cut } else { Unusable::Foreign });
    }
    let mut lines = text.splitn(3, '\n').skip(1);
    let (Some(body), Some(check)) = (lines.next(), lines.next()) else { return Err(Unusable::Cut) };
    let Some(check) = check.strip_prefix(CHECK).and_then(|check| check.strip_suffix('\n')) else {
        return Err(if check.len() <= CHECK.len() + 64 && !check.ends_with('\n') {
            Unusable::Cut
        } else {
            Unusable::Changed
        });
    };
    if check != digest(body.as_bytes()) {
        return Err(Unusable::Changed);
    }
    let own = env!("CARGO_PKG_VERSION");
    // Another version may have other fields, but each has its version.
    let version = json::from_text::<Version>(body).map_err(|_| Unusable::Foreign)?.tandem;
    if version != own {
        return Err(Unusable::Version(version, own));
    }
    json::from_text(body).map_err(|_| Unusable::Foreign)
}

#[derive(Deserialize)]
struct Version {
    tandem: String,
}

pub(super) use tls::Identity as Keys;
