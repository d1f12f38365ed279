//! The endpoints of an observation: those of this node's pair, or those that the operator typed.

use std::path::PathBuf;

use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::adapters::openshift::install_config;
use crate::adapters::openshift::machine::PATIENCE;
use crate::agent::resource::context::{self, Context};
use crate::agent::resource::params::NodeIp;
use crate::operate::failure::Failure;
use crate::operate::node;

/// The etcd cluster that a command is about.
#[derive(Clone, Debug)]
pub enum Target {
    /// The pair of this node's Pacemaker cluster.
    Pair {
        /// Id of the etcd resource; `None` if the cluster has only one.
        resource: Option<String>,
    },
    /// An etcd cluster outside of Pacemaker, which is no pair.
    Endpoints {
        /// Client URLs of the cluster's members.
        urls: Vec<String>,
        /// Paths of the trusted CA, the client certificate and its key. All three are needed for `https://`.
        files: [Option<PathBuf>; 3],
        /// The number of voters that the cluster is to have; `None` if the operator did not type it.
        voters: Option<usize>,
        /// Path of the kubeconfig for the API that has the members' Machines; `None` if none is known.
        kubeconfig: Option<PathBuf>,
    },
}

/// The endpoints and credentials with which the members are observed, with the settings that the rules need.
#[derive(Debug)]
pub struct Source {
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) credentials: Credentials,
    /// The nodes of the pair; `None` for an etcd that is no pair.
    pub(super) pair: Option<Pair>,
    /// The number of voters to have, from the operator or the configuration; `None` if neither gives it.
    pub(super) wanted: Option<usize>,
    pub(super) promote_max_lag: u64,
    /// Path of the kubeconfig for the API that has the members' Machines; `None` if none is known.
    pub(super) kubeconfig: Option<PathBuf>,
    /// The etcd key of the member-change lock; `None` until this command has taken it.
    pub(super) own_lock: Option<String>,
}

/// The facts about a pair that are known from the resource's parameters.
#[derive(Debug)]
pub(super) struct Pair {
    /// Name and peer URL of each node.
    pub(super) nodes: Vec<(String, String)>,
}

/// Default of the resource agent's parameter `promote_max_lag`, in log entries.
const PROMOTE_MAX_LAG: u64 = 100;

impl Target {
    /// Returns the id of the resource that the operator typed, if any.
    pub(super) fn resource(&self) -> Option<&str> {
        match self {
            Self::Pair { resource } => resource.as_deref(),
            Self::Endpoints { .. } => None,
        }
    }

    /// Returns the parameters and the state of the resource as the agent on this node reads them.
    pub(super) fn context(&self) -> Result<Context, Failure> {
        node::context(self.resource())
    }

    pub(super) fn source(&self) -> Result<Source, Failure> {
        match self {
            Self::Pair { .. } => {
                node::must_be_root()?;
                Ok(Source::of_pair(&self.context()?))
            }
            Self::Endpoints { urls, files, voters, kubeconfig } => {
                Ok(Source { kubeconfig: kubeconfig.clone(), ..of_endpoints(urls, files.clone(), *voters)? })
            }
        }
    }
}

impl Source {
    /// Reads the wanted number of voters from OpenShift's install config, if the operator gave none and a kubeconfig is known. The error
    /// names the option to type instead.
    pub(super) fn ask_how_many(&mut self) -> Result<(), Failure> {
        let Some(kubeconfig) = self.kubeconfig.as_ref().filter(|_| self.wanted.is_none()) else { return Ok(()) };
        self.wanted = install_config::control_plane_replicas(kubeconfig, PATIENCE).map_err(|why| {
            Failure(format!("how many voters are wanted is not known: {why}: type '--voters NUMBER'"))
        })?;
        Ok(())
    }

