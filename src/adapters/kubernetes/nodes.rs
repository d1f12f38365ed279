//! Kubernetes Nodes: the list of a group, a fresh read of one Node, and a watch of one Node.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::api::{self, authorised, words};
use super::kubeconfig::Access;
use crate::base::json;

const NODES: &str = "/api/v1/nodes";
/// The greatest number of Nodes that one request asks for.
const PAGE: usize = 100;
/// The greatest number of requests for one list of Nodes. No cluster needs so many.
const MOST_PAGES: usize = 100;
/// The time that this client waits for the end of a watch after the time at which the server should end it.
const GRACE: Duration = Duration::from_secs(5);
/// The greatest size in bytes of one event of a watch. A Node with the names of all its images is much shorter.
const LINE_LIMIT: u64 = 4 * 1024 * 1024;

/// The reason why a request to the Kubernetes API has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// The API server refused the request, for example with the HTTP status 401, 403 or 404.
    #[error("the API answers {status}: {why}")]
    Refused { status: u16, why: String },
    /// The API server no longer has the resource version from which the watch was to begin.
    #[error("the version from which the watch was to begin is too old")]
    TooOld,
    /// No usable answer arrived. The text is the reason.
    #[error("{0}")]
    None(String),
}

/// The fields of a Kubernetes Node that fencing uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The Node's addresses of type `InternalIP`, in the order in which the Node lists them.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) labels: BTreeMap<String, String>,
    /// The keys of the Node's annotations.
    pub(crate) annotations: BTreeSet<String>,
    /// The keys of the Node's taints.
    pub(crate) taints: BTreeSet<String>,
    pub(crate) is_being_deleted: bool,
    pub(crate) version: String,
}

/// An event of a watch of one Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The Node was created or changed. The field is its new state.
    Is(Box<Node>),
    /// The Node was deleted. The text is the resource version of the deletion.
    Gone(String),
    /// The Node is unchanged up to this resource version (a bookmark).
    Version(String),
}

/// Returns all Nodes with the label `label`, as in `key=value`.
pub(crate) fn list(access: &Access, label: &str, patience: Duration) -> Result<Vec<Node>, Failure> {
    let agent = api::agent(access, patience).map_err(Failure::None)?;
    let mut nodes = Vec::new();
    let mut next = String::new();
    for _ in 0..MOST_PAGES {
        let path = format!("{NODES}?limit={PAGE}&labelSelector={}&continue={}", encoded(label), encoded(&next));
        let answer: Listed = parsed(&answered(&agent, access, &path)?)?;
        nodes.extend(answer.items.unwrap_or_default().into_iter().map(Node::from));
        next = answer.metadata.next.unwrap_or_default();
        if next.is_empty() {
            return Ok(nodes);
        }
    }
    Err(Failure::None(format!("the list has more than {MOST_PAGES} pages")))
}

