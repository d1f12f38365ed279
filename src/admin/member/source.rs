//! The arguments that name the etcd.

use std::path::PathBuf;

use clap::Args;

use crate::adapters::ocf::env::Env;
use crate::admin::node::ResourceArgument;
use crate::operate::members::source::Target;

/// The arguments that say which etcd is meant.
#[derive(Args)]
pub(super) struct SourceArguments {
    #[command(flatten)]
    resource: ResourceArgument,
    /// Client URLs of an etcd that is no pair; the default is ETCDCTL_ENDPOINTS, else the pair of this node
    #[arg(long, value_name = "URL,...", value_delimiter = ',', conflicts_with = "resource")]
    endpoints: Vec<String>,
    /// File with the CA that signed that etcd's certificates; the default is ETCDCTL_CACERT
    #[arg(long, value_name = "FILE", requires = "endpoints")]
    cacert: Option<PathBuf>,
    /// File with a client certificate for that etcd; the default is ETCDCTL_CERT
    #[arg(long, value_name = "FILE", requires = "endpoints")]
    cert: Option<PathBuf>,
    /// File with the private key of --cert; the default is ETCDCTL_KEY
    #[arg(long, value_name = "FILE", requires = "endpoints")]
    key: Option<PathBuf>,
    /// How many voters that etcd should have; the default is controlPlane.replicas in the install config of the API of
    /// --kubeconfig, else the present number
    #[arg(long, value_name = "NUMBER", conflicts_with = "resource")]
    voters: Option<usize>,
    /// Access to the Kubernetes API that has the Machines of that etcd's members; without it, no Machine is checked
    #[arg(long, value_name = "FILE", conflicts_with = "resource")]
    kubeconfig: Option<PathBuf>,
}

impl SourceArguments {
    /// Returns the etcd to work on, from the options. Without such options, the environment variables of etcdctl name the etcd. If
    /// neither does, returns this cluster's pair.
    pub(super) fn target(&self) -> Target {
        let env = Env::from_process();
        let variable = |name: &str| env.get(name).map(str::to_owned);
        let resource = self.resource.id().map(str::to_owned);
        let typed = if self.endpoints.is_empty() && resource.is_none() {
            variable("ETCDCTL_ENDPOINTS").map(|urls| urls.split(',').map(|url| url.trim().to_owned()).collect())
        } else {
            Some(self.endpoints.clone()).filter(|urls| !urls.is_empty())
        };
        let Some(urls) = typed else { return Target::Pair { resource } };
        let file = |typed: &Option<PathBuf>, name: &str| typed.clone().or_else(|| variable(name).map(PathBuf::from));
        let files =
            [file(&self.cacert, "ETCDCTL_CACERT"), file(&self.cert, "ETCDCTL_CERT"), file(&self.key, "ETCDCTL_KEY")];
        Target::Endpoints { urls, files, voters: self.voters, kubeconfig: self.kubeconfig.clone() }
    }
}
