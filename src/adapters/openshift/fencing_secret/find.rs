//! The search for a node's Secret: by its name, by a MAC address of its machine, or by the address of its BMC.

use data_encoding::HEXLOWER;
use ring::digest;
use serde_json::Value;
use zeroize::Zeroize as _;

use super::{decoded, host_of};
use crate::adapters::kubernetes::api::{body, list};
use crate::adapters::kubernetes::kubeconfig::Access;
use crate::base::json;

const SECRETS: &str = "/api/v1/namespaces/openshift-etcd/secrets";
const PREFIX: &str = "fencing-credentials-";
const NODES: &str = "/api/v1/nodes/";
/// The JSON pointer to the annotation in which OpenShift's operator records a node's MAC addresses, separated by commas.
const MAC_ADDRESSES: &str = "/metadata/annotations/tnf.openshift.io~1mac-addresses";

/// Returns the API path of the fencing Secret with the name of `node`.
pub(in super::super) fn named(node: &str) -> String {
    format!("{SECRETS}/{PREFIX}{node}")
}

/// Returns the API path of the fencing Secret of `node`, if no Secret has the node's name. The Secret is found by a MAC address
/// of the node, or by the BMC's `host`. Returns `None` if no node has a fencing Secret. If only other nodes have one, the result
/// is an error, because the name of this node's Secret is unknown.
pub(in super::super) fn search(
    agent: &ureq::Agent,
    access: &Access,
    node: &str,
    host: Option<&str>,
) -> Result<Option<String>, String> {
    let mut all: Vec<Listed> = list(agent, access, SECRETS)?.into_iter().filter_map(Listed::of).collect();
    if all.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = all.iter().map(|secret| secret.name.clone()).collect();
    let by_mac = macs(agent, access, node)?;
    if all.iter().any(|secret| by_mac.contains(&secret.name)) {
        all.retain(|secret| by_mac.contains(&secret.name));
    } else {
        all.retain(|secret| host.is_some_and(|host| secret.host.as_deref() == Some(host)));
        // One BMC may have several systems, so a Secret with another node's name is that node's.
        let mut nameless = Vec::new();
        for secret in all {
            let other = secret.name.strip_prefix(PREFIX).unwrap_or_default();
            if body(agent, access, &format!("{NODES}{other}"))?.is_none() {
                nameless.push(secret);
            }
        }
        all = nameless;
    }
    match &all[..] {
        [one] => Ok(Some(format!("{SECRETS}/{}", one.name))),
        [] => Err(format!(
            "no Secret is {node}'s by its name, by a MAC address or by the BMC's address; there are: {}",
            names.join(", ")
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|secret| secret.name.as_str()).collect();
            Err(format!("several Secrets fit {node}: {}", names.join(", ")))
        }
    }
}

/// Returns the names that OpenShift would give fencing Secrets by the MAC addresses of `node`.
fn macs(agent: &ureq::Agent, access: &Access, node: &str) -> Result<Vec<String>, String> {
    let Some(text) = body(agent, access, &format!("{NODES}{node}"))? else { return Ok(Vec::new()) };
    let node: Value = json::from_text(&text).map_err(|_| "the API's Node is not understood".to_owned())?;
    let macs = node.pointer(MAC_ADDRESSES).and_then(Value::as_str).unwrap_or_default();
    let name = |mac: &str| {
        let plain = mac.trim().to_ascii_lowercase().replace([':', '-'], "");
        format!("{PREFIX}{}", HEXLOWER.encode(digest::digest(&digest::SHA256, plain.as_bytes()).as_ref()))
    };
    Ok(macs.split(',').filter(|mac| !mac.trim().is_empty()).map(name).collect())
}

/// A fencing Secret from the list of all Secrets, with the host of its BMC.
struct Listed {
    name: String,
    host: Option<String>,
}

impl Listed {
    /// Returns the name and the BMC's host of a fencing Secret; `None` for another Secret. Overwrites the other contents, because
    /// they include the password.
    fn of(mut secret: Value) -> Option<Self> {
        let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").filter(|name| name.starts_with(PREFIX)).map(str::to_owned);
        let host = text("/data/address").and_then(decoded).map(|address| host_of(&address).to_owned());
        if let Some(data) = secret.pointer_mut("/data").and_then(Value::as_object_mut) {
            data.values_mut().for_each(|value| {
                if let Value::String(text) = value {
                    text.zeroize();
                }
            });
        }
        Some(Self { name: name?, host })
    }
}