/// Reads the Node `name`; `None` where there is none. The read is linearizable, because the request names no resource version.
pub(crate) fn read(access: &Access, name: &str, patience: Duration) -> Result<Option<Node>, Failure> {
    let agent = api::agent(access, patience).map_err(Failure::None)?;
    match answered(&agent, access, &format!("{NODES}/{}", encoded(name))) {
        Ok(body) => Ok(Some(Node::from(parsed::<Object>(&body)?))),
        Err(Failure::Refused { status: 404, .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Reads the Node `name`, and the resource version from which a watch shows each later change. The version is that of the answer, which is
/// a list with this Node. A server that has discarded its history would refuse the Node's own, older version.
pub(crate) fn begin(access: &Access, name: &str, patience: Duration) -> Result<(Option<Node>, String), Failure> {
    let agent = api::agent(access, patience).map_err(Failure::None)?;
    let path = format!("{NODES}?fieldSelector=metadata.name%3D{}", encoded(name));
    let answer: Listed = parsed(&answered(&agent, access, &path)?)?;
    let node = answer.items.unwrap_or_default().into_iter().map(Node::from).find(|node| node.name == name);
    Ok((node, answer.metadata.resource_version))
}

/// An open watch of one Node.
pub(crate) struct Watch {
    lines: BufReader<Box<dyn Read + Send>>,
}

/// Starts a watch of the Node `name` from the resource version `version` on. The server ends the watch after `time`. If the server does
/// not, the watch ends with an error after [`GRACE`].
pub(crate) fn watch(access: &Access, name: &str, version: &str, time: Duration) -> Result<Watch, Failure> {
    watch_with(access, name, version, (time, GRACE))
}

/// Starts a watch as [`watch`] does. `grace` replaces [`GRACE`].
fn watch_with(
    access: &Access,
    name: &str,
    version: &str,
    (time, grace): (Duration, Duration),
) -> Result<Watch, Failure> {
    let agent = api::agent(access, time + grace).map_err(Failure::None)?;
    let path = format!(
        "{NODES}?watch=1&allowWatchBookmarks=true&fieldSelector=metadata.name%3D{}&resourceVersion={}&timeoutSeconds={}",
        encoded(name),
        encoded(version),
        time.as_secs()
    );
    let answer = called(&agent, access, &path)?;
    Ok(Watch { lines: BufReader::new(Box::new(answer.into_body().into_with_config().limit(u64::MAX).reader())) })
}

impl Watch {
    /// Waits for the next event of the watch. Returns `None` once the server has ended the watch.
    pub(crate) fn next(&mut self) -> Result<Option<Change>, Failure> {
        let mut line = Vec::new();
        let read = (&mut self.lines).take(LINE_LIMIT).read_until(b'\n', &mut line);
        read.map_err(|error| Failure::None(error.to_string()))?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(Failure::None("the watch ended in the middle of a change".to_owned()));
        }
        let event: Event = parsed(&String::from_utf8_lossy(&line))?;
        let object = || json::from_value::<Object>(&event.object).map_err(|_| not_understood());
        match event.kind.as_str() {
            "ADDED" | "MODIFIED" => Ok(Some(Change::Is(Box::new(Node::from(object()?))))),
            "DELETED" => Ok(Some(Change::Gone(Node::from(object()?).version))),
            "BOOKMARK" => Ok(Some(Change::Version(Node::from(object()?).version))),
            "ERROR" => {
                let status: Status = json::from_value(&event.object).map_err(|_| not_understood())?;
                Err(status.failure(0))
            }
            kind => Err(Failure::None(format!("the watch shows a change of the kind '{}'", short(kind)))),
        }
    }
}

#[derive(Deserialize)]
struct Listed {
    #[serde(default)]
    metadata: ListMetadata,
    /// The Nodes of the list; `None` if the list is empty, because Go writes an empty list as null.
    items: Option<Vec<Object>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
    resource_version: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: serde_json::Value,
}

#[derive(Default, Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<String>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    taints: Vec<Taint>,
}

#[derive(Deserialize)]
struct Taint {
    key: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    addresses: Vec<Address>,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

/// The API server's reason for refusing a request.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
    message: String,
}

impl Status {
    fn failure(self, status: u16) -> Failure {
        const GONE: u16 = 410;
        match if self.code == 0 { status } else { self.code } {
            GONE => Failure::TooOld,
            status => Failure::Refused { status, why: short(&self.message) },
        }
    }
}

impl From<Object> for Node {
    fn from(object: Object) -> Self {
        let Object { metadata, spec, status } = object;
        let internal = status.addresses.iter().filter(|address| address.kind == "InternalIP");
        Self {
            name: metadata.name,
            uid: metadata.uid,
            addresses: internal.filter_map(|address| address.address.parse().ok()).collect(),
            labels: metadata.labels,
            annotations: metadata.annotations.into_keys().collect(),
            taints: spec.taints.into_iter().map(|taint| taint.key).collect(),
            is_being_deleted: metadata.deletion_timestamp.is_some(),
            version: metadata.resource_version,
        }
    }
}

/// Sends a GET request for `path`. An HTTP status other than success is an error.
fn called(agent: &ureq::Agent, access: &Access, path: &str) -> Result<ureq::http::Response<ureq::Body>, Failure> {
    let request = authorised(agent.get(format!("{}{path}", access.server)), access);
    let mut answer = request.call().map_err(|error| Failure::None(words(&error, access)))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let body = answer.body_mut().with_config().limit(LINE_LIMIT).read_to_string().unwrap_or_default();
    Err(json::from_text::<Status>(&body).unwrap_or_default().failure(status.as_u16()))
}

fn answered(agent: &ureq::Agent, access: &Access, path: &str) -> Result<String, Failure> {
    let mut answer = called(agent, access, path)?;
    let body = answer.body_mut().with_config().limit(api::BODY_LIMIT).read_to_string();
    body.map_err(|error| Failure::None(words(&error, access)))
}

fn parsed<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, Failure> {
    json::from_text(text).map_err(|_| not_understood())
}

fn not_understood() -> Failure {
    Failure::None("the API's answer is not understood".to_owned())
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Returns the first characters of a text from the server, without control characters.
fn short(text: &str) -> String {
    const LONGEST: usize = 300;
    text.chars().filter(|character| !character.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
pub(crate) mod stand_in;

#[cfg(test)]
mod tests;
