//! etcd's pod manifest, as cluster-etcd-operator writes it for Two Node OpenShift. It is JSON, with the image, the environment
//! and the command of the container `etcd`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::adapters::etcd::settings::{self, Setting};
use crate::base::json;
use crate::os::regular_file;

/// The directory of etcd's certificates in the container.
pub const CERTS_INSIDE: &str = "/etc/kubernetes/static-pod-certs";
/// The directory on the node that is usually mounted at [`CERTS_INSIDE`] in the container.
const CERTS_ON_THE_NODE: &str = "/etc/kubernetes/static-pod-resources/etcd-certs";
/// The environment variables for etcdctl that name the CA, the client certificate and its key. The peer certificate is that client
/// certificate.
pub const CLIENT_VARIABLES: [&str; 3] = ["ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY"];
/// The placeholder for the node's name in the manifest's values.
const NODE_NAME: &str = "NODE_NAME";
const NODE_VARIABLE: &str = "NODE_ENVVAR_NAME";
/// The JSON pointer to the labels, which contain the revision of the static pod. The labels change with every revision, and do not concern
/// etcd.
const VERSION_LABEL: &str = "/metadata/labels";
const VERSION_VARIABLE: &str = "ETCD_STATIC_POD_VERSION";
const VERSION_VOLUME: &str = "resource-dir";
/// The size in bytes of the largest manifest that is read. OpenShift's own is much smaller.
pub const SIZE_LIMIT: u64 = 4 * 1024 * 1024;

/// The reason why etcd's pod manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("cannot be read ({0})")]
    Unreadable(std::io::ErrorKind),
    #[error("is not JSON ({0})")]
    NotJson(String),
    #[error("has no container 'etcd'")]
    NoContainer,
    #[error("has no {0}")]
    Missing(&'static str),
    #[error("has no path that podman can mount as {0}")]
    NoPath(&'static str),
}

/// The parts of etcd's pod manifest that the agent uses, with the values for one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The whole text of the manifest file. The agent saves a copy when it creates etcd's container, and later compares the copy with the
    /// present manifest. The comparison shows whether the container fits the manifest.
    pub text: String,
    pub image: Option<String>,
    environment: BTreeMap<String, String>,
    flags: Vec<(String, String)>,
    certificates_on_the_node: PathBuf,
    node: String,
}

impl Manifest {
    /// Reads etcd's pod manifest at `path`, with the values for the node `node`.
    pub fn read(path: &Path, node: &str) -> Result<Self, Error> {
        let text = regular_file::text_of_at_most(path, SIZE_LIMIT).map_err(|error| Error::Unreadable(error.kind()))?;
        Self::parse(&text, node)
    }

    /// Parses etcd's pod manifest in `text`, with the values for the node `node`.
    pub fn parse(text: &str, node: &str) -> Result<Self, Error> {
        let document: Value = json::from_text(text).map_err(|error| Error::NotJson(error.to_string()))?;
        let container = container(&document).ok_or(Error::NoContainer)?;
        let environment: BTreeMap<String, String> = entries(container, "env")
            .filter_map(|entry| Some((text_of(entry, "name")?.to_owned(), for_node(text_of(entry, "value")?, node))))
            .collect();
        Ok(Self {
            text: text.to_owned(),
            image: text_of(container, "image").filter(|image| !image.is_empty()).map(str::to_owned),
            flags: flags(container, node, &environment),
            certificates_on_the_node: certificates(&document, container),
            environment,
            node: node.to_owned(),
        })
    }

    /// Returns the container's environment variable `name`. A missing or empty variable is an error.
    pub fn variable(&self, name: &'static str) -> Result<&str, Error> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty()).ok_or(Error::Missing(name))
    }

    /// Returns etcd's settings from the container's command and environment. The first setting of a name counts, and those of the
    /// command come first, as in etcd itself.
    pub fn settings(&self) -> Vec<Setting> {
        let from_environment = self.environment.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix("ETCD_")?.to_lowercase().replace('_', "-");
            Some((name, value.clone()))
        });
        let named: Vec<(String, String)> = self.flags.iter().cloned().chain(from_environment).collect();
        named.iter().flat_map(|(name, value)| take(name, value)).collect()
    }

    /// Returns the paths in the container of etcd's serving certificate and its key.
    pub fn serving_pair(&self) -> Result<(PathBuf, PathBuf), Error> {
        let flag = |name: &str| self.flags.iter().find(|(flag, _)| flag == name).map(|(_, value)| PathBuf::from(value));
        if let (Some(cert), Some(key)) = (flag("cert-file"), flag("key-file")) {
            return Ok((cert, key));
        }
        let directory = Path::new(self.variable("ETCDCTL_CERT")?).parent().unwrap_or(Path::new("/")).to_owned();
        let file = |kind: &str| directory.join(format!("etcd-serving-{}.{kind}", self.node));
        Ok((file("crt"), file("key")))
    }

    /// Returns the directory of etcd's certificates on this node.
    pub fn certificates_on_the_node(&self) -> &Path {
        &self.certificates_on_the_node
    }

    /// Returns the path on this node of the file that has the path `inside` in the container.
    pub fn on_the_node(&self, inside: &Path) -> PathBuf {
        match inside.strip_prefix(CERTS_INSIDE) {
            Ok(rest) => self.certificates_on_the_node.join(rest),
            Err(_) => inside.to_owned(),
        }
    }
}

