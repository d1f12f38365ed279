//! Whether OpenShift is deleting a node's Machine: then its member is not added again, as the deletion waits until the
//! member is gone. Asked over the Kubernetes API, within a bound.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use zeroize::Zeroizing;

use super::kubeconfig::{self, Access};
use crate::base::Fact;

/// How long the answer may take.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// More than the list of a two-node cluster's Machines can be.
pub(super) const BODY_LIMIT: u64 = 8 * 1024 * 1024;
/// The Machine API, then the Cluster API.
const LISTS: &[&str] = &[
    "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machines",
    "/apis/cluster.x-k8s.io/v1beta1/namespaces/openshift-cluster-api/machines",
];
const NOT_FOUND: u16 = 404;
const OK: u16 = 200;
/// Answers a write that names another version of the object.
pub(super) const CONFLICT: u16 = 409;
/// How often a change is tried on an object that another client writes to.
pub(super) const TRIES: usize = 5;

/// Whether the Machine of `node` is being deleted, as far as the API with the given kubeconfig tells; absent where there is
/// no kubeconfig, and so nothing that deletes Machines.
pub fn is_being_deleted(kubeconfig: &Path, node: &str, patience: Duration) -> Fact<bool> {
    if !kubeconfig.exists() {
        return Fact::Absent;
    }
    match ask(kubeconfig, node, patience) {
        Ok(deleted) => Fact::Known(deleted),
        Err(why) => Fact::Unknown(format!("whether the Machine of {node} is being deleted is not known: {why}")),
    }
}

fn ask(kubeconfig: &Path, node: &str, patience: Duration) -> Result<bool, String> {
    let (agent, access) = connect(kubeconfig, patience)?;
    for path in LISTS {
        let machines = list(&agent, &access, path)?;
        let fitting: Vec<&Value> = machines.iter().filter(|machine| is_of(machine, node)).collect();
        match fitting[..] {
            [] => {}
            [machine] => return Ok(machine.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)),
            _ => return Err(format!("{} Machines fit it", fitting.len())),
        }
    }
    Ok(false)
}

fn is_of(machine: &Value, node: &str) -> bool {
    if let Some(named) = machine.pointer("/status/nodeRef/name").and_then(Value::as_str) {
        return named == node;
    }
    // Of a node that has left the cluster there is the name of the machine.
    let addresses = machine.pointer("/status/addresses").and_then(Value::as_array);
    addresses.is_some_and(|addresses| addresses.iter().any(|address| address["address"] == node))
}

/// The items of a list; an API that the cluster does not have has none.
pub(super) fn list(agent: &ureq::Agent, access: &Access, path: &str) -> Result<Vec<Value>, String> {
    let Some(body) = body(agent, access, path)? else { return Ok(Vec::new()) };
    let document: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
    Ok(document.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
}

/// What is at `path`, if anything is.
pub(super) fn body(agent: &ureq::Agent, access: &Access, path: &str) -> Result<Option<Zeroizing<String>>, String> {
    let request = authorised(agent.get(format!("{}{path}", access.server)), access);
    let mut answer = request.call().map_err(|error| error.to_string())?;
    match answer.status().as_u16() {
        OK => {}
        NOT_FOUND => return Ok(None),
        status => return Err(format!("the API answers {status}")),
    }
    let body = answer.body_mut().with_config().limit(BODY_LIMIT).read_to_string().map_err(|error| error.to_string())?;
    Ok(Some(Zeroizing::new(body)))
}

/// Whoever asks the API that `kubeconfig` gives access to, within `patience` for each answer.
pub(super) fn connect(kubeconfig: &Path, patience: Duration) -> Result<(ureq::Agent, Access), String> {
    let access = kubeconfig::read(kubeconfig).map_err(|why| format!("{} {why}", kubeconfig.display()))?;
    Ok((agent(&access, patience)?, access))
}

/// The request, with the token of `access` where it has one.
pub(super) fn authorised<B>(request: ureq::RequestBuilder<B>, access: &Access) -> ureq::RequestBuilder<B> {
    match &access.token {
        Some(token) => request.header("Authorization", Zeroizing::new(["Bearer ", token].concat()).as_str()),
        None => request,
    }
}

fn agent(access: &Access, patience: Duration) -> Result<ureq::Agent, String> {
    // Where the kubeconfig names no authority, nobody is trusted: without this the client would panic, as it brings no roots.
    let trusted = access.authorities.as_ref().map(|pem| certificates(pem)).transpose()?.unwrap_or_default();
    let mut tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(trusted)));
    if let Some((certificate, key)) = &access.identity {
        let key = PrivateKey::from_pem(key).map_err(|_| "the client's key is not a PEM file")?;
        tls = tls.client_cert(Some(ClientCert::new_with_certs(&certificates(certificate)?, key)));
    }
    let config = ureq::Agent::config_builder()
        .tls_config(tls.build())
        .timeout_global(Some(patience))
        .max_redirects(0)
        .http_status_as_error(false)
        .proxy(None);
    Ok(config.build().new_agent())
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, String> {
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(_) => Some(Err("a certificate is not a PEM file".to_owned())),
    };
    parse_pem(pem).filter_map(certificate).collect()
}

#[cfg(test)]
#[path = "machine/tests.rs"]
mod tests;
