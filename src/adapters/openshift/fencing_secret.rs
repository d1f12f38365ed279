//! OpenShift's own copy of a fence device's credentials. Its operator rebuilds the device from this Secret whenever the two
//! differ. So the Secret must follow a change, or the operator reverts it.

pub(super) mod find;

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use zeroize::{Zeroize as _, Zeroizing};

use crate::adapters::kubernetes::api::{CONFLICT, TRIES, authorised, connect, words};
use crate::adapters::kubernetes::kubeconfig::Access;
use crate::base::Fact;

const BODY_LIMIT: u64 = 1024 * 1024;
const OK: u16 = 200;
const NOT_FOUND: u16 = 404;

/// The new values of a fencing Secret; `None` keeps the present value.
#[derive(Default)]
pub struct Changes<'a> {
    pub username: Option<&'a str>,
    pub password: Option<&'a [u8]>,
    /// The host of the BMC, with its port unless that is 443.
    pub host: Option<&'a str>,
    /// The Redfish path of the system that the BMC controls.
    pub system: Option<&'a str>,
}

impl std::fmt::Debug for Changes<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { username, host, system, .. } = self;
        write!(formatter, "Changes({username:?}, {host:?}, {system:?}, ***)")
    }
}

/// Writes `changes` to the fencing Secret of `node`. A Secret with another name is found by `host`, the BMC's host before the change. The
/// result is `Absent` if no node has such a Secret: there is no OpenShift, or OpenShift has no fencing here.
pub fn follow(
    kubeconfig: &Path,
    (node, host): (&str, Option<&str>),
    changes: &Changes<'_>,
    patience: Duration,
) -> Fact<()> {
    if !kubeconfig.exists() {
        return Fact::Absent;
    }
    match patch(kubeconfig, (node, host), changes, patience) {
        Ok(true) => Fact::Known(()),
        Ok(false) => Fact::Absent,
        Err(why) => Fact::Unknown(why),
    }
}

fn patch(
    kubeconfig: &Path,
    (node, host): (&str, Option<&str>),
    changes: &Changes<'_>,
    patience: Duration,
) -> Result<bool, String> {
    let (agent, access) = connect(kubeconfig, patience)?;
    let mut path = find::named(node);
    for _ in 0..TRIES {
        let url = format!("{}{path}", access.server);
        if let Some(secret) = read(&agent, &access, &url)? {
            if write(&agent, &access, &url, &secret, changes)? {
                return Ok(true);
            }
        } else if let Some(other) = find::search(&agent, &access, node, host)? {
            path = other;
        } else {
            return Ok(false);
        }
    }
    Err("another client writes to its Secret at the same time".to_owned())
}

/// The fields of a fencing Secret that are needed to change it. The password is never copied.
struct Secret {
    version: String,
    address: String,
}

/// Reads the fencing Secret at `url`; `None` if there is none.
fn read(agent: &ureq::Agent, access: &Access, url: &str) -> Result<Option<Secret>, String> {
    let mut answer = authorised(agent.get(url), access).call().map_err(|error| words(&error, access))?;
    match answer.status().as_u16() {
        OK => {}
        NOT_FOUND => return Ok(None),
        status => return Err(format!("the API answers {status}")),
    }
    let body =
        answer.body_mut().with_config().limit(BODY_LIMIT).read_to_vec().map_err(|error| words(&error, access))?;
    let body = Zeroizing::new(body);
    let secret: Value = serde_json::from_slice(&body).map_err(|_| "its Secret is not understood".to_owned())?;
    let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str);
    let address = text("/data/address").and_then(decoded).unwrap_or_default();
    let version = text("/metadata/resourceVersion").ok_or("the API names no version of its Secret")?.to_owned();
    Ok(Some(Secret { version, address }))
}

/// Writes `changes` to the Secret at `url`. Returns `false` if another client has changed the Secret since it was read.
fn write(
    agent: &ureq::Agent,
    access: &Access,
    url: &str,
    secret: &Secret,
    changes: &Changes<'_>,
) -> Result<bool, String> {
    let metadata = json!({"resourceVersion": secret.version});
    let mut patch = json!({"metadata": metadata, "data": data(changes, &secret.address)});
    let text = Zeroizing::new(patch.to_string());
    if let Some(Value::String(password)) = patch.pointer_mut("/data/password") {
        password.zeroize();
    }
    let request = authorised(agent.patch(url), access).header("Content-Type", "application/merge-patch+json");
    let answer = request.send(text.as_bytes()).map_err(|error| words(&error, access))?;
    match answer.status().as_u16() {
        OK => Ok(true),
        CONFLICT => Ok(false),
        status => Err(format!("the API answers {status}")),
    }
}

fn decoded(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}

fn data(changes: &Changes<'_>, address: &str) -> Map<String, Value> {
    let mut data = Map::new();
    let mut set = |name: &str, value: &[u8]| data.insert(name.to_owned(), Value::String(STANDARD.encode(value)));
    if let Some(username) = changes.username {
        set("username", username.as_bytes());
    }
    if let Some(password) = changes.password {
        set("password", password);
    }
    if changes.host.is_some() || changes.system.is_some() {
        set("address", moved(address, changes).as_bytes());
    }
    data
}

/// Returns the host of a BMC's address, without scheme and port.
fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    let end = host.rfind(':').filter(|at| !host.get(*at..).unwrap_or_default().contains(']'));
    end.and_then(|end| host.get(..end)).unwrap_or(host).trim_matches(['[', ']'])
}

/// Returns `address`, which is `redfish+https://HOST[:PORT]/redfish/v1/Systems/ID`, with the host and the system of `changes`.
fn moved(address: &str, changes: &Changes<'_>) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("redfish+https", address));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}://{}{}", changes.host.unwrap_or(host), changes.system.unwrap_or(path))
}

#[cfg(test)]
#[path = "fencing_secret/tests.rs"]
mod tests;
