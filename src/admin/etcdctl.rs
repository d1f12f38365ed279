//! `tandem etcdctl`: etcd's own command, with the endpoint and the certificates of this node's resource.

use std::ffi::OsString;
use std::io::IsTerminal;

use clap::Args;

use super::node::ResourceArgument;
use crate::operate::etcdctl;
use crate::operate::failure::Failure;

const HELP: &str = "\
The command runs etcdctl in etcd's container on this node, if the image has it. Otherwise it runs etcdctl of this
machine (package etcd-client), and asks the peer's etcd if etcd does not run on this node.

It sets ETCDCTL_ENDPOINTS, ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY to the endpoint and the certificates of the
etcd resource. An option that you type, such as --endpoints, replaces its variable. If the resource uses certificates
of Tandem's own CA, etcdctl gets the certificate of etcd's user root.

All words after 'tandem etcdctl' go to etcdctl, except --resource before them. Its input, output and exit code are
passed through:

  tandem etcdctl endpoint status --cluster --write-out=table
  tandem etcdctl snapshot save /var/lib/etcd/backup.db

Where etcdctl runs in the container, paths are those in the container.";

/// Runs etcdctl with the endpoint and the certificates of this node's etcd
#[derive(Args)]
#[command(after_help = HELP, disable_help_flag = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    resource: ResourceArgument,
    /// Arguments of etcdctl
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    typed: Vec<OsString>,
}

/// Replaces this process by etcdctl. Returns only if that fails.
pub(super) fn run(arguments: &Arguments) -> Failure {
    let has_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match etcdctl::call(arguments.resource.id(), &arguments.typed, has_terminal) {
        Ok(call) => call.become_it(),
        Err(why) => why,
    }
}