    /// Returns the endpoints, credentials and settings of the pair that this node's agent belongs to.
    pub(super) fn of_pair(context: &Context) -> Self {
        let port = context.params.peer_port;
        let peer_url = |node: &NodeIp| context::endpoint(node.ip, port).url;
        let nodes = context.params.nodes.iter().map(|node| (node.name.clone(), peer_url(node))).collect();
        let endpoints = std::iter::once(&context.own_endpoint).chain(&context.peer_endpoint).cloned().collect();
        Self {
            endpoints,
            credentials: context.credentials().clone(),
            wanted: Some(context.params.nodes.len()),
            promote_max_lag: context.params.promote_max_lag,
            kubeconfig: Some(context.params.kubeconfig.clone()).filter(|path| path.exists()),
            own_lock: None,
            pair: Some(Pair { nodes }),
        }
    }
}

fn of_endpoints(urls: &[String], files: [Option<PathBuf>; 3], wanted: Option<usize>) -> Result<Source, Failure> {
    let endpoints: Vec<Endpoint> = urls.iter().map(|url| endpoint(url)).collect::<Result<_, _>>()?;
    let is_encrypted = endpoints.iter().any(|endpoint| endpoint.url.starts_with("https://"));
    if is_encrypted && files.iter().any(Option::is_none) {
        return Err(Failure(
            "an etcd with https:// takes --cacert, --cert and --key, or ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY"
                .to_owned(),
        ));
    }
    let [trusted_ca_file, cert_file, key_file] = files.map(Option::unwrap_or_default);
    let credentials = Credentials { trusted_ca_file, cert_file, key_file };
    let (pair, kubeconfig, own_lock) = (None, None, None);
    Ok(Source { endpoints, credentials, pair, wanted, promote_max_lag: PROMOTE_MAX_LAG, kubeconfig, own_lock })
}

/// Parses the URL of an endpoint, which a member advertises or the operator typed.
pub(super) fn endpoint(url: &str) -> Result<Endpoint, Failure> {
    let url = url.trim_end_matches('/');
    let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match address.filter(|address| address.contains(':') && !address.contains('/')) {
        Some(address) => Ok(Endpoint { url: url.to_owned(), address: address.to_owned() }),
        None => Err(Failure(format!("the endpoint '{url}' is not https://ADDRESS:PORT"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::kubernetes::kubeconfig::for_server;
    use crate::adapters::openshift::machines::fake_api::FakeApi;

    #[test]
    fn what_was_not_typed_is_taken_from_the_install_config() {
        let (dir, fake_api) = (tempfile::tempdir().unwrap(), FakeApi::start(false));
        let kubeconfig = Some(for_server(&dir, &fake_api.server));
        let urls = ["http://192.0.2.1:2379".to_owned()];
        let asked = |typed| {
            let source = of_endpoints(&urls, [None, None, None], typed).unwrap();
            let mut source = Source { kubeconfig: kubeconfig.clone(), ..source };
            source.ask_how_many().map(|()| source.wanted)
        };
        assert_eq!(asked(None).unwrap(), None);
        fake_api.add_install_config("controlPlane:\n  replicas: 3\n");
        assert_eq!((asked(None).unwrap(), asked(Some(5)).unwrap()), (Some(3), Some(5)));
        fake_api.fail(9, "503 Service Unavailable");
        assert_eq!(asked(Some(5)).unwrap(), Some(5), "the API is not asked");
        let why = asked(None).unwrap_err().0;
        assert!(why.ends_with("the API answers 503: type '--voters NUMBER'"), "{why}");
    }

    #[test]
    fn an_endpoint_and_its_certificates_are_told_apart_from_what_is_none() {
        let pem = || Some(PathBuf::from("/etc/a.pem"));
        let plain = of_endpoints(&["http://192.0.2.1:2379/".to_owned()], [None, None, None], Some(3)).unwrap();
        assert_eq!((plain.endpoints[0].address.as_str(), plain.wanted), ("192.0.2.1:2379", Some(3)));
        let https = ["https://192.0.2.1:2379".to_owned()];
        assert!(of_endpoints(&https, [pem(), pem(), pem()], None).is_ok());
        assert!(of_endpoints(&https, [pem(), pem(), None], None).unwrap_err().0.contains("ETCDCTL_KEY"));
        for wrong in ["192.0.2.1:2379", "https://192.0.2.1", "ftp://192.0.2.1:1", "https://a:1/b", ""] {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
