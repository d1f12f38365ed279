//! A client of the Kubernetes API over HTTP. Each question has a time limit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector as _, TcpConnector};
use zeroize::Zeroizing;

use super::kubeconfig::{self, Access};
use crate::adapters::https::address::{Address, HTTPS_PORT};
use crate::adapters::https::tls::{self, Identity, Trust};
use crate::adapters::https::transport::TlsConnector;
use crate::adapters::https::wrong::{self, Names, Wrong};
use crate::base::json;

/// The greatest size in bytes of an answer's body. The list of all Machines of a two-node cluster is much shorter.
pub(crate) const BODY_LIMIT: u64 = 8 * 1024 * 1024;
const NOT_FOUND: u16 = 404;
const OK: u16 = 200;
/// The HTTP status of a write that is based on an old version of the object.
pub(crate) const CONFLICT: u16 = 409;
/// The number of attempts to change an object that another client changes at the same time.
pub(crate) const TRIES: usize = 5;

/// Returns the items of the list at `path`; none if the cluster does not have this API.
pub(crate) fn list(agent: &ureq::Agent, access: &Access, path: &str) -> Result<Vec<Value>, String> {
    let Some(body) = body(agent, access, path)? else { return Ok(Vec::new()) };
    let document: Value = json::from_text(&body).map_err(|error| error.to_string())?;
    Ok(document.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
}

/// Returns the body of the answer for `path`; `None` if the status is 404.
pub(crate) fn body(agent: &ureq::Agent, access: &Access, path: &str) -> Result<Option<Zeroizing<String>>, String> {
    let request = authorised(agent.get(format!("{}{path}", access.server)), access);
    let mut answer = request.call().map_err(|error| words(&error, access))?;
    match answer.status().as_u16() {
        OK => {}
        NOT_FOUND => return Ok(None),
        status => return Err(format!("the API answers {status}")),
    }
    let body =
        answer.body_mut().with_config().limit(BODY_LIMIT).read_to_string().map_err(|error| words(&error, access))?;
    Ok(Some(Zeroizing::new(body)))
}

/// Reads the kubeconfig file. Returns an HTTP client with the time limit `patience` for each request, and the access that the
/// file gives.
pub(crate) fn connect(kubeconfig: &Path, patience: Duration) -> Result<(ureq::Agent, Access), String> {
    let access = kubeconfig::read(kubeconfig).map_err(|why| format!("{} {why}", kubeconfig.display()))?;
    Ok((agent(&access, patience)?, access))
}

/// Adds the bearer token of `access` to a request, if `access` has one.
pub(crate) fn authorised<B>(request: ureq::RequestBuilder<B>, access: &Access) -> ureq::RequestBuilder<B> {
    match &access.token {
        Some(token) => request.header("Authorization", Zeroizing::new(["Bearer ", token].concat()).as_str()),
        None => request,
    }
}

pub(crate) fn agent(access: &Access, patience: Duration) -> Result<ureq::Agent, String> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(patience))
        .max_redirects(0)
        .http_status_as_error(false)
        .proxy(None)
        .build();
    let Some(server) = access.server.strip_prefix("https://") else { return Ok(config.new_agent()) };
    let host = server.split('/').next().unwrap_or_default();
    let name = Address::parse(host, HTTPS_PORT).ok().and_then(|address| address.server_name());
    let name = name.ok_or_else(|| format!("{} names the server '{}', which is none", access.file, access.server))?;
    let config_of_tls = tls::with_identity(Trust::Listed(trusted(access)?), identity(access)?)
        .map_err(|error| format!("the client-certificate of {} is of no use: {error}", access.file))?;
    let tls = TlsConnector { config: Arc::new(config_of_tls), name, connections: Arc::default() };
    let connector = ().chain(TcpConnector::default()).chain(tls);
    Ok(ureq::Agent::with_parts(config, connector, DefaultResolver::default()))
}

/// Returns the authorities of `access`. If there are none, the client trusts no server.
fn trusted(access: &Access) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(pem) = &access.authorities else { return Ok(Vec::new()) };
    match wrong::authorities(pem) {
        Some(why) => Err(format!("the certificate-authority of {} is of no use: {why}", access.file)),
        None => Ok(CertificateDer::pem_slice_iter(pem).flatten().collect()),
    }
}

/// Returns the client certificate of `access` and its key; `None` if the kubeconfig has none.
fn identity(access: &Access) -> Result<Option<Identity>, String> {
    let Some((certificate, key)) = &access.identity else { return Ok(None) };
    let of_no_use = |what: &str, why: &str| format!("the {what} of {} is of no use: {why}", access.file);
    match wrong::identity(certificate, key, "its client-certificate") {
        Some(Wrong::Certificate(why)) => return Err(of_no_use("client-certificate", &why)),
        Some(Wrong::Key(why)) => return Err(of_no_use("client-key", &why)),
        None => {}
    }
    let chain = CertificateDer::pem_slice_iter(certificate).flatten().collect();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| of_no_use("client-key", &error.to_string()))?;
    Ok(Some((chain, key)))
}

/// Returns a text for an error of a request. For a failed TLS handshake it names the entry of the kubeconfig that caused the
/// failure.
pub(crate) fn words(error: &ureq::Error, access: &Access) -> String {
    let of_tls = match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => wrong::of_tls(error),
        _ => None,
    };
    let authorities = match &access.authorities {
        Some(_) => format!("the certificate-authority of {}", access.file),
        None => format!("{}, which names no certificate-authority", access.file),
    };
    let certificate = access.identity.as_ref().map(|_| access.file.as_str());
    let why = of_tls.and_then(|error| wrong::handshake(error, Names { authorities: &authorities, certificate }));
    why.map_or_else(|| error.to_string(), |why| format!("{}: {why}", access.server))
}

#[cfg(test)]
#[path = "api/tests.rs"]
mod tests;