/// Returns whether two manifests differ only in the revision of the static pod. A container that was created from one of them
/// also fits the other.
pub fn are_alike(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (json::from_text(one), json::from_text(other)) else { return false };
    without_version(one) == without_version(other)
}

fn without_version(mut document: Value) -> Value {
    if let Some(labels) = document.pointer_mut(VERSION_LABEL).and_then(Value::as_object_mut) {
        labels.remove("revision");
    }
    for kind in ["containers", "initContainers"] {
        let containers = document.pointer_mut(&format!("/spec/{kind}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            without(container, "env", VERSION_VARIABLE);
        }
    }
    if let Some(spec) = document.get_mut("spec") {
        without(spec, "volumes", VERSION_VOLUME);
    }
    document
}

fn without(parent: &mut Value, list: &str, name: &str) {
    if let Some(entries) = parent.get_mut(list).and_then(Value::as_array_mut) {
        entries.retain(|entry| text_of(entry, "name") != Some(name));
    }
}

/// Returns the settings of an environment variable or a flag of etcd. Omits settings that etcd does not know or that the agent sets itself.
/// Omits an invalid value, too, and logs it.
fn take(name: &str, value: &str) -> Vec<Setting> {
    if settings::is_ours(name) {
        return Vec::new();
    }
    let taken = if settings::holds_feature_gates(name) {
        settings::feature_gates(value)
    } else {
        vec![settings::setting(name, value)]
    };
    let keep = |setting: Result<Setting, settings::Error>| match setting {
        Ok(setting) => Some(setting),
        // The environment also has variables that only look like settings, such as ETCD_STATIC_POD_VERSION.
        Err(settings::Error::Unknown(_)) => None,
        Err(error) => {
            log::warn!("the pod manifest has an invalid setting, which is omitted: {error}");
            None
        }
    };
    taken.into_iter().filter_map(keep).collect()
}

fn container(document: &Value) -> Option<&Value> {
    let containers = document.pointer("/spec/containers")?.as_array()?;
    containers.iter().find(|container| text_of(container, "name") == Some("etcd"))
}

fn certificates(document: &Value, container: &Value) -> PathBuf {
    let mount = entries(container, "volumeMounts").find(|mount| text_of(mount, "mountPath") == Some(CERTS_INSIDE));
    let volume = mount.and_then(|mount| {
        let name = text_of(mount, "name")?;
        entries(document.get("spec")?, "volumes").find(|volume| text_of(volume, "name") == Some(name))
    });
    let path = volume.and_then(|volume| volume.pointer("/hostPath/path")?.as_str());
    PathBuf::from(path.unwrap_or(CERTS_ON_THE_NODE))
}

/// Returns the flags `--name=value` that follow the word `etcd` in the container's command, which is a shell script.
fn flags(container: &Value, node: &str, environment: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let script: Vec<&str> =
        ["command", "args"].iter().flat_map(|list| entries(container, list)).filter_map(Value::as_str).collect();
    let script = script.join("\n");
    let words: Vec<&str> = script.split_whitespace().collect();
    let begin =
        words.iter().rposition(|word| *word == "etcd" || word.ends_with("/bin/etcd")).map_or(words.len(), |at| at + 1);
    let flag = |word: &&str| {
        let (name, value) = word.strip_prefix("--")?.split_once('=')?;
        let value = expanded(&for_node(value.trim_matches(['"', '\'']), node), environment)?;
        Some((name.to_owned(), value))
    };
    words[begin..].iter().filter_map(flag).collect()
}

/// Replaces `${NAME}` and `$(NAME)` in `value` by environment variables; `None` if a variable is unknown.
fn expanded(value: &str, environment: &BTreeMap<String, String>) -> Option<String> {
    let mut text = value.to_owned();
    while let Some(begin) = text.find('$') {
        let close = match text.as_bytes().get(begin + 1) {
            Some(b'{') => '}',
            Some(b'(') => ')',
            _ => return None,
        };
        let end = begin + text.get(begin..)?.find(close)?;
        let known = environment.get(text.get(begin + 2..end)?).filter(|value| !value.contains('$'))?;
        text.replace_range(begin..=end, known);
    }
    Some(text)
}

fn for_node(value: &str, node: &str) -> String {
    value.replace(NODE_VARIABLE, &node.replace(['-', '.'], "_")).replace(NODE_NAME, node)
}

fn entries<'a>(parent: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    parent.get(list).and_then(Value::as_array).into_iter().flatten()
}

fn text_of<'a>(entry: &'a Value, name: &str) -> Option<&'a str> {
    entry.get(name)?.as_str()
}

#[cfg(test)]
#[path = "manifest/tests.rs"]
mod tests;
